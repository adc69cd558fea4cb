//! supervisor.log: what was started, stopped and removed, with times. Arguments and environments stay out of it:
//! they may hold secrets.

use std::io::Write;
use std::time::SystemTime;

/// Writes one line to stderr, which the daemon has open on supervisor.log. A full disk loses the line, nothing else.
pub fn line(text: &str) {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    drop(writeln!(std::io::stderr(), "{now} {text}"));
}
