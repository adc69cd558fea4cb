//! Reads files that contain secrets; refuses those that other users can read.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum size of such a file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Why an option or a file is refused, with the fix, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Reads a file that contains a secret. Owner, type and mode are those of the open file that is
/// read: another file cannot replace it in between.
///
/// # Errors
/// If it cannot be read, is not a regular file, has more than 1 MiB, or group or others may access
/// it. `option` names it in the message.
pub fn read_private(path: &Path, option: &str) -> Result<String, Refusal> {
    let refusal = |reason: &dyn std::fmt::Display| Refusal(format!("{option} {}: {reason}", path.display()));
    let read = |mut file: File| -> io::Result<String> {
        let mut text = String::new();
        file.by_ref().take(MAX_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    // A FIFO must not block the open.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| refusal(&error))?;
    let metadata = file.metadata().map_err(|error| refusal(&error))?;
    if !metadata.is_file() {
        return Err(refusal(&"not a regular file; give the path of a file"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(refusal(&format_args!(
            "mode {:04o} lets other users read the secret; run: chmod 600 {}",
            metadata.mode() & 0o7777,
            path.display()
        )));
    }
    if metadata.len() >= MAX_BYTES {
        return Err(refusal(
            &"more than 1 MiB; give an option file or a password file",
        ));
    }
    read(file).map_err(|error| refusal(&error))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_that_others_can_read_are_refused_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, "quite-secret\n").unwrap();
        for mode in [0o644, 0o640, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refusal = read_private(&path, "--option").unwrap_err().to_string();
            assert!(refusal.contains("chmod 600"), "{refusal}");
            assert!(!refusal.contains("quite-secret"), "{refusal}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_private(&path, "--option").unwrap(), "quite-secret\n");
        let refusal = read_private(dir.path(), "--option").unwrap_err().to_string();
        assert!(refusal.contains("not a regular file"), "{refusal}");
    }
}
