//! The tables of `arm_insert`: records, two detail tables, and constant definitions, without foreign
//! keys. Creates and drops them, checks them before a run, and their rows for the verb `check`.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::Options;
use super::scenario::Mix;
use super::scenario::SCENARIOS;
use super::scenario::Scenario;
use super::scenario::named;
use crate::driver::Connection;
use crate::suite::cell;
use crate::suite::columns_of_tables;
use crate::workload::Finding;
use crate::workload::Setup;

/// Name, columns in the order of the statements, and definition of a table.
pub type Table = (&'static str, &'static str, &'static str);

/// Records, metrics, context values.
pub const TABLES: [Table; 3] = [
    (
        "arm_tran",
        "id, def_id, app_id, user_id, start_us, resp_ns, status, corr, parent_corr",
        "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, def_id INT NOT NULL, app_id INT NOT NULL, user_id INT NOT NULL, \
         start_us BIGINT NOT NULL, resp_ns BIGINT NOT NULL, status TINYINT NOT NULL, corr BINARY(16) NULL, \
         parent_corr BINARY(16) NULL, KEY k_def (def_id, start_us)",
    ),
    (
        "arm_metric",
        "tran_id, pos, mdef, val",
        "tran_id BIGINT UNSIGNED NOT NULL, pos TINYINT NOT NULL, mdef INT NOT NULL, val BIGINT NOT NULL, PRIMARY KEY (tran_id, pos)",
    ),
    (
        "arm_ctx",
        "tran_id, pos, pdef, val",
        "tran_id BIGINT UNSIGNED NOT NULL, pos TINYINT NOT NULL, pdef INT NOT NULL, val CHAR(32) NOT NULL, PRIMARY KEY (tran_id, pos)",
    ),
];

/// Tables of definitions and their rows.
const DEFINITIONS: [(&str, usize); 3] = [("arm_tran_def", 50), ("arm_metric_def", 3), ("arm_ctx_def", 20)];

/// Creates the tables and their definitions.
pub fn prepare(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let mut create = |table: &str, sql: String| {
        let place = || format!("prepare {table}");
        connection.query(sql.as_bytes()).with_context(place)
    };
    for (table, _, columns) in TABLES {
        setup.output.line(&format!("Creating table '{table}'..."));
        create(table, format!("CREATE TABLE {table} ({columns}) ENGINE=InnoDB"))?;
    }
    for (table, rows) in DEFINITIONS {
        setup
            .output
            .line(&format!("Creating table '{table}', {rows} rows..."));
        let columns = "id INT NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL";
        create(table, format!("CREATE TABLE {table} ({columns}) ENGINE=InnoDB"))?;
        let names: Vec<String> = (1..=rows).map(|id| format!("({id}, '{table} {id}')")).collect();
        create(table, format!("INSERT INTO {table} VALUES {}", names.join(", ")))?;
    }
    Ok(())
}

/// Drops the tables.
pub fn cleanup(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let names = TABLES.map(|(table, ..)| table);
    for table in names.into_iter().chain(DEFINITIONS.map(|(table, _)| table)) {
        setup.output.line(&format!("Dropping table '{table}'..."));
        connection.query(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
    }
    Ok(())
}

/// Expects the tables with their columns.
pub fn preflight(connection: &mut dyn Connection) -> Result<()> {
    let tables = columns_of_tables(connection)?;
    for (table, columns, _) in TABLES {
        let Some(present) = tables.get(table) else {
            bail!("table {table} is missing: run `loadprint-load prepare arm_insert`");
        };
        let names: Vec<&str> = present.iter().map(|[name, ..]| name.as_str()).collect();
        let present = names.join(", ");
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
pub fn check(setup: &Setup<'_>) -> Result<Vec<Finding>> {
    let mut connection = setup.driver.connect()?;
    preflight(connection.as_mut())?;
    let allowed = allowed(setup)?;
    let mut findings = Vec::new();
    for table in ["arm_metric", "arm_ctx"] {
        let orphans = connection.rows(&format!(
            "SELECT COUNT(*), MIN(tran_id) FROM {table} WHERE NOT EXISTS (SELECT * FROM arm_tran WHERE id = tran_id)"
        ))?;
        let [count, first] = [0, 1].map(|column| cell(&orphans, column).unwrap_or_default());
        findings.push(Finding {
            rule: format!("each row of {table} belongs to a record"),
            broken: (count != "0").then(|| format!("{count} do not, the first one with tran_id {first}")),
        });
    }
    let (mut counts, mut unknown, mut gaps) = (Vec::new(), Vec::new(), 0);
    for row in connection.rows(RECORDS)? {
        let number = |column: usize| -> Option<usize> { row.get(column)?.as_deref()?.parse().ok() };
        let [parent, metrics, contexts, count, with_gaps] =
            [0, 1, 2, 3, 4].map(|column| number(column).unwrap_or_default());
        gaps += with_gaps;
        let details = (parent == 1, metrics, contexts);
        let matches =
            |scenario: &&Scenario| (scenario.parent, scenario.metrics, scenario.contexts) == details;
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
    if counts.is_empty() {
        counts.push("none".to_owned());
    }
    findings.push(Finding {
        rule: format!(
            "each record has the details of {} ({})",
            names.join(" or "),
            counts.join(", ")
        ),
        broken: (!unknown.is_empty()).then(|| unknown.join(", ")),
    });
    Ok(findings)
}

fn allowed(setup: &Setup<'_>) -> Result<Vec<Scenario>> {
    let options: Options = setup.values.read()?;
    let named = match options.mix {
        Some(_) => Mix::of(setup.values)?.scenarios().collect(),
        None => named(&options)?,
    };
    if options.check_strict {
        return Ok(named);
    }
    // Earlier runs may have written any of the seven scenarios.
    let others = named.into_iter().filter(|scenario| scenario.name == "custom");
    Ok(SCENARIOS.into_iter().chain(others).collect())
}
