//! Reads SHOW ENGINE INNODB STATUS, for servers without status counters of checkpoints (MySQL
//! before 8.0.30).

use loadprint_recording::rows::Rows;

use super::client::Failure;
use super::server::Kind;
use super::server::Link;

/// The lines of the section LOG, and their metrics (`log_print` in storage/innobase/log).
const LINES: [(&str, &str); 3] = [
    ("Log sequence number", "innodb_status.log_sequence_number"),
    ("Log flushed up to", "innodb_status.log_flushed_up_to"),
    ("Last checkpoint at", "innodb_status.last_checkpoint_at"),
];

/// Appends the redo log positions.
///
/// # Errors
/// The error of the server.
pub fn read(link: &mut Link, rows: &mut Rows) -> Result<(), Failure> {
    link.query(Kind::ShowEngineStatus, "SHOW ENGINE INNODB STATUS", |cells| {
        parse(cells.get(2).unwrap_or_default(), rows);
    })
}

/// Parses the lines; a missing line has no row.
///
/// ```text
/// Log sequence number          34256431
/// Last checkpoint at           34256431
/// ```
pub fn parse(page: &[u8], rows: &mut Rows) {
    for line in String::from_utf8_lossy(page).lines() {
        for (start, metric) in LINES {
            let Some(number) = line.strip_prefix(start) else {
                continue;
            };
            // Other lines of MySQL 8.0 start in the same way: the rest must be a number.
            if let Ok(number) = number.trim().parse() {
                rows.row(&[metric.as_bytes()]);
                rows.int(number);
                rows.null();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_section_log_are_parsed() {
        // The section of MariaDB 10.11 and MySQL 5.7, then that of MySQL 8.0 and later.
        let old = "LOG\n---\nLog sequence number 45118\nLog flushed up to   45118\nPages flushed up to 45118\n\
                   Last checkpoint at  45102\n0 pending log flushes";
        let new = "LOG\n---\nLog sequence number          19671542\nLog buffer assigned up to    19671542\n\
                   Log flushed up to            19671540\nLast checkpoint at           19671532\n";
        for (page, values) in [
            (old, [45118, 45118, 45102]),
            (new, [19671542, 19671540, 19671532]),
        ] {
            let mut rows = Rows::default();
            parse(page.as_bytes(), &mut rows);
            let positions: Vec<_> = (0..rows.len()).map(|row| rows.value(row, 0, 2)).collect();
            assert_eq!(positions, values.map(loadprint_recording::rows::Value::Bits));
        }
    }
}
