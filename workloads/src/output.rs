//! Prints lines to standard output or error. A closed pipe stops the printing and never the run.

use std::io;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Destination of printed lines.
#[derive(Debug, Default)]
pub struct Output {
    to_stderr: bool,
    closed: AtomicBool,
}

impl Output {
    /// Standard output; standard error if standard output contains data.
    pub fn new(to_stderr: bool) -> Self {
        Self {
            to_stderr,
            closed: AtomicBool::new(false),
        }
    }

    /// Writes a line and flushes it.
    pub fn line(&self, text: &str) {
        if self.closed.load(Relaxed) {
            return;
        }
        let written = if self.to_stderr {
            writeln!(io::stderr(), "{text}")
        } else {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush())
        };
        if written.is_err() {
            self.closed.store(true, Relaxed);
        }
    }
}
