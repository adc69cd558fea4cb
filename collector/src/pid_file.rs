//! The pid file of a recorder: it appears after the first tick and is removed when the recording
//! ends.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use loadprint_recording::files;

/// The path of the file, if one was requested. Dropping it removes the file.
#[derive(Debug)]
pub struct PidFile(pub Option<PathBuf>);

impl PidFile {
    /// Writes the file in one step: a program that waits for it reads it at once.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let text = format!("{}\n", std::process::id());
        files::write(path, text.as_bytes()).context("cannot write the pid file")
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It does not exist if the recording ended before the first tick.
            drop(fs::remove_file(path));
        }
    }
}
