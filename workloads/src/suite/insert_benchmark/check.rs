//! The rules of the data after any step, for the verb `check`: indexes agree with the rows, and
//! inserts equal deletes.

use anyhow::Result;

use super::pair::AHEAD;
use super::step::ROWS_BEFORE_INDEXES;
use super::table;
use crate::driver::Connection;
use crate::workload::Finding;
use crate::workload::Setup;

/// Rows of the largest DELETE of any step.
const LARGEST: u64 = 50;

/// Checks the rules of each table.
pub fn findings(setup: &Setup<'_>) -> Result<Vec<Finding>> {
    let mut connection = setup.driver.connect()?;
    let mut findings = Vec::new();
    let tables = table::names(setup.values, setup.threads)?;
    let clients = (setup.threads / tables.len()) as u64;
    for name in tables {
        let indexes = table::indexes(connection.as_mut(), &name)?;
        let rows = count(connection.as_mut(), &name, "PRIMARY")?;
        let indexed = table::indexed(&indexes, &name);
        findings.push(Finding {
            rule: format!("{name} has all three secondary indexes or none"),
            broken: (!indexed && !indexes.is_empty()).then(|| format!("it has {}", indexes.len())),
        });
        for (index, _) in &indexes {
            let entries = count(connection.as_mut(), &name, index)?;
            findings.push(Finding {
                rule: format!("{index} has an entry for each row"),
                broken: (entries != rows).then(|| format!("{entries} entries, {rows} rows")),
            });
        }
        let loaded = u64::try_from(setup.values.int("rows-i0")?)?;
        let before_indexes = if indexed { ROWS_BEFORE_INDEXES } else { 0 };
        // l.x inserts with one client per table.
        let expected = loaded * clients + before_indexes;
        let tolerance = if indexed { AHEAD * LARGEST * clients } else { 0 };
        findings.push(Finding {
            rule: format!("{name} has {expected} rows (± {tolerance} between inserts and deletes)"),
            broken: (rows.abs_diff(expected) > tolerance).then(|| format!("{rows} rows")),
        });
    }
    Ok(findings)
}

fn count(connection: &mut dyn Connection, table: &str, index: &str) -> Result<u64> {
    let rows = connection.rows(&format!("SELECT COUNT(*) FROM {table} FORCE INDEX (`{index}`)"))?;
    let cell = rows.first().and_then(|row| row.first()?.as_deref());
    Ok(cell.unwrap_or_default().parse()?)
}
