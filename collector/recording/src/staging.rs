//! Stores the journal of a role in another directory while it is written, off the data device. The role's
//! directory contains a link to it.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use crate::At;
use crate::Error;
use crate::Result;
use crate::files;

/// The path of a role's file `name` while it is written: in the role's directory if that is `dir`, otherwise in a
/// new private directory (0700) in `dir`, to which the role's directory gets a link. Creates `dir` and its parents
/// if they do not exist.
///
/// # Errors
/// When a directory or the link cannot be created, and those of [`files::require_trusted`].
pub fn create(role: &Path, dir: &Path, name: &str) -> Result<PathBuf> {
    fs::create_dir_all(dir).at(dir)?;
    let dir = dir.canonicalize().at(dir)?;
    let in_role = role.join(name);
    if dir == role.canonicalize().at(role)? {
        return Ok(in_role);
    }
    let created = tempfile::Builder::new()
        .prefix(&prefix(role)?)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&dir)
        .at(&dir)?;
    files::require_trusted(created.path())?;
    let file = created.path().join(name);
    symlink(&file, &in_role).at(&in_role)?;
    drop(created.keep());
    Ok(file)
}

/// Finds the file `name` of a role in its directory or in the private one. A copied or received run
/// directory may contain a link to the file of another recording; only a directory that a recorder
/// created for this role directory is accepted.
///
/// # Errors
/// When a link leads to anything else, or to a missing file.
pub fn locate(role: &Path, name: &str) -> Result<PathBuf> {
    let in_role = role.join(name);
    let Ok(target) = fs::read_link(&in_role) else {
        return Ok(in_role);
    };
    let refused = |before: &str, behind: &str| {
        Error::format(&in_role, format!("{before} {}{behind}", target.display()))
    };
    // A missing directory is on another host, or was in memory before a reboot.
    let file = in_role.canonicalize().map_err(|_| {
        refused(
            "its target",
            " does not exist; run finish on the host that recorded",
        )
    })?;
    let dir = file.parent().unwrap_or(Path::new(""));
    let dir_name = dir.file_name().unwrap_or_default().to_string_lossy();
    if !dir_name.starts_with(&prefix(role)?) {
        return Err(refused(
            "a link to",
            ", which no recorder created for this directory; replace the link by the file itself, or remove the link",
        ));
    }
    files::require_trusted(dir)?;
    Ok(file)
}

/// Removes `file` of a role, the link to it, and the private directory.
///
/// # Errors
/// When the file or the link cannot be removed.
pub fn remove(role: &Path, name: &str, file: &Path) -> Result<()> {
    fs::remove_file(file).at(file)?;
    let in_role = role.join(name);
    if in_role.is_symlink() {
        fs::remove_file(&in_role).at(&in_role)?;
    }
    if file != in_role
        && let Some(dir) = file.parent()
    {
        // Fails if something else is in it.
        drop(fs::remove_dir(dir));
    }
    Ok(())
}

/// Device and inode make the name unique to this role directory on this host.
fn prefix(role: &Path) -> Result<String> {
    let stat = role.metadata().at(role)?;
    Ok(format!("loadprint-{:x}-{:x}-", stat.dev(), stat.ino()))
}
