//! Creates and drops the tables of `arm_insert`: records, two detail tables, and constant
//! definitions, without foreign keys.

use anyhow::Context;
use anyhow::Result;

use super::record::DEFINITIONS;
use crate::workload::Setup;

const TABLES: [(&str, &str); 3] = [
    (
        "arm_tran",
        "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, def_id INT NOT NULL, app_id INT NOT NULL, user_id INT NOT NULL, \
         start_us BIGINT NOT NULL, resp_ns BIGINT NOT NULL, status TINYINT NOT NULL, corr BINARY(16) NULL, \
         parent_corr BINARY(16) NULL, KEY k_def (def_id, start_us)",
    ),
    (
        "arm_metric",
        "tran_id BIGINT UNSIGNED NOT NULL, pos TINYINT NOT NULL, mdef INT NOT NULL, val BIGINT NOT NULL, PRIMARY KEY (tran_id, pos)",
    ),
    (
        "arm_ctx",
        "tran_id BIGINT UNSIGNED NOT NULL, pos TINYINT NOT NULL, pdef INT NOT NULL, val CHAR(32) NOT NULL, PRIMARY KEY (tran_id, pos)",
    ),
];

/// Creates the tables and their definitions.
pub fn prepare(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let parent_key = setup.values.flag("parent-key")?;
    for (table, columns) in TABLES {
        let key = if parent_key && table == "arm_tran" {
            ", KEY k_parent (parent_corr)"
        } else {
            ""
        };
        setup.output.line(&format!("Creating table '{table}'..."));
        let sql = format!("CREATE TABLE {table} ({columns}{key}) ENGINE=InnoDB");
        connection
            .query(sql.as_bytes())
            .with_context(|| format!("prepare {table}"))?;
    }
    for (table, rows) in DEFINITIONS {
        setup
            .output
            .line(&format!("Creating table '{table}', {rows} rows..."));
        let create = format!(
            "CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL) ENGINE=InnoDB"
        );
        connection
            .query(create.as_bytes())
            .with_context(|| format!("prepare {table}"))?;
        let names: Vec<String> = (1..=rows).map(|id| format!("({id}, '{table} {id}')")).collect();
        let insert = format!("INSERT INTO {table} VALUES {}", names.join(", "));
        connection
            .query(insert.as_bytes())
            .with_context(|| format!("prepare {table}"))?;
    }
    Ok(())
}

/// Drops the tables.
pub fn cleanup(setup: &Setup<'_>) -> Result<()> {
    let mut connection = setup.driver.connect()?;
    let names = TABLES
        .iter()
        .map(|(table, _)| table)
        .chain(DEFINITIONS.iter().map(|(table, _)| table));
    for table in names {
        setup.output.line(&format!("Dropping table '{table}'..."));
        connection.query(format!("DROP TABLE IF EXISTS {table}").as_bytes())?;
    }
    Ok(())
}
