//! Before a run: are the tables there, with the right columns and enough rows? Reads the dictionary and some rows by their key,
//! never a whole table.

use std::collections::BTreeMap;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::driver::Connection;

/// A column as the workloads need it: name, type, length of text.
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
/// One in this number of them may be missing, as `oltp_delete` leaves gaps: where 8 % of a large table are missing at random ids,
/// more than 42 of the 256 are in one of 10^5 cases; where 5 % are, in one of 10^11.
const GAPS: usize = 6;
/// In a small table, so many may be missing: a run that was killed between DELETE and INSERT leaves a gap here and there.
const SMALL_GAPS: usize = 3;
/// Ids that may be missing at the end, in a table of at least ten times as many: where 10 % of all ids are missing, the last nine
/// of them are in one of 10^9 cases.
const LAST_GAPS: i64 = 8;

/// Looks for `sbtest1` to `sbtestN` with these columns.
///
/// # Errors
/// Of the server; or one line with the table, what it is, and the mend.
pub fn tables(
    connection: &mut dyn Connection,
    workload: &str,
    tables: usize,
    columns: &[Column],
) -> Result<()> {
    let database = one(connection, "SELECT DATABASE()")?.unwrap_or_default();
    let present = columns_of_tables(connection)?;
    for table in 1..=tables {
        let name = format!("sbtest{table}");
        let Some(found) = present.get(&name) else {
            let others = others(connection)?;
            bail!(
                "{name} is missing in the database {database}, which has {others}: run `loadprint-load prepare {workload}` \
                 with the same options first, or give another --mysql-db"
            );
        };
        let fits = columns.len() == found.len()
            && columns.iter().zip(found).all(|((name, kind, length), found)| {
                (*name, *kind, *length) == (found.name.as_str(), found.kind.as_str(), found.length)
            });
        if !fits {
            let found: Vec<String> = found.iter().map(Found::describe).collect();
            let wanted: Vec<String> = columns.iter().map(describe).collect();
            bail!(
                "{name} in the database {database} is another workload's table: it has the columns {}, {workload} needs {}: \
                 give another --mysql-db, or run cleanup and `loadprint-load prepare {workload}`",
                found.join(", "),
                wanted.join(", ")
            );
        }
    }
    Ok(())
}

/// Looks whether each of the tables holds the ids 1 to `rows`.
///
/// # Errors
/// Of the server; or one line with the table, what was found, and the mend.
pub fn rows(connection: &mut dyn Connection, workload: &str, tables: usize, rows: i64) -> Result<()> {
    let mut sample: Vec<i64> = (0..SAMPLE)
        .map(|step| 1 + step * (rows - 1) / (SAMPLE - 1))
        .collect();
    sample.dedup();
    let list: Vec<String> = sample.iter().map(ToString::to_string).collect();
    let again = format!("run cleanup and `loadprint-load prepare {workload}` again");
    for table in 1..=tables {
        let Some(last) = last_id(connection, table)? else {
            bail!("sbtest{table} is empty, --table-size={rows} says otherwise: {again}");
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
        let found = number(one(connection, &sql)?)?.unwrap_or(0);
        let missing = sample.len() as i64 - found;
        let allowed = (sample.len() / GAPS).max(SMALL_GAPS.min(sample.len() / 2));
        if missing > allowed as i64 {
            bail!(
                "sbtest{table} has gaps: of {} ids looked up between 1 and {rows}, {missing} are missing \
                 (after oltp_delete, or by an auto_increment_increment above 1): {again}",
                sample.len()
            );
        }
    }
    Ok(())
}

/// Expects tables without rows.
///
/// # Errors
/// Of the server; or one line with the table and the mend.
pub fn empty(connection: &mut dyn Connection, workload: &str, tables: usize) -> Result<()> {
    for table in 1..=tables {
        if let Some(last) = last_id(connection, table)? {
            bail!(
                "sbtest{table} holds rows up to id {last} of an earlier run, {workload} starts at 1: \
                 run cleanup and prepare again"
            );
        }
    }
    Ok(())
}

/// The greatest id, nothing if there are no rows.
pub fn last_id(connection: &mut dyn Connection, table: usize) -> Result<Option<i64>> {
    number(one(connection, &format!("SELECT MAX(id) FROM sbtest{table}"))?)
}

fn number(text: Option<String>) -> Result<Option<i64>> {
    text.map(|text| text.parse().with_context(|| format!("an id `{text}`")))
        .transpose()
}

/// The first column of the first row.
fn one(connection: &mut dyn Connection, sql: &str) -> Result<Option<String>> {
    let rows = connection.rows(sql)?;
    Ok(rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next().flatten()))
}

struct Found {
    name: String,
    kind: String,
    length: Option<u64>,
}

impl Found {
    fn describe(&self) -> String {
        let length = self
            .length
            .map_or_else(String::new, |length| format!("({length})"));
        format!("{} {}{length}", self.name, self.kind)
    }
}

fn describe((name, kind, length): &Column) -> String {
    let length = length.map_or_else(String::new, |length| format!("({length})"));
    format!("{name} {kind}{length}")
}

fn columns_of_tables(connection: &mut dyn Connection) -> Result<BTreeMap<String, Vec<Found>>> {
    let sql = "SELECT TABLE_NAME, LOWER(COLUMN_NAME), LOWER(DATA_TYPE), CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS \
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'sbtest%' ORDER BY TABLE_NAME, ORDINAL_POSITION";
    let mut tables: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for row in connection.rows(sql)? {
        let mut cells = row.into_iter();
        let mut cell = || cells.next().flatten().unwrap_or_default();
        let (table, name, kind) = (cell(), cell(), cell());
        let length = cell().parse().ok();
        tables
            .entry(table)
            .or_default()
            .push(Found { name, kind, length });
    }
    Ok(tables)
}

/// The first tables of the database, in words.
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
