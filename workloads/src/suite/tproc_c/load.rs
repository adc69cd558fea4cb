//! `prepare`, `warmup` and `cleanup`. The connections of `prepare` load tenths of warehouses in
//! turn.

use std::sync::Mutex;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::Options;
use super::procedures;
use super::random::DISTRICTS;
use super::rows::Slice;
use super::tables;
use super::tables::TABLES;
use crate::driver::Connection;
use crate::lock::lock;
use crate::random::Rng;
use crate::suite::cell;
use crate::suite::for_each;
use crate::suite::number;
use crate::workload::Setup;

/// Separates the random streams of `prepare` from those of the threads of `run`.
const PREPARE_STREAM: u64 = 1 << 34;

/// Creates tables, rows and procedures in an empty database.
///
/// # Errors
/// An error of the server, or a database that is not empty.
pub fn prepare(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let options: Options = setup.values.read()?;
    expect_empty_database(connection.as_mut())?;
    if options.history_pk {
        expect_invisible_columns(connection.as_mut())?;
    }
    // The parameters of the procedures have the character set of the database: unless it is that of
    // the columns, the server cannot use the index on names.
    connection.query(b"ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_swedish_ci")?;
    setup.output.line("Creating 9 tables");
    for definition in tables::definitions(&options) {
        connection.query(definition.as_bytes())?;
    }
    fill(setup, options.warehouses)?;
    setup.output.line("Creating 5 procedures");
    procedures::create(connection.as_mut())?;
    setup.output.line("Analyzing the tables");
    connection.query(format!("ANALYZE TABLE {}", TABLES.map(|(table, ..)| table).join(", ")).as_bytes())?;
    Ok(())
}

fn expect_empty_database(connection: &mut dyn Connection) -> Result<()> {
    let rows = connection.rows(
        "SELECT DATABASE(), (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()) + \
         (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())",
    )?;
    let [name, count] = [0, 1].map(|column| cell(&rows, column).unwrap_or_default());
    if count != "0" {
        bail!(
            "database `{name}` is not empty ({count} tables and procedures): run `loadprint-load cleanup tproc_c`, which removes those of \
             this workload, or give an empty --mysql-db"
        );
    }
    Ok(())
}

fn expect_invisible_columns(connection: &mut dyn Connection) -> Result<()> {
    // Not the version, which may be that of a proxy.
    connection
        .rows("SELECT @@sql_generate_invisible_primary_key")
        .map(drop)
        .context(
            "--history-pk: the server has no invisible primary key (MySQL 8.0.30 and later): leave the option out",
        )
}

fn fill(setup: &Setup<'_>, warehouses: i64) -> Result<()> {
    let start = Instant::now();
    let progress = Mutex::new(Progress::default());
    let slices = usize::try_from((warehouses + 1) * DISTRICTS)?;
    for_each(setup, slices, |connection, number| {
        let slice = number as i64 - 1;
        let warehouse = slice / DISTRICTS;
        let rows = Slice {
            warehouse,
            number: slice % DISTRICTS + 1,
            rng: Rng::new(setup.seed, PREPARE_STREAM + slice as u64),
        }
        .insert(connection)
        .with_context(|| format!("prepare warehouse {warehouse}"))?;
        let mut progress = lock(&progress);
        progress.rows += rows;
        progress.done += i64::from(warehouse > 0);
        let (done, seconds) = (progress.done, start.elapsed().as_secs_f64());
        // A line once a second and at the end.
        if seconds as u64 > progress.printed || done == warehouses * DISTRICTS {
            progress.printed = seconds as u64;
            setup.output.line(&format!(
                "[ {}s ] {}.{} of {warehouses} warehouses, {} rows, {:.0} rows/s",
                seconds as u64,
                done / DISTRICTS,
                done % DISTRICTS,
                progress.rows,
                progress.rows as f64 / seconds
            ));
        }
        Ok(())
    })
}

/// The progress of `prepare`.
#[derive(Default)]
struct Progress {
    /// Tenths of warehouses.
    done: i64,
    rows: u64,
    /// The second of the last printed line.
    printed: u64,
}

/// Reads every table by its primary key and the names of customers by their index.
pub fn warmup(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let rows = connection.rows("SELECT MAX(w_id) FROM warehouse")?;
    let warehouses = number(&rows, 0).unwrap_or(0);
    connection.query(b"SELECT SUM(LENGTH(i_data)) FROM item")?;
    connection.query(b"SELECT SUM(h_amount) FROM history")?;
    for_each(setup, warehouses, |connection, warehouse| {
        setup
            .output
            .line(&format!("Reading warehouse {warehouse} of {warehouses}"));
        for (table, index, column, value) in [
            ("warehouse", "PRIMARY", "w_id", "SUM(w_ytd)"),
            ("district", "PRIMARY", "d_w_id", "SUM(d_ytd)"),
            ("stock", "PRIMARY", "s_w_id", "SUM(s_quantity)"),
            ("customer", "PRIMARY", "c_w_id", "SUM(c_balance)"),
            ("orders", "PRIMARY", "o_w_id", "SUM(o_ol_cnt)"),
            ("new_order", "PRIMARY", "no_w_id", "SUM(no_o_id)"),
            ("order_line", "PRIMARY", "ol_w_id", "SUM(ol_amount)"),
            ("customer", "c_w_id", "c_w_id", "COUNT(c_last)"),
            ("orders", "o_w_id", "o_w_id", "COUNT(o_c_id)"),
        ] {
            let sql =
                format!("SELECT {value} FROM {table} FORCE INDEX ({index}) WHERE {column} = {warehouse}");
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
    for (table, ..) in TABLES {
        connection.query(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
    }
    Ok(())
}
