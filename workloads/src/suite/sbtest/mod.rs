//! The tables `sbtest1` to `sbtestN` of sysbench, which the OLTP scripts and `lookup` share: creates,
//! fills, warms up and drops them with the statements of sysbench 1.0.20.

pub mod check;

use std::io::Write;

use anyhow::Context;
use anyhow::Result;

use crate::driver::Connection;
use crate::options::options;
use crate::random::Distribution;
use crate::random::Keys;
use crate::random::Rng;
use crate::suite::bulk::Bulk;
use crate::suite::for_each;
use crate::workload::Setup;

options! {
    /// Options of every workload on these tables.
    pub TABLES, Tables;
    tables: usize = Int(1, 100_000)
        .default("1")
        .help("number of tables"),
    table_size: i64 = Int(1, i32::MAX as i64)
        .default("10000")
        .help("rows per table"),
    auto_inc: bool = Flag
        .default("on")
        .help("AUTO_INCREMENT ids; off: ids of the client"),
    secondary: bool = Flag
        .default("off")
        .help("prepare: a secondary index instead of the primary key"),
    create_secondary: bool = Flag
        .default("on")
        .help("prepare: an index on k"),
    mysql_storage_engine: String = Text("ENGINE")
        .default("innodb")
        .help("prepare: storage engine"),
    create_table_options: String = Text("OPTIONS")
        .default("")
        .help("prepare: additional options of CREATE TABLE, such as ROW_FORMAT=COMPRESSED"),
}

/// Separates the random stream of `prepare` from those of the threads of `run`.
const PREPARE_STREAM: u64 = 1 << 32;
/// Bytes of a multi-row INSERT: BULK_PACKET_SIZE of sysbench (db_bulk_insert_next of
/// src/db_driver.c), which includes the terminating zero byte.
pub const LONGEST_INSERT: usize = 512 * 1024 - 1;

/// Creates the tables and inserts `rows` rows into each; `distribution` draws k.
pub fn prepare(setup: &Setup<'_>, options: &Tables, distribution: Distribution, rows: i64) -> Result<()> {
    for_each(setup, options.tables, |connection, table| {
        let keys = (rows > 0).then(|| distribution.over(1, rows));
        create(setup, options, connection, table, keys).with_context(|| format!("prepare sbtest{table}"))
    })
}

fn create(
    setup: &Setup<'_>,
    options: &Tables,
    connection: &mut dyn Connection,
    table: usize,
    keys: Option<Keys>,
) -> Result<()> {
    let print = |line: String| setup.output.line(&line);
    print(format!("Creating table 'sbtest{table}'..."));
    let id = match options.auto_inc {
        true => "INTEGER NOT NULL AUTO_INCREMENT",
        false => "INTEGER NOT NULL",
    };
    let key = match options.secondary {
        true => "KEY xid",
        false => "PRIMARY KEY",
    };
    let (engine, more) = (&options.mysql_storage_engine, &options.create_table_options);
    let definition = format!(
        "CREATE TABLE sbtest{table}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  \
         pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) /*! ENGINE = {engine} */ {more}"
    );
    connection.query(definition.as_bytes())?;
    if let Some(keys) = keys {
        print(format!("Inserting {} records into 'sbtest{table}'", keys.count()));
        fill(setup, options.auto_inc, connection, table, keys)?;
    }
    if options.create_secondary {
        print(format!("Creating a secondary index on 'sbtest{table}'..."));
        connection.query(format!("CREATE INDEX k_{table} ON sbtest{table}(k)").as_bytes())?;
    }
    Ok(())
}

fn fill(
    setup: &Setup<'_>,
    auto_inc: bool,
    connection: &mut dyn Connection,
    table: usize,
    keys: Keys,
) -> Result<()> {
    let rows = keys.count();
    let columns = if auto_inc { "k, c, pad" } else { "id, k, c, pad" };
    let mut rng = Rng::new(setup.seed, PREPARE_STREAM + table as u64);
    let (mut c, mut pad) = ([0; 119], [0; 59]);
    let mut bulk = Bulk::new(
        &format!("INSERT INTO sbtest{table}({columns}) VALUES"),
        LONGEST_INSERT,
    );
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
            // Each full tenth of a large table.
            let tenth = (id - 1) * 10 / rows;
            if rows >= 100_000 && tenth > printed {
                printed = tenth;
                setup
                    .output
                    .line(&format!("sbtest{table}: {} % of {rows} records", tenth * 10));
            }
        }
        bulk.push(&row);
    }
    if let Some(insert) = bulk.rest() {
        connection.query(insert)?;
    }
    Ok(())
}

/// Reads every table by its key and by its secondary index, like `prewarm` of sysbench.
pub fn warmup(setup: &Setup<'_>, options: &Tables) -> Result<()> {
    let rows = options.table_size;
    // sysbench names PRIMARY even with --secondary, where it does not exist.
    let key = match options.secondary {
        true => "xid",
        false => "PRIMARY",
    };
    let bytes = "2*1024*1024*1024";
    for_each(setup, options.tables, |connection, table| {
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
    for_each(setup, tables, |connection, table| {
        setup.output.line(&format!("Dropping table 'sbtest{table}'..."));
        let place = || format!("drop sbtest{table}");
        let sql = format!("DROP TABLE IF EXISTS sbtest{table}");
        connection.query(sql.as_bytes()).with_context(place)?;
        Ok(())
    })
}
