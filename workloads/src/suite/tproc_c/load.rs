//! `prepare`, `warmup` and `cleanup`. The connections of `prepare` load tenths of warehouses in
//! turn.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::procedures;
use super::random::DISTRICTS;
use super::rows::Slice;
use super::tables::Shape;
use super::tables::TABLES;
use crate::driver::Connection;
use crate::driver::Row;
use crate::random::Rng;
use crate::suite::parallel;
use crate::workload::Setup;

/// Separates the random streams of `prepare` from those of the threads of `run`.
const PREPARE_STREAM: u64 = 1 << 34;
/// First version with INVISIBLE columns.
const INVISIBLE_SINCE: (u32, u32, u32) = (8, 0, 30);

/// Creates tables, rows and procedures in an empty database.
///
/// # Errors
/// An error of the server, or a database that is not empty.
pub fn prepare(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let shape = Shape::of(setup.values)?;
    let strict = setup.values.flag("strict")?;
    expect_empty_database(connection.as_mut())?;
    if shape.history_key {
        expect_invisible_columns(connection.as_mut())?;
    }
    // The parameters of the procedures have the character set of the database: unless it is that of
    // the columns, the server cannot use the index on names.
    connection.query(b"ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_swedish_ci")?;
    setup.output.line("Creating 9 tables");
    for definition in shape.definitions() {
        connection.query(definition.as_bytes())?;
    }
    fill(setup, shape.warehouses, strict)?;
    setup.output.line("Creating 5 procedures");
    procedures::create(connection.as_mut(), strict)?;
    setup.output.line("Analyzing the tables");
    connection.query(format!("ANALYZE TABLE {}", TABLES.join(", ")).as_bytes())?;
    Ok(())
}

/// The text of the only cell.
pub fn cell(rows: &[Row]) -> Option<&str> {
    rows.first()?.first()?.as_deref()
}

fn expect_empty_database(connection: &mut dyn Connection) -> Result<()> {
    let rows = connection.rows(
        "SELECT DATABASE(), (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()) + \
         (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())",
    )?;
    let cell = |column: usize| rows.first()?.get(column)?.as_deref();
    match (cell(0), cell(1)) {
        (_, Some("0")) => Ok(()),
        (name, count) => bail!(
            "database `{}` is not empty ({} tables and procedures): run `loadprint-load cleanup tproc_c`, which removes those of this \
             workload, or give an empty --mysql-db",
            name.unwrap_or_default(),
            count.unwrap_or("some")
        ),
    }
}

fn expect_invisible_columns(connection: &mut dyn Connection) -> Result<()> {
    let rows = connection.rows("SELECT VERSION()")?;
    let version = cell(&rows).unwrap_or_default();
    let mut parts = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let parsed = (next(), next(), next());
    if version.contains("MariaDB") || parsed < INVISIBLE_SINCE {
        bail!(
            "--history-pk: server version {version} has no invisible primary key (MySQL 8.0.30 and later): leave the option out"
        );
    }
    Ok(())
}

fn fill(setup: &Setup<'_>, warehouses: i64, strict: bool) -> Result<()> {
    let progress = Progress::new(warehouses);
    let next = AtomicI64::new(0);
    let slices = (warehouses + 1) * DISTRICTS;
    let threads = setup.threads.min(usize::try_from(slices)?);
    parallel::for_each(setup, threads, |connection, _| {
        loop {
            let slice = next.fetch_add(1, Relaxed);
            if slice >= slices {
                return Ok(());
            }
            let (warehouse, number) = (slice / DISTRICTS, slice % DISTRICTS + 1);
            let rows = Slice {
                warehouse,
                number,
                strict,
                rng: Rng::new(setup.seed, PREPARE_STREAM + u64::try_from(slice)?),
            }
            .insert(connection)
            .inspect_err(|_| next.store(slices, Relaxed))
            .with_context(|| format!("prepare warehouse {warehouse}"))?;
            if let Some(line) = progress.slice_done(warehouse, rows) {
                setup.output.line(&line);
            }
        }
    })
}

/// The progress of `prepare`.
struct Progress {
    start: Instant,
    warehouses: i64,
    /// Tenths of warehouses.
    done: AtomicI64,
    rows: AtomicU64,
    /// The second of the last printed line.
    printed: AtomicU64,
}

impl Progress {
    fn new(warehouses: i64) -> Self {
        Self {
            start: Instant::now(),
            warehouses,
            done: AtomicI64::new(0),
            rows: AtomicU64::new(0),
            printed: AtomicU64::new(0),
        }
    }

    /// Counts a slice. Returns a line once a second and at the end.
    fn slice_done(&self, warehouse: i64, rows: u64) -> Option<String> {
        let rows = self.rows.fetch_add(rows, Relaxed) + rows;
        let done = self.done.fetch_add(i64::from(warehouse > 0), Relaxed) + i64::from(warehouse > 0);
        let seconds = self.start.elapsed().as_secs_f64();
        let second = seconds as u64;
        let last = done == self.warehouses * DISTRICTS;
        if self.printed.fetch_max(second, Relaxed) >= second && !last {
            return None;
        }
        Some(format!(
            "[ {second}s ] {}.{} of {} warehouses, {rows} rows, {:.0} rows/s",
            done / DISTRICTS,
            done % DISTRICTS,
            self.warehouses,
            rows as f64 / seconds
        ))
    }
}

/// Reads every table by its primary key and the names of customers by their index.
pub fn warmup(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let rows = connection.rows("SELECT MAX(w_id) FROM warehouse")?;
    let warehouses: usize = cell(&rows).unwrap_or("0").parse()?;
    connection.query(b"SELECT SUM(LENGTH(i_data)) FROM item")?;
    connection.query(b"SELECT SUM(h_amount) FROM history")?;
    parallel::for_each(setup, warehouses, |connection, warehouse| {
        setup
            .output
            .line(&format!("Reading warehouse {warehouse} of {warehouses}"));
        for (table, column, value) in [
            ("warehouse", "w_id", "w_ytd"),
            ("district", "d_w_id", "d_ytd"),
            ("stock", "s_w_id", "s_quantity"),
            ("customer", "c_w_id", "c_balance"),
            ("orders", "o_w_id", "o_ol_cnt"),
            ("new_order", "no_w_id", "no_o_id"),
            ("order_line", "ol_w_id", "ol_amount"),
        ] {
            let sql = format!(
                "SELECT SUM({value}) FROM {table} FORCE INDEX (PRIMARY) WHERE {column} = {warehouse}"
            );
            connection.query(sql.as_bytes())?;
        }
        for sql in [
            format!("SELECT COUNT(c_last) FROM customer FORCE INDEX (c_w_id) WHERE c_w_id = {warehouse}"),
            format!("SELECT COUNT(o_c_id) FROM orders FORCE INDEX (o_w_id) WHERE o_w_id = {warehouse}"),
        ] {
            connection.query(sql.as_bytes())?;
        }
        Ok(())
    })
}

/// Drops tables and procedures.
pub fn cleanup(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    setup.output.line("Dropping 9 tables and 5 procedures");
    procedures::drop_all(connection.as_mut())?;
    for table in TABLES {
        connection.query(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
    }
    Ok(())
}
