//! The `sbtest` tables: made, filled, read into memory and dropped, by the statements of sysbench 1.0.20.

use std::fmt::Write;

use anyhow::Context;
use anyhow::Result;

use crate::driver::Connection;
use crate::options::Values;
use crate::random::Distribution;
use crate::random::Rng;
use crate::suite::parallel;
use crate::workload::Setup;

/// BULK_PACKET_SIZE of sysbench: an INSERT is sent before it outgrows this.
const PACKET: usize = 512 * 1024;
/// Keeps the rows of `prepare` apart from the streams of the threads of `run`.
const PREPARE_STREAM: u64 = 1 << 32;

/// Creates and fills the tables.
pub fn prepare(setup: &Setup<'_>) -> Result<()> {
    parallel::for_each(setup, setup.values.count("tables")?, |connection, table| {
        create(setup, connection, table).with_context(|| format!("prepare sbtest{table}"))
    })
}

fn create(setup: &Setup<'_>, connection: &mut dyn Connection, table: usize) -> Result<()> {
    let values = setup.values;
    setup.output.line(&format!("Creating table 'sbtest{table}'..."));
    connection.query(definition(values, table)?.as_bytes())?;
    let rows = values.int("table-size")?;
    setup
        .output
        .line(&format!("Inserting {rows} records into 'sbtest{table}'"));
    fill(setup, connection, table, rows)?;
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
    Ok(format!(
        "CREATE TABLE sbtest{table}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  \
         pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) /*! ENGINE = {engine} */ "
    ))
}

fn fill(setup: &Setup<'_>, connection: &mut dyn Connection, table: usize, rows: i64) -> Result<()> {
    let auto_inc = setup.values.flag("auto-inc")?;
    let columns = if auto_inc { "k, c, pad" } else { "id, k, c, pad" };
    let head = format!("INSERT INTO sbtest{table}({columns}) VALUES");
    let keys = Distribution::from_options(setup.values)?;
    let mut rng = Rng::new(setup.seed, PREPARE_STREAM + table as u64);
    let (mut c, mut pad) = ([0; 119], [0; 59]);
    let mut insert = String::with_capacity(PACKET);
    let mut row = String::new();
    let mut told = 0;
    for id in 1..=rows {
        rng.digits(&mut c);
        rng.digits(&mut pad);
        let k = keys.draw(&mut rng, 1, rows);
        row.clear();
        row.push('(');
        if !auto_inc {
            write!(row, "{id}, ")?;
        }
        let (c, pad) = (str::from_utf8(&c)?, str::from_utf8(&pad)?);
        write!(row, "{k}, '{c}', '{pad}')")?;
        if insert.len() + row.len() + 1 > PACKET {
            connection.query(insert.as_bytes())?;
            insert.clear();
            told = progress(setup, table, id - 1, rows, told);
        }
        insert.push_str(if insert.is_empty() { &head } else { "," });
        insert.push_str(&row);
    }
    if !insert.is_empty() {
        connection.query(insert.as_bytes())?;
    }
    Ok(())
}

/// Says each full tenth of a table that takes long; returns the last tenth told.
fn progress(setup: &Setup<'_>, table: usize, done: i64, rows: i64, told: i64) -> i64 {
    let tenth = done * 10 / rows;
    if rows >= 100_000 && tenth > told {
        setup
            .output
            .line(&format!("sbtest{table}: {} % of {rows} records", tenth * 10));
    }
    tenth.max(told)
}

/// Reads every table by its primary key and by its secondary index, as sysbench's `prewarm` does.
pub fn warmup(setup: &Setup<'_>) -> Result<()> {
    let rows = setup.values.int("table-size")?;
    parallel::for_each(setup, setup.values.count("tables")?, |connection, table| {
        setup.output.line(&format!("Prewarming table sbtest{table}"));
        for sql in [
            "SET tmp_table_size=2*1024*1024*1024".to_owned(),
            "SET max_heap_table_size=2*1024*1024*1024".to_owned(),
            format!("ANALYZE TABLE sbtest{table}"),
            format!("SELECT AVG(id) FROM (SELECT * FROM sbtest{table} FORCE KEY (PRIMARY) LIMIT {rows}) t"),
            format!("SELECT COUNT(*) FROM (SELECT * FROM sbtest{table} WHERE k LIKE '%0%' LIMIT {rows}) t"),
        ] {
            connection.query(sql.as_bytes())?;
        }
        Ok(())
    })
}

/// Drops the tables.
pub fn cleanup(setup: &Setup<'_>) -> Result<()> {
    parallel::for_each(setup, setup.values.count("tables")?, |connection, table| {
        setup.output.line(&format!("Dropping table 'sbtest{table}'..."));
        connection.query(format!("DROP TABLE IF EXISTS sbtest{table}").as_bytes())?;
        Ok(())
    })
}
