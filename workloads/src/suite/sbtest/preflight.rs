//! Checks before a run that the tables exist, with the right columns and enough rows. Reads the
//! data dictionary and some rows by their key, never a whole table.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::driver::Connection;

/// A required column: name, type, length of text.
pub type Column = (&'static str, &'static str, Option<u64>);

/// The columns of the OLTP tables.
pub const OLTP: &[Column] = &[
    ("id", "int", None),
    ("k", "int", None),
    ("c", "char", Some(120)),
    ("pad", "char", Some(60)),
];

/// The columns of `bulk_insert`.
pub const BULK: &[Column] = &[("id", "int", None), ("k", "int", None)];

/// Rows looked up in each table.
const SAMPLE: i64 = 256;
/// One in this number of them may be missing, as `oltp_delete` leaves gaps. In a large table
/// without 8 % of its ids at random, more than 42 of the 256 are missing in one of 10^5 cases;
/// without 5 %, in one of 10^11.
const GAPS: usize = 6;
/// Number that may be missing in a small table: a run killed between DELETE and INSERT leaves a few
/// gaps.
const SMALL_GAPS: usize = 3;
/// Ids that may be missing at the end of a table that has at least ten times this number. In a
/// table without 10 % of its ids, the last nine are missing in one of 10^9 cases.
const LAST_GAPS: i64 = 8;

/// Expects `sbtest1` to `sbtestN` with these columns.
///
/// # Errors
/// An error of the server; or one line with the table, its columns and the fix.
pub fn tables(
    connection: &mut dyn Connection,
    workload: &str,
    tables: usize,
    columns: &[Column],
) -> Result<()> {
    let database = first_cell(connection, "SELECT DATABASE()")?.unwrap_or_default();
    let present = columns_of_tables(connection)?;
    for table in 1..=tables {
        let name = format!("sbtest{table}");
        let Some(actual) = present.get(&name) else {
            let others = others(connection)?;
            bail!(
                "{name} is missing in the database {database}, which has {others}: run `loadprint-load prepare {workload}` \
                 with the same options, or give another --mysql-db"
            );
        };
        let fits = columns.len() == actual.len()
            && columns.iter().zip(actual).all(|((name, kind, length), column)| {
                (*name, *kind, *length) == (column.name.as_str(), column.kind.as_str(), column.length)
            });
        if !fits {
            let actual = actual
                .iter()
                .map(|column| describe(&column.name, &column.kind, column.length));
            let needed = columns
                .iter()
                .map(|(name, kind, length)| describe(name, kind, *length));
            bail!(
                "{name} in the database {database} is another workload's table, with the columns {}; {workload} needs {}: \
                 give another --mysql-db, or run cleanup and `loadprint-load prepare {workload}`",
                actual.collect::<Vec<_>>().join(", "),
                needed.collect::<Vec<_>>().join(", ")
            );
        }
    }
    Ok(())
}

/// Expects the ids 1 to `rows` in each table, except for a few gaps.
///
/// # Errors
/// An error of the server; or one line with the table, the difference and the fix.
pub fn rows(connection: &mut dyn Connection, workload: &str, tables: usize, rows: i64) -> Result<()> {
    let mut sample: Vec<i64> = (0..SAMPLE)
        .map(|step| 1 + step * (rows - 1) / (SAMPLE - 1))
        .collect();
    sample.dedup();
    let list: Vec<String> = sample.iter().map(ToString::to_string).collect();
    let again = format!("run cleanup and `loadprint-load prepare {workload}` again");
    for table in 1..=tables {
        let Some(last) = last_id(connection, table)? else {
            bail!("sbtest{table} is empty, --table-size={rows} needs {rows} rows: {again}");
        };
        if last < rows - LAST_GAPS.min(rows / 10) {
            bail!(
                "the ids of sbtest{table} end at {last}, --table-size={rows} needs more rows: \
                 give --table-size={last}, or {again}"
            );
        }
        let sql = format!(
            "SELECT COUNT(*) FROM sbtest{table} WHERE id IN ({})",
            list.join(",")
        );
        let present = number(first_cell(connection, &sql)?)?.unwrap_or(0);
        let missing = sample.len() as i64 - present;
        let allowed = (sample.len() / GAPS).max(SMALL_GAPS.min(sample.len() / 2));
        if missing > allowed as i64 {
            bail!(
                "sbtest{table} has gaps: {missing} of {} sampled ids between 1 and {rows} are missing \
                 (after oltp_delete, or with auto_increment_increment above 1): {again}",
                sample.len()
            );
        }
    }
    Ok(())
}

/// Expects tables without rows.
///
/// # Errors
/// An error of the server; or one line with the table and the fix.
pub fn empty(connection: &mut dyn Connection, workload: &str, tables: RangeInclusive<usize>) -> Result<()> {
    for table in tables {
        if let Some(last) = last_id(connection, table)? {
            bail!(
                "sbtest{table} has rows up to id {last} of an earlier run, {workload} starts at 1: \
                 run cleanup and prepare again"
            );
        }
    }
    Ok(())
}

/// The greatest id; none without rows.
pub fn last_id(connection: &mut dyn Connection, table: usize) -> Result<Option<i64>> {
    number(first_cell(
        connection,
        &format!("SELECT MAX(id) FROM sbtest{table}"),
    )?)
}

fn number(text: Option<String>) -> Result<Option<i64>> {
    text.map(|text| text.parse().with_context(|| format!("parse the id `{text}`")))
        .transpose()
}

/// The first column of the first row.
fn first_cell(connection: &mut dyn Connection, sql: &str) -> Result<Option<String>> {
    let rows = connection.rows(sql)?;
    Ok(rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next().flatten()))
}

/// A column of a table in the database.
struct TableColumn {
    name: String,
    kind: String,
    length: Option<u64>,
}

fn describe(name: &str, kind: &str, length: Option<u64>) -> String {
    let length = length.map_or_else(String::new, |length| format!("({length})"));
    format!("{name} {kind}{length}")
}

fn columns_of_tables(connection: &mut dyn Connection) -> Result<BTreeMap<String, Vec<TableColumn>>> {
    let sql = "SELECT TABLE_NAME, LOWER(COLUMN_NAME), LOWER(DATA_TYPE), CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS \
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'sbtest%' ORDER BY TABLE_NAME, ORDINAL_POSITION";
    let mut tables: BTreeMap<String, Vec<TableColumn>> = BTreeMap::new();
    for row in connection.rows(sql)? {
        let mut cells = row.into_iter();
        let mut cell = || cells.next().flatten().unwrap_or_default();
        let (table, name, kind) = (cell(), cell(), cell());
        let length = cell().parse().ok();
        tables
            .entry(table)
            .or_default()
            .push(TableColumn { name, kind, length });
    }
    Ok(tables)
}

/// The names of the first tables of the database.
fn others(connection: &mut dyn Connection) -> Result<String> {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME LIMIT 6";
    let mut names: Vec<String> = connection.rows(sql)?.into_iter().flatten().flatten().collect();
    if names.len() == 6 {
        names[5] = "others".to_owned();
    }
    Ok(match names.len() {
        0 => "no tables".to_owned(),
        _ => names.join(", "),
    })
}
