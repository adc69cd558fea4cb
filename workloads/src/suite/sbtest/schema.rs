//! Creates, fills, warms up and drops the `sbtest` tables with the statements of sysbench 1.0.20.

use std::io::Write;

use anyhow::Context;
use anyhow::Result;

use super::bulk::Bulk;
use crate::driver::Connection;
use crate::options::Values;
use crate::random::Distribution;
use crate::random::Rng;
use crate::suite::parallel;
use crate::workload::Setup;

/// Separates the random stream of `prepare` from those of the threads of `run`.
const PREPARE_STREAM: u64 = 1 << 32;

/// Creates the tables and inserts `rows` rows into each; `distribution` draws k.
pub fn prepare(setup: &Setup<'_>, distribution: Distribution, rows: i64) -> Result<()> {
    parallel::for_each(setup, setup.values.count("tables")?, |connection, table| {
        create(setup, connection, table, distribution, rows).with_context(|| format!("prepare sbtest{table}"))
    })
}

fn create(
    setup: &Setup<'_>,
    connection: &mut dyn Connection,
    table: usize,
    distribution: Distribution,
    rows: i64,
) -> Result<()> {
    let values = setup.values;
    setup.output.line(&format!("Creating table 'sbtest{table}'..."));
    connection.query(definition(values, table)?.as_bytes())?;
    if rows > 0 {
        setup
            .output
            .line(&format!("Inserting {rows} records into 'sbtest{table}'"));
        fill(setup, connection, table, distribution, rows)?;
    }
    if values.flag("create-secondary")? {
        setup
            .output
            .line(&format!("Creating a secondary index on 'sbtest{table}'..."));
        connection.query(format!("CREATE INDEX k_{table} ON sbtest{table}(k)").as_bytes())?;
    }
    Ok(())
}

fn definition(values: &Values, table: usize) -> Result<String> {
    let id = if values.flag("auto-inc")? {
        "INTEGER NOT NULL AUTO_INCREMENT"
    } else {
        "INTEGER NOT NULL"
    };
    let key = if values.flag("secondary")? {
        "KEY xid"
    } else {
        "PRIMARY KEY"
    };
    let engine = values.text("mysql-storage-engine")?.unwrap_or("innodb");
    let options = values.text("create-table-options")?.unwrap_or_default();
    Ok(format!(
        "CREATE TABLE sbtest{table}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  \
         pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) /*! ENGINE = {engine} */ {options}"
    ))
}

fn fill(
    setup: &Setup<'_>,
    connection: &mut dyn Connection,
    table: usize,
    distribution: Distribution,
    rows: i64,
) -> Result<()> {
    let auto_inc = setup.values.flag("auto-inc")?;
    let columns = if auto_inc { "k, c, pad" } else { "id, k, c, pad" };
    let keys = distribution.over(1, rows);
    let mut rng = Rng::new(setup.seed, PREPARE_STREAM + table as u64);
    let (mut c, mut pad) = ([0; 119], [0; 59]);
    let mut bulk = Bulk::new(&format!("INSERT INTO sbtest{table}({columns}) VALUES"));
    let mut row = Vec::new();
    let mut printed = 0;
    for id in 1..=rows {
        rng.digits(&mut c);
        rng.digits(&mut pad);
        let k = keys.draw(&mut rng);
        row.clear();
        row.push(b'(');
        if !auto_inc {
            write!(row, "{id}, ")?;
        }
        let (c, pad) = (str::from_utf8(&c)?, str::from_utf8(&pad)?);
        write!(row, "{k}, '{c}', '{pad}')")?;
        if let Some(insert) = bulk.full(row.len()) {
            connection.query(insert)?;
            bulk.clear();
            printed = progress(setup, table, id - 1, rows, printed);
        }
        bulk.push(&row);
    }
    if let Some(insert) = bulk.rest() {
        connection.query(insert)?;
    }
    Ok(())
}

/// Prints each full tenth of a large table; returns the last printed one.
fn progress(setup: &Setup<'_>, table: usize, done: i64, rows: i64, printed: i64) -> i64 {
    let tenth = done * 10 / rows;
    if rows >= 100_000 && tenth > printed {
        setup
            .output
            .line(&format!("sbtest{table}: {} % of {rows} records", tenth * 10));
    }
    tenth.max(printed)
}

/// Reads every table by its key and by its secondary index, like `prewarm` of sysbench.
pub fn warmup(setup: &Setup<'_>) -> Result<()> {
    let values = setup.values;
    let rows = values.int("table-size")?;
    // sysbench names PRIMARY even with --secondary, where it does not exist.
    let key = if values.flag("secondary")? {
        "xid"
    } else {
        "PRIMARY"
    };
    let bytes = "2*1024*1024*1024";
    parallel::for_each(setup, values.count("tables")?, |connection, table| {
        // Only before the first table of a connection.
        if table <= setup.threads {
            connection.query(format!("SET tmp_table_size={bytes}").as_bytes())?;
            connection.query(format!("SET max_heap_table_size={bytes}").as_bytes())?;
        }
        setup.output.line(&format!("Prewarming table sbtest{table}"));
        for sql in [
            format!("ANALYZE TABLE sbtest{table}"),
            format!("SELECT AVG(id) FROM (SELECT * FROM sbtest{table} FORCE KEY ({key}) LIMIT {rows}) t"),
            format!("SELECT COUNT(*) FROM (SELECT * FROM sbtest{table} WHERE k LIKE '%0%' LIMIT {rows}) t"),
        ] {
            let place = || format!("warm up sbtest{table}");
            connection.query(sql.as_bytes()).with_context(place)?;
        }
        Ok(())
    })
}

/// Drops this number of tables.
pub fn cleanup(setup: &Setup<'_>, tables: usize) -> Result<()> {
    parallel::for_each(setup, tables, |connection, table| {
        setup.output.line(&format!("Dropping table 'sbtest{table}'..."));
        let place = || format!("drop sbtest{table}");
        let sql = format!("DROP TABLE IF EXISTS sbtest{table}");
        connection.query(sql.as_bytes()).with_context(place)?;
        Ok(())
    })
}
