//! The rules of the sbtest tables for the verb `check`, which reads whole tables.

use anyhow::Context;
use anyhow::Result;

use super::preflight;
use super::preflight::Column;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::workload::Finding;
use crate::workload::Setup;

/// The text of a rule, and a query that returns the number of violations in the table `sbtest%u`.
pub struct Rule {
    /// As printed.
    pub rule: String,
    /// With `%u` for the number of the table.
    pub sql: String,
}

impl Rule {
    /// A rule.
    pub fn new(rule: impl Into<String>, sql: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            sql: sql.into(),
        }
    }
}

/// The rules of tables with ids 1 to `rows` and sysbench's text columns; `only`: without other ids.
pub fn oltp_rules(rows: i64, only: bool, index: bool) -> Vec<Rule> {
    let group = "_".repeat(11);
    let groups = |count: usize| vec![group.as_str(); count].join("-");
    let mut rules = vec![
        Rule::new(
            format!("each id from 1 to {rows} exists once"),
            format!(
                "SELECT ({rows} - COUNT(DISTINCT id)) + (COUNT(*) - COUNT(DISTINCT id)) FROM sbtest%u WHERE id BETWEEN 1 AND {rows}"
            ),
        ),
        Rule::new(
            "c has ten groups of eleven characters, pad has five",
            format!(
                "SELECT COUNT(*) FROM sbtest%u WHERE c NOT LIKE '{}' OR pad NOT LIKE '{}'",
                groups(10),
                groups(5)
            ),
        ),
    ];
    if only {
        rules.push(Rule::new(
            "there are no other ids",
            format!("SELECT COUNT(*) FROM sbtest%u WHERE id < 1 OR id > {rows}"),
        ));
    }
    if index {
        rules.push(Rule::new(
            "k has an index (--create-secondary)",
            "SELECT 1 - LEAST(1, COUNT(*)) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
             AND TABLE_NAME = 'sbtest%u' AND COLUMN_NAME = 'k' AND SEQ_IN_INDEX = 1",
        ));
    }
    rules
}

/// Checks columns and rules: one finding per rule, with the first table that violates it.
pub fn check(
    setup: &Setup<'_>,
    workload: &str,
    tables: usize,
    columns: &[Column],
    rules: &[Rule],
) -> Result<Vec<Finding>> {
    let mut connection = setup.driver.connect()?;
    let rule = format!("sbtest1 to sbtest{tables} exist with their columns");
    if let Err(error) = preflight::tables(connection.as_mut(), workload, tables, columns) {
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
    for Rule { rule, sql } in rules {
        let mut broken = None;
        for table in 1..=tables {
            let rows = violations(connection.as_mut(), &sql.replace("%u", &table.to_string()))?;
            if rows != "0" {
                broken = Some(format!("sbtest{table}, {rows} rows"));
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

fn violations(connection: &mut dyn Connection, sql: &str) -> Result<String> {
    let rows = connection.rows(sql)?;
    let cell = rows.into_iter().next().and_then(|row| row.into_iter().next());
    cell.flatten().with_context(|| format!("no result of {sql}"))
}
