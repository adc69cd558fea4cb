//! Times appends of 4 KiB, each followed by fdatasync(2), to a temporary file on the data device.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use super::pin;
use super::slices::Part;
use super::slices::time;
use crate::wakeup::Signals;

const PREFIX: &str = ".loadprint-canary-";
const BLOCK: usize = 4096;
const APPENDS: usize = 100;
/// A slow disk completes fewer appends within this time.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Times the appends. An I/O error is not an error here: the part records it as the reason.
///
/// # Errors
/// When the CPU cannot be used.
pub fn appends(dir: &Path, cpu: u32, signals: &Signals) -> anyhow::Result<Part> {
    pin::pin_thread(cpu)?;
    remove_leftovers(dir);
    let lane = Temporary::create(dir).and_then(|mut temporary| {
        let block = [0x5a; BLOCK];
        let begun = Instant::now();
        let proceed = || begun.elapsed() < TIME_LIMIT && !matches!(signals.stop_requested(), Ok(true));
        time(cpu, APPENDS, proceed, |_| {
            temporary.file.write_all(&block)?;
            temporary.file.sync_data()
        })
    });
    Ok(match lane {
        Ok(lane) => Part::done("fsync", 1, "append", vec![lane]),
        Err(error) => {
            let reason = format!("{}: {error}", dir.display());
            eprintln!("loadprint-collect: warning: canary: part fsync was skipped: {reason}");
            Part::skipped("fsync", reason)
        }
    })
}

/// A temporary file with a name, because some file systems do not sync unnamed files; removed when
/// dropped.
#[derive(Debug)]
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    fn create(dir: &Path) -> io::Result<Self> {
        let path = dir.join(format!("{PREFIX}{}", std::process::id()));
        let file = File::create_new(&path)?;
        Ok(Self { file, path })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            eprintln!(
                "loadprint-collect: warning: {}: cannot be removed: {error}",
                self.path.display()
            );
        }
    }
}

/// Removes the files of canaries that were killed: no process has the pid in their names.
fn remove_leftovers(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_string_lossy()
            .strip_prefix(PREFIX)
            .and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // If this fails, creating the next file fails as well and is reported.
            drop(fs::remove_file(entry.path()));
        }
    }
}
