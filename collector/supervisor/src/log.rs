//! Writes supervisor.log: starts, stops and removals with times. It contains no arguments and
//! environments, which may be secret.

use std::io::Write;
use std::time::SystemTime;

/// Writes one line to stderr, which is supervisor.log. A full disk only loses the line.
pub fn line(text: &str) {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    drop(writeln!(std::io::stderr(), "{now} {text}"));
}
