//! The tables pi1, pi2, …, one per client, or pi1 for all clients: creates, checks and drops them.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::step::Step;
use crate::driver::Connection;
use crate::options::Values;
use crate::workload::Setup;

const COLUMNS: &str = "transactionid BIGINT NOT NULL AUTO_INCREMENT, dateandtime DATETIME, cashregisterid INT NOT NULL, \
     customerid INT NOT NULL, productid INT NOT NULL, price INT NOT NULL, data VARCHAR(4000), PRIMARY KEY (transactionid)";
const NAMES: &str = "transactionid, dateandtime, cashregisterid, customerid, productid, price, data";
/// Suffix of the name and columns of each secondary index.
pub const INDEXES: [(&str, &str); 3] = [
    ("marketsegment", "productid, customerid, price"),
    ("registersegment", "cashregisterid, customerid, price"),
    ("pdc", "price, dateandtime, customerid"),
];

/// The names of the tables for this number of clients.
pub fn names(values: &Values, clients: usize) -> Result<Vec<String>> {
    let tables = if values.flag("shared-table")? { 1 } else { clients };
    Ok((1..=tables).map(|number| format!("pi{number}")).collect())
}

/// One statement that adds all three indexes.
pub fn alter(table: &str) -> String {
    let add = INDEXES.map(|(name, columns)| format!("ADD INDEX {table}_{name} ({columns})"));
    format!("ALTER TABLE {table} {}", add.join(", "))
}

/// The smallest and the largest transactionid; none if the table is empty.
pub fn span(connection: &mut dyn Connection, table: &str) -> Result<Option<(i64, i64)>> {
    let rows = connection.rows(&format!(
        "SELECT MIN(transactionid), MAX(transactionid) FROM {table}"
    ))?;
    let cell = |column: usize| -> Option<i64> { rows.first()?.get(column)?.as_deref()?.parse().ok() };
    Ok(cell(0).zip(cell(1)))
}

/// Creates the tables, without rows.
pub fn prepare(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    for table in names(setup.values, setup.threads)? {
        setup
            .output
            .line(&format!("Creating table '{table}' (the step l.i0 loads it)..."));
        connection
            .query(format!("CREATE TABLE {table} ({COLUMNS}) ENGINE=InnoDB").as_bytes())
            .with_context(|| format!("prepare {table}"))?;
    }
    Ok(())
}

/// Drops the tables of any number of clients, recognized by name and column.
pub fn cleanup(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let tables = connection.rows(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = DATABASE() \
         AND table_name REGEXP '^pi[0-9]+$' AND column_name = 'transactionid' ORDER BY LENGTH(table_name), table_name",
    )?;
    for table in tables.into_iter().flatten().flatten() {
        setup.output.line(&format!("Dropping table '{table}'..."));
        connection.query(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
    }
    Ok(())
}

/// The secondary indexes of a table, as (name, columns).
pub fn indexes(connection: &mut dyn Connection, table: &str) -> Result<Vec<(String, String)>> {
    let rows = connection.rows(&format!(
        "SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', ') FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND table_name = '{table}' AND index_name <> 'PRIMARY' GROUP BY index_name"
    ))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        cells.next().flatten().zip(cells.next().flatten())
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// True if all three indexes exist.
pub fn indexed(indexes: &[(String, String)], table: &str) -> bool {
    let exists = |(name, columns): (&str, &str)| {
        indexes
            .iter()
            .any(|(index, indexed)| *index == format!("{table}_{name}") && indexed == columns)
    };
    INDEXES.into_iter().all(exists)
}

/// Checks that the tables are in the state from which `step` starts.
///
/// # Errors
/// The step, or `prepare`, to run first.
pub fn preflight(connection: &mut dyn Connection, values: &Values, clients: usize, step: Step) -> Result<()> {
    let name = step.name();
    for table in names(values, clients)? {
        let columns = connection.rows(&format!(
            "SELECT column_name FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = '{table}' ORDER BY ordinal_position"
        ))?;
        let columns: Vec<String> = columns.into_iter().flatten().flatten().collect();
        if columns.is_empty() {
            bail!(
                "table {table} is missing: run `loadprint-load prepare insert_benchmark --threads={clients}` with the same options"
            );
        }
        if columns.join(", ") != NAMES {
            bail!(
                "table {table} has the columns {}, not {NAMES}: give another --mysql-db",
                columns.join(", ")
            );
        }
        let empty = span(connection, &table)?.is_none();
        let present = indexes(connection, &table)?;
        match step {
            Step::Load if !empty => bail!(
                "step {name}: table {table} has rows already: run cleanup and prepare, or leave {name} out of --steps"
            ),
            Step::Load | Step::Index if !present.is_empty() => bail!(
                "step {name}: table {table} has secondary indexes already: run cleanup and prepare, or leave {name} out of --steps"
            ),
            Step::Load => {}
            _ if empty => bail!("step {name}: table {table} has no rows: run the step l.i0 first"),
            Step::Churn { .. } | Step::Query { .. } if !indexed(&present, &table) => {
                bail!("step {name}: table {table} lacks secondary indexes: run the step l.x first")
            }
            _ => {}
        }
    }
    Ok(())
}
