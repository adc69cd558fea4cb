//! Writes `phases.jsonl`: begin and end of each phase of a workload on both clocks, one line per
//! event.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::At;
use crate::Result;
use crate::clock;
use crate::files::RunFile;

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
    pub fn create(file: &RunFile, boot_id: &str) -> Result<Self> {
        Ok(Self {
            file: file.create()?,
            path: file.path(),
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_stamp_is_on_disk_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("phases.jsonl");
        let mut log = PhaseLog::create(&RunFile::at(&path).unwrap(), "boot").unwrap();
        log.begin("measure").unwrap();
        let lines = |path: &Path| -> Vec<Value> {
            fs::read_to_string(path)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        assert_eq!(lines(&path).len(), 1);
        log.end("measure").unwrap();
        let lines = lines(&path);
        assert_eq!(
            (lines[0]["event"].as_str(), lines[1]["event"].as_str()),
            (Some("begin"), Some("end"))
        );
        assert!(lines[1]["monotonic_ns"].as_i64() >= lines[0]["monotonic_ns"].as_i64());
        assert_eq!(lines[0]["boot_id"], "boot");
    }
}
