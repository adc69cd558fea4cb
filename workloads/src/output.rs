//! Prints lines to standard output or error. A line that cannot be printed, as to a closed pipe, never ends
//! the run.

use std::io;
use std::io::Write;

/// Destination of printed lines.
#[derive(Debug, Default)]
pub struct Output {
    to_stderr: bool,
}

impl Output {
    /// Standard output; standard error if standard output contains data.
    pub fn new(to_stderr: bool) -> Self {
        Self { to_stderr }
    }

    /// Writes a line and flushes it.
    pub fn line(&self, text: &str) {
        if self.to_stderr {
            writeln!(io::stderr(), "{text}").ok();
        } else {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush()).ok();
        }
    }
}
