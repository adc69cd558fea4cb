//! Creates and recognizes the five stored procedures. Names, parameters and statements are those of
//! HammerDB, so that each tool runs on the other's schema. The texts in `sql/` contain both rule
//! sets; lines of only one of them are marked.

use anyhow::Result;

use crate::driver::Connection;

/// Comment of our procedures, by which `run` recognizes them.
const COMMENT: &str = "loadprint";
/// Comment of our procedures with the rules of TPC-C.
const COMMENT_STRICT: &str = "loadprint strict";

/// Name and text of each procedure.
const PROCEDURES: [(&str, &str); 5] = [
    ("NEWORD", include_str!("sql/neword.sql")),
    ("PAYMENT", include_str!("sql/payment.sql")),
    ("DELIVERY", include_str!("sql/delivery.sql")),
    ("OSTAT", include_str!("sql/ostat.sql")),
    ("SLEV", include_str!("sql/slev.sql")),
];

/// Creates the procedures in the chosen database.
pub fn create(connection: &mut dyn Connection, strict: bool) -> Result<()> {
    for (_, text) in PROCEDURES {
        connection.query(by_rules(text, strict).as_bytes())?;
    }
    Ok(())
}

/// Drops the procedures.
pub fn drop_all(connection: &mut dyn Connection) -> Result<()> {
    for (name, _) in PROCEDURES {
        connection.query(format!("DROP PROCEDURE IF EXISTS {name}").as_bytes())?;
    }
    Ok(())
}

/// The tool that created the procedures of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `prepare`, with these rules.
    Ours {
        /// The rules of TPC-C.
        strict: bool,
    },
    /// Another tool, with the same names.
    Foreign,
}

/// Reads the comments of the procedures; the inner error is the list of missing procedures.
pub fn origin(connection: &mut dyn Connection) -> Result<Result<Origin, Vec<&'static str>>> {
    let rows = connection.rows(
        "SELECT UPPER(ROUTINE_NAME), ROUTINE_COMMENT FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE = 'PROCEDURE'",
    )?;
    let comment = |name: &str| {
        let has_name = |row: &&Vec<Option<String>>| row.first().and_then(Option::as_deref) == Some(name);
        rows.iter()
            .find(has_name)
            .map(|row| row.get(1).cloned().flatten().unwrap_or_default())
    };
    let names = PROCEDURES.map(|(name, _)| name);
    let missing: Vec<_> = names.into_iter().filter(|name| comment(name).is_none()).collect();
    if !missing.is_empty() {
        return Ok(Err(missing));
    }
    let all = |text: &str| names.iter().all(|name| comment(name).as_deref() == Some(text));
    Ok(Ok(match (all(COMMENT), all(COMMENT_STRICT)) {
        (true, _) => Origin::Ours { strict: false },
        (_, true) => Origin::Ours { strict: true },
        _ => Origin::Foreign,
    }))
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
    let comment = if strict { COMMENT_STRICT } else { COMMENT };
    lines.join("\n").replace("{comment}", comment)
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
        for (name, text) in PROCEDURES {
            for strict in [false, true] {
                let text = by_rules(text, strict);
                assert!(text.starts_with(&format!("CREATE PROCEDURE {name}(")), "{name}");
                assert!(!text.contains('[') && !text.contains('{'), "{name}");
            }
        }
    }
}
