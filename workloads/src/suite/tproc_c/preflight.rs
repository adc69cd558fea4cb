//! Checks before a run that the database has the tables, columns, warehouses and procedures; errors
//! contain the fix.

use anyhow::Result;
use anyhow::bail;

use super::given_warehouses;
use super::procedures;
use super::tables::TABLES;
use super::tables::names;
use crate::driver::Connection;
use crate::options::Values;
use crate::suite::columns_of_tables;
use crate::suite::number;

/// Refuses unsuitable data; warns on standard error about unexpected results.
///
/// # Errors
/// One line with the fix.
pub fn preflight(values: &Values, threads: usize, connection: &mut dyn Connection) -> Result<()> {
    columns(connection)?;
    let rows = connection.rows("SELECT MAX(w_id) FROM warehouse")?;
    let present: i64 = number(&rows, 0).unwrap_or(0);
    if present == 0 {
        bail!("table warehouse is empty: run `loadprint-load cleanup tproc_c` and `prepare tproc_c`");
    }
    if let Some(given) = given_warehouses(values)?
        && given > present
    {
        bail!(
            "--warehouses={given}, but the database has {present}: lower it, or run `loadprint-load cleanup tproc_c` and \
             `prepare tproc_c --warehouses={given}`"
        );
    }
    let used = given_warehouses(values)?.unwrap_or(present);
    if usize::try_from(used)? < threads {
        eprintln!(
            "loadprint-load: warning: {threads} threads on {used} warehouses: threads share warehouses and wait for row locks of each \
             other; HammerDB recommends several warehouses per virtual user"
        );
    }
    procedures_fit(connection)
}

fn columns(connection: &mut dyn Connection) -> Result<()> {
    let present = columns_of_tables(connection)?;
    let tables = TABLES.map(|(table, ..)| table);
    let missing: Vec<&str> = tables
        .into_iter()
        .filter(|table| !present.contains_key(*table))
        .collect();
    if !missing.is_empty() {
        bail!(
            "the database has no table {}: run `loadprint-load prepare tproc_c` with the same --mysql-db",
            missing.join(", ")
        );
    }
    for (table, columns, _) in TABLES {
        let is_missing = |name: &&str| !present[table].iter().any(|[column, ..]| column == name);
        if let Some(name) = names(columns).find(is_missing) {
            bail!(
                "table {table} has no column {name} and does not belong to TPROC-C: give another --mysql-db"
            );
        }
    }
    Ok(())
}

fn procedures_fit(connection: &mut dyn Connection) -> Result<()> {
    let comments = procedures::comments(connection)?;
    let missing: Vec<&str> = procedures::NAMES
        .into_iter()
        .filter(|name| !comments.contains_key(*name))
        .collect();
    if !missing.is_empty() {
        bail!(
            "the database has no procedure {}: run `loadprint-load cleanup tproc_c` and `prepare tproc_c`",
            missing.join(", ")
        );
    }
    if procedures::NAMES
        .iter()
        .any(|name| comments[*name] != procedures::COMMENT)
    {
        eprintln!(
            "loadprint-load: warning: another tool (HammerDB?) created the procedures: they do not report the 1 % of new orders that \
             they roll back, so that `events` includes these; nopm and tpm are exact"
        );
    }
    Ok(())
}
