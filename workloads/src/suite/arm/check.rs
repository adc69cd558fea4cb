//! Checks the tables before a run, and their rows for the verb `check`.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::mix::Mix;
use super::mix::named;
use super::scenario::SCENARIOS;
use super::scenario::Scenario;
use crate::driver::Connection;
use crate::workload::Finding;
use crate::workload::Setup;

/// The columns that the statements use.
const COLUMNS: [(&str, &str); 3] = [
    (
        "arm_tran",
        "id, def_id, app_id, user_id, start_us, resp_ns, status, corr, parent_corr",
    ),
    ("arm_metric", "tran_id, pos, mdef, val"),
    ("arm_ctx", "tran_id, pos, pdef, val"),
];

/// Expects the tables with their columns.
pub fn preflight(connection: &mut dyn Connection) -> Result<()> {
    for (table, columns) in COLUMNS {
        let rows = connection.rows(&format!(
            "SELECT column_name FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = '{table}' ORDER BY ordinal_position"
        ))?;
        let present: Vec<String> = rows.into_iter().flatten().flatten().collect();
        if present.is_empty() {
            bail!("table {table} is missing: run `loadprint-load prepare arm_insert`");
        }
        let present = present.join(", ");
        if present != columns {
            bail!(
                "table {table} has the columns {present}; arm_insert writes {columns}: run cleanup and prepare, or give another --mysql-db"
            );
        }
    }
    Ok(())
}

const RECORDS: &str = "SELECT parent, metrics, contexts, COUNT(*), SUM(gaps) FROM ( \
     SELECT t.parent_corr IS NOT NULL AS parent, COALESCE(m.n, 0) AS metrics, COALESCE(c.n, 0) AS contexts, \
     COALESCE(m.n, 0) <> COALESCE(m.last, 0) OR COALESCE(c.n, 0) <> COALESCE(c.last, 0) AS gaps FROM arm_tran t \
     LEFT JOIN (SELECT tran_id, COUNT(*) AS n, MAX(pos) AS last FROM arm_metric GROUP BY tran_id) m ON m.tran_id = t.id \
     LEFT JOIN (SELECT tran_id, COUNT(*) AS n, MAX(pos) AS last FROM arm_ctx GROUP BY tran_id) c ON c.tran_id = t.id \
     ) AS records GROUP BY parent, metrics, contexts ORDER BY parent, metrics, contexts";

/// Checks the rules. A record may be of any scenario of the study; with `--check-strict`, only of
/// the named ones.
pub fn findings(setup: &Setup<'_>) -> Result<Vec<Finding>> {
    let mut connection = setup.driver.connect()?;
    preflight(connection.as_mut())?;
    let allowed = allowed(setup)?;
    let mut findings = Vec::new();
    for table in ["arm_metric", "arm_ctx"] {
        let orphans = connection.rows(&format!(
            "SELECT COUNT(*), MIN(tran_id) FROM {table} WHERE NOT EXISTS (SELECT * FROM arm_tran WHERE id = tran_id)"
        ))?;
        let orphans = orphans.first().context("COUNT gave no row")?;
        let cell = |column: usize| orphans.get(column).cloned().flatten().unwrap_or_default();
        findings.push(Finding {
            rule: format!("each row of {table} belongs to a record"),
            broken: (cell(0) != "0")
                .then(|| format!("{} do not, the first one with tran_id {}", cell(0), cell(1))),
        });
    }
    let mut counts = Vec::new();
    let (mut unknown, mut gaps) = (Vec::new(), 0);
    for row in connection.rows(RECORDS)? {
        let cell = |column: usize| -> Option<u64> { row.get(column)?.as_deref()?.parse().ok() };
        let [parent, metrics, contexts, count] = [0, 1, 2, 3].map(|column| cell(column).unwrap_or_default());
        gaps += cell(4).unwrap_or_default();
        let matches = |scenario: &&Scenario| {
            (
                u64::from(scenario.parent),
                scenario.metrics as u64,
                scenario.contexts as u64,
            ) == (parent, metrics, contexts)
        };
        match allowed.iter().find(matches) {
            Some(scenario) => counts.push(format!("{count} {}", scenario.name)),
            None => unknown.push(format!(
                "{count} records with parent {parent}, metrics {metrics}, contexts {contexts}"
            )),
        }
    }
    findings.push(Finding {
        rule: "details of a record are numbered without gaps".to_owned(),
        broken: (gaps > 0).then(|| format!("gaps in {gaps} records")),
    });
    let names: Vec<&str> = allowed.iter().map(|scenario| scenario.name).collect();
    let counts = if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(", ")
    };
    findings.push(Finding {
        rule: format!("each record has the details of {} ({counts})", names.join(" or ")),
        broken: (!unknown.is_empty()).then(|| unknown.join(", ")),
    });
    Ok(findings)
}

fn allowed(setup: &Setup<'_>) -> Result<Vec<Scenario>> {
    let values = setup.values;
    let named = match values.text("mix")? {
        Some(_) => Mix::of(values)?.scenarios().collect(),
        None => named(values)?,
    };
    if values.flag("check-strict")? {
        return Ok(named);
    }
    // Earlier runs may have written any of the seven scenarios.
    let others = named.into_iter().filter(|scenario| scenario.name == "custom");
    Ok(SCENARIOS.into_iter().chain(others).collect())
}
