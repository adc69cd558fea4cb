//! Appends of 4 KiB, each synced, to a temporary file on the data device.

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
use crate::schedule::Stop;

const PREFIX: &str = ".loadprint-canary-";
const BLOCK: usize = 4096;
const APPENDS: usize = 100;
/// On a slow disk there are fewer of them.
const MOST: Duration = Duration::from_millis(500);

/// Appends and syncs; a disk that refuses is a part with a reason, not an error.
///
/// # Errors
/// When the CPU cannot be used.
pub fn appends(dir: &Path, cpu: u32, stop: &Stop) -> anyhow::Result<Part> {
    pin::here(cpu)?;
    remove_leftovers(dir);
    let lane = Temporary::create(dir).and_then(|mut temporary| {
        let block = [0x5a; BLOCK];
        let begun = Instant::now();
        let go_on = || begun.elapsed() < MOST && !matches!(stop.wait_until(0), Ok(true));
        time(cpu, APPENDS, go_on, |_| {
            temporary.file.write_all(&block)?;
            temporary.file.sync_data()
        })
    });
    Ok(match lane {
        Ok(lane) => Part::done("fsync", 1, "append", vec![lane]),
        Err(error) => {
            let reason = format!("{}: {error}", dir.display());
            eprintln!("loadprint-collect: canary: no syncs were timed: {reason}");
            Part::lacking("fsync", reason)
        }
    })
}

/// A file with a name, because some file systems sync one without a name for free; removed when dropped.
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
                "loadprint-collect: {}: cannot be removed: {error}",
                self.path.display()
            );
        }
    }
}

/// Removes files of canaries that were killed: their process is gone.
fn remove_leftovers(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_string_lossy()
            .strip_prefix(PREFIX)
            .and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Where it cannot be removed the next file cannot be made either, which is said then.
            drop(fs::remove_file(entry.path()));
        }
    }
}
