//! Creates and recognizes the five stored procedures. Names, parameters and statements are those of
//! HammerDB, so that each tool runs on the other's schema.

use std::collections::HashMap;

use anyhow::Result;

use crate::driver::Connection;
use crate::driver::Row;

/// The procedures.
pub const NAMES: [&str; 5] = ["NEWORD", "PAYMENT", "DELIVERY", "OSTAT", "SLEV"];
const TEXTS: [&str; 5] = [
    include_str!("sql/neword.sql"),
    include_str!("sql/payment.sql"),
    include_str!("sql/delivery.sql"),
    include_str!("sql/ostat.sql"),
    include_str!("sql/slev.sql"),
];

/// The comment of our procedures, by which `run` recognizes them.
pub const COMMENT: &str = "loadprint";

/// Creates the procedures in the chosen database.
pub fn create(connection: &mut dyn Connection) -> Result<()> {
    for text in TEXTS {
        connection.query(text.as_bytes())?;
    }
    Ok(())
}

/// Drops the procedures.
pub fn drop_all(connection: &mut dyn Connection) -> Result<()> {
    for name in NAMES {
        connection.query(format!("DROP PROCEDURE IF EXISTS {name}").as_bytes())?;
    }
    Ok(())
}

/// The comments of the procedures of the database by their names.
pub fn comments(connection: &mut dyn Connection) -> Result<HashMap<String, String>> {
    let rows = connection.rows(
        "SELECT UPPER(ROUTINE_NAME), ROUTINE_COMMENT FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE = 'PROCEDURE'",
    )?;
    let pair = |row: Row| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        Some((cells.next()?, cells.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_creates_the_procedure_of_its_name() {
        for (name, text) in NAMES.into_iter().zip(TEXTS) {
            assert!(text.starts_with(&format!("CREATE PROCEDURE {name}(")), "{name}");
            assert!(text.contains(&format!("COMMENT '{COMMENT}'")), "{name}");
        }
    }
}
