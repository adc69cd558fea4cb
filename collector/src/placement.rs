//! Where the journal goes: the run directory, or memory where that lies on the device under test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use loadprint_probes::Host;
use loadprint_recording::finish::JOURNAL;

use crate::fingerprint::storage;

/// A file system in memory that every Linux has (shm_overview(7)).
const MEMORY: &str = "/dev/shm";

/// Where the journal's bytes go, given what was asked for.
pub fn journal_dir(host: &Host, role_dir: &Path, asked: Option<&Path>, data_dir: Option<&Path>) -> PathBuf {
    if let Some(dir) = asked {
        return dir.to_owned();
    }
    let shared = data_dir.is_some_and(|data| storage::share_a_disk(host, role_dir, data));
    if shared && Path::new(MEMORY).is_dir() {
        PathBuf::from(MEMORY)
    } else {
        role_dir.to_owned()
    }
}

/// The journal's path in `dir`; where that is another directory, the role's directory gets a link to it.
///
/// # Errors
/// When the directory cannot be made or the link cannot be set.
pub fn journal_path(role_dir: &Path, role: &str, dir: &Path) -> anyhow::Result<PathBuf> {
    let link = role_dir.join(JOURNAL);
    fs::create_dir_all(dir)
        .with_context(|| format!("{}: cannot make the journal directory", dir.display()))?;
    let dir = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    if fs::canonicalize(role_dir).is_ok_and(|role_dir| role_dir == dir) {
        return Ok(link);
    }
    let journal = dir.join(format!("loadprint-{}-{role}.journal", std::process::id()));
    symlink(&journal, &link).with_context(|| link.display().to_string())?;
    Ok(journal)
}
