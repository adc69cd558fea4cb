//! Checks the sbtest tables. Before a run, that they exist, with the right columns and enough rows:
//! this reads the data dictionary and some rows by their key, never a whole table. For the verb
//! `check`, their rules, which reads whole tables.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::suite::cell;
use crate::suite::columns_of_tables;
use crate::suite::number;
use crate::workload::Finding;
use crate::workload::Setup;

/// The columns of the OLTP tables.
pub const OLTP: &str = "id int, k int, c char(120), pad char(60)";
/// The columns of `bulk_insert`.
pub const BULK: &str = "id int, k int";

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
pub fn tables(connection: &mut dyn Connection, workload: &str, tables: usize, columns: &str) -> Result<()> {
    let database = connection.rows("SELECT DATABASE()")?;
    let database = cell(&database, 0).unwrap_or_default();
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
        let described = actual.iter().map(|[name, kind, length]| match length.as_str() {
            "" => format!("{name} {kind}"),
            _ => format!("{name} {kind}({length})"),
        });
        let actual = described.collect::<Vec<_>>().join(", ");
        if actual != columns {
            bail!(
                "{name} in the database {database} is another workload's table, with the columns {actual}; {workload} needs {columns}: \
                 give another --mysql-db, or run cleanup and `loadprint-load prepare {workload}`"
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
    let list = list.join(",");
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
        let sql = format!("SELECT COUNT(*) FROM sbtest{table} WHERE id IN ({list})");
        let present: usize = number(&connection.rows(&sql)?, 0).unwrap_or(0);
        let missing = sample.len().saturating_sub(present);
        if missing > (sample.len() / GAPS).max(SMALL_GAPS.min(sample.len() / 2)) {
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
pub fn empty(connection: &mut dyn Connection, workload: &str, tables: usize) -> Result<()> {
    for table in 1..=tables {
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
fn last_id(connection: &mut dyn Connection, table: usize) -> Result<Option<i64>> {
    let rows = connection.rows(&format!("SELECT MAX(id) FROM sbtest{table}"))?;
    Ok(number(&rows, 0))
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

/// The text of a rule, and a query that returns the number of violations in the table `sbtest%u`.
type Rule = (String, String);

/// The rules of tables with ids 1 to `rows` and sysbench's text columns; `only`: without other ids.
pub fn oltp_rules(rows: i64, only: bool, index: bool) -> Vec<Rule> {
    let groups = |count: usize| vec!["_".repeat(11); count].join("-");
    let mut rules = vec![
        (
            format!("each id from 1 to {rows} exists once"),
            format!(
                "SELECT ({rows} - COUNT(DISTINCT id)) + (COUNT(*) - COUNT(DISTINCT id)) FROM sbtest%u WHERE id BETWEEN 1 AND {rows}"
            ),
        ),
        (
            "c has ten groups of eleven characters, pad has five".to_owned(),
            format!(
                "SELECT COUNT(*) FROM sbtest%u WHERE c NOT LIKE '{}' OR pad NOT LIKE '{}'",
                groups(10),
                groups(5)
            ),
        ),
    ];
    if only {
        rules.push((
            "there are no other ids".to_owned(),
            format!("SELECT COUNT(*) FROM sbtest%u WHERE id < 1 OR id > {rows}"),
        ));
    }
    if index {
        rules.push((
            "k has an index (--create-secondary)".to_owned(),
            "SELECT 1 - LEAST(1, COUNT(*)) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
             AND TABLE_NAME = 'sbtest%u' AND COLUMN_NAME = 'k' AND SEQ_IN_INDEX = 1"
                .to_owned(),
        ));
    }
    rules
}

/// Checks columns and rules: one finding per rule, with the first table that violates it.
pub fn check(
    setup: &Setup<'_>,
    workload: &str,
    count: usize,
    columns: &str,
    rules: &[Rule],
) -> Result<Vec<Finding>> {
    let mut connection = setup.driver.connect()?;
    let rule = format!("sbtest1 to sbtest{count} exist with their columns");
    if let Err(error) = tables(connection.as_mut(), workload, count, columns) {
        // Without the tables the queries of the other rules fail.
        return match error.downcast_ref::<DbError>() {
            Some(_) => Err(error),
            None => Ok(vec![Finding {
                rule,
                broken: Some(error.to_string()),
            }]),
        };
    }
    let mut findings = vec![Finding { rule, broken: None }];
    for (rule, sql) in rules {
        let mut broken = None;
        for table in 1..=count {
            let rows = connection.rows(&sql.replace("%u", &table.to_string()))?;
            let violations = cell(&rows, 0).with_context(|| format!("no result of {sql}"))?;
            if violations != "0" {
                broken = Some(format!("sbtest{table}, {violations} rows"));
                break;
            }
        }
        findings.push(Finding {
            rule: rule.clone(),
            broken,
        });
    }
    Ok(findings)
}
