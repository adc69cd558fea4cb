//! Selects the directory of the journal: the run directory, or memory where that is on the device
//! under test.

use std::path::Path;
use std::path::PathBuf;

use loadprint_probes::Host;

use crate::fingerprint::storage;

/// A file system in memory on every Linux (shm_overview(7)).
const SHM: &str = "/dev/shm";

/// `option` if given; `/dev/shm` if the role's directory shares a disk with `data_dir`; else the
/// role's directory.
pub fn journal_dir(host: &Host, role_dir: &Path, option: Option<&Path>, data_dir: Option<&Path>) -> PathBuf {
    if let Some(dir) = option {
        return dir.to_owned();
    }
    let is_shared = data_dir.is_some_and(|data| storage::share_a_disk(host, role_dir, data));
    if is_shared && Path::new(SHM).is_dir() {
        PathBuf::from(SHM)
    } else {
        role_dir.to_owned()
    }
}
