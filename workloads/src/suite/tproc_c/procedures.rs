//! Creates and recognizes the five stored procedures. Names, parameters and statements are those of
//! HammerDB, so that each tool runs on the other's schema. The texts in `sql/` contain both rule
//! sets; lines of only one of them are marked.

use std::collections::HashMap;

use anyhow::Result;

use crate::driver::Connection;
use crate::driver::Row;

/// The procedures; `by_rules` completes their texts.
pub const NAMES: [&str; 5] = ["NEWORD", "PAYMENT", "DELIVERY", "OSTAT", "SLEV"];
const TEXTS: [&str; 5] = [
    include_str!("sql/neword.sql"),
    include_str!("sql/payment.sql"),
    include_str!("sql/delivery.sql"),
    include_str!("sql/ostat.sql"),
    include_str!("sql/slev.sql"),
];

/// The comment of our procedures, by which `run` recognizes them.
pub const fn comment(strict: bool) -> &'static str {
    if strict { "loadprint strict" } else { "loadprint" }
}

/// Creates the procedures in the chosen database.
pub fn create(connection: &mut dyn Connection, strict: bool) -> Result<()> {
    for text in TEXTS {
        connection.query(by_rules(text, strict).as_bytes())?;
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

/// The lines of one rule set.
fn by_rules(text: &str, strict: bool) -> String {
    let (kept, dropped) = if strict {
        ("[strict]", "[hammerdb]")
    } else {
        ("[hammerdb]", "[strict]")
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(dropped))
        .map(|line| line.strip_prefix(kept).unwrap_or(line))
        .collect();
    lines.join("\n").replace("{comment}", comment(strict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_other_rules_are_left_out() {
        let text = "a\n[strict] b\n[hammerdb] c\n'{comment}'";
        assert_eq!(by_rules(text, false), "a\n c\n'loadprint'");
        assert_eq!(by_rules(text, true), "a\n b\n'loadprint strict'");
    }

    #[test]
    fn every_text_creates_the_procedure_of_its_name() {
        for (name, text) in NAMES.into_iter().zip(TEXTS) {
            for strict in [false, true] {
                let text = by_rules(text, strict);
                assert!(text.starts_with(&format!("CREATE PROCEDURE {name}(")), "{name}");
                assert!(!text.contains('[') && !text.contains('{'), "{name}");
            }
        }
    }
}
