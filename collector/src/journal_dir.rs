//! Where the journal goes: the run directory, or memory where that lies on the device under test.

use std::path::Path;
use std::path::PathBuf;

use loadprint_probes::Host;

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
