//! Writes `phases.jsonl`: begin and end of each phase of a workload on both clocks, one line per
//! event.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::At;
use crate::Result;
use crate::clock;
use crate::files;

/// An open phase log.
#[derive(Debug)]
pub struct PhaseLog {
    file: File,
    path: PathBuf,
    boot_id: String,
}

impl PhaseLog {
    /// Creates an empty log; replaces an existing one.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, boot_id: &str) -> Result<Self> {
        Ok(Self {
            file: files::create(path)?,
            path: path.to_owned(),
            boot_id: boot_id.to_owned(),
        })
    }

    /// Records the start of `phase` (`prepare`, `warmup`, `measure`, `drain`, …).
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn begin(&mut self, phase: &str) -> Result<()> {
        self.stamp(phase, "begin")
    }

    /// Records the end of `phase`.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn end(&mut self, phase: &str) -> Result<()> {
        self.stamp(phase, "end")
    }

    fn stamp(&mut self, phase: &str, event: &str) -> Result<()> {
        let line = json!({
            "phase": phase,
            "event": event,
            "monotonic_ns": clock::monotonic_ns(),
            "realtime_ns": clock::realtime_ns(),
            "boot_id": self.boot_id,
        });
        // One write per line: no event is lost when this process is killed.
        self.file.write_all(format!("{line}\n").as_bytes()).at(&self.path)
    }
}
