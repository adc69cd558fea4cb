//! The built-in workloads, one folder per suite, and what they share.

pub mod arm;
mod bulk;
pub mod oltp;
mod sbtest;
pub mod tproc_c;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::Result;
use anyhow::anyhow;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::Row;
use crate::workload::Setup;

/// The text in a column of the first row; `None` without a row and for NULL.
fn cell(rows: &[Row], column: usize) -> Option<&str> {
    rows.first()?.get(column)?.as_deref()
}

/// The number in a column of the first row.
fn number<T: FromStr>(rows: &[Row], column: usize) -> Option<T> {
    cell(rows, column)?.parse().ok()
}

/// The columns of each table of the database, in order: name, type, and the length of a text, all in lower
/// case.
fn columns_of_tables(connection: &mut dyn Connection) -> Result<HashMap<String, Vec<[String; 3]>>, DbError> {
    let sql = "SELECT LOWER(TABLE_NAME), LOWER(COLUMN_NAME), LOWER(DATA_TYPE), CHARACTER_MAXIMUM_LENGTH \
               FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY ORDINAL_POSITION";
    let mut tables: HashMap<String, Vec<[String; 3]>> = HashMap::new();
    for row in connection.rows(sql)? {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut cell = || cells.next().unwrap_or_default();
        let (table, column) = (cell(), [cell(), cell(), cell()]);
        tables.entry(table).or_default().push(column);
    }
    Ok(tables)
}

/// Calls `work` for the tables or warehouses 1..=count on the threads of `setup`: number i on
/// thread (i − 1) mod threads, as in sysbench. The first error ends all threads, after the table in hand.
///
/// # Errors
/// The first error of a connection or of `work`.
fn for_each(
    setup: &Setup<'_>,
    count: usize,
    work: impl Fn(&mut dyn Connection, usize) -> Result<()> + Sync,
) -> Result<()> {
    let threads = setup.threads.clamp(1, count.max(1));
    let (work, failed) = (&work, &AtomicBool::new(false));
    thread::scope(|scope| {
        let body = move |first: usize| -> Result<()> {
            let all = || {
                let mut connection = setup.driver.connect()?;
                (first..=count)
                    .step_by(threads)
                    .take_while(|_| !failed.load(Relaxed))
                    .try_for_each(|number| work(connection.as_mut(), number))
            };
            all().inspect_err(|_| failed.store(true, Relaxed))
        };
        let handles: Vec<_> = (1..=threads)
            .map(|first| scope.spawn(move || body(first)))
            .collect();
        // Joins all threads before it returns the first error.
        let results: Vec<_> = handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
            })
            .collect();
        results.into_iter().collect()
    })
}
