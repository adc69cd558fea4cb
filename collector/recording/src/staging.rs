//! Stores files of a role in another directory while they are written: the journal and sysstat's
//! file, off the data device.
//!
//! The role's directory contains a link to each. A run directory may come from another user, so a
//! link alone does not permit reading or removing a file: it is followed only into a private
//! directory that this user created for this role directory.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::readlinkat;
use rustix::fs::symlinkat;
use rustix::fs::unlinkat;
use rustix::process::geteuid;

use crate::At;
use crate::Error;
use crate::Result;
use crate::files::Directory;
use crate::files::RunFile;

/// The directory for a role's files while they are written: the role's own or a private one.
#[derive(Clone, Debug)]
pub struct StagingDir {
    role: Directory,
    private: Option<Directory>,
}

impl StagingDir {
    /// The role's directory if that is `dir`; otherwise a new private directory (0700) in `dir`.
    /// Creates `dir` and its parents if they do not exist.
    ///
    /// # Errors
    /// When a directory cannot be created.
    pub fn new(role: &Directory, dir: &Path) -> Result<Self> {
        let parent = Directory::create(dir)?;
        let (role_stat, parent_stat) = (role.directory_stat()?, parent.directory_stat()?);
        let role = role.clone();
        if (role_stat.st_dev, role_stat.st_ino) == (parent_stat.st_dev, parent_stat.st_ino) {
            return Ok(Self { role, private: None });
        }
        let dir = dir.canonicalize().at(dir)?;
        let created = tempfile::Builder::new()
            .prefix(&prefix(&role)?)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&dir)
            .at(&dir)?;
        let private = Some(Directory::open(&created.keep())?);
        Ok(Self { role, private })
    }

    /// The private directory, if there is one.
    #[must_use]
    pub fn private(&self) -> Option<&Path> {
        self.private.as_ref().map(Directory::path)
    }

    /// The file `name`; creates the link to it in the role's directory if the file is in the
    /// private one.
    ///
    /// # Errors
    /// When the link cannot be created.
    pub fn file(&self, name: &str) -> Result<RunFile> {
        let Some(private) = &self.private else {
            return Ok(self.role.file(name));
        };
        let file = private.file(name);
        let link = self.role.path().join(name);
        symlinkat(file.path(), self.role.handle(), name).at(&link)?;
        Ok(file)
    }
}

/// Finds the file `name` of a role in its directory or in the private one.
///
/// # Errors
/// When a link leads to anything but a file that this user's recorder created for this role.
pub fn locate(role: &Directory, name: &str) -> Result<Option<RunFile>> {
    let in_role = role.file(name);
    if in_role.kind() != Some(FileType::Symlink) {
        return Ok(in_role.exists().then_some(in_role));
    }
    let link = in_role.path();
    let target = readlinkat(role.handle(), name, Vec::new()).at(&link)?;
    let target = PathBuf::from(OsStr::new(&*target.to_string_lossy()));
    let refused = |reason: &str| {
        Error::format(
            &link,
            format!(
                "a link to {}, {reason}; replace the link by the file itself, or remove the link",
                target.display()
            ),
        )
    };
    let dir = target.parent().unwrap_or(Path::new(""));
    let is_named_for_role = dir.file_name().is_some_and(|dir| {
        dir.to_string_lossy()
            .starts_with(prefix(role).unwrap_or_default().as_str())
    });
    if target.file_name() != Some(OsStr::new(name)) || !target.is_absolute() || !is_named_for_role {
        return Err(refused("which no recorder created for this directory"));
    }
    // A missing directory is on another host, or was in memory before a reboot.
    let missing = || {
        Error::format(
            &link,
            format!(
                "its target {} does not exist; run finish on the host that recorded",
                target.display()
            ),
        )
    };
    let parent = Directory::open(dir.parent().unwrap_or(Path::new("/"))).map_err(|_| missing())?;
    let private = parent
        .sub(dir.file_name().unwrap_or_default())
        .map_err(|_| missing())?;
    let stat = private.directory_stat()?;
    if stat.st_uid != geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
        return Err(refused("in a directory that other users can change"));
    }
    let file = private.file(name);
    if file.exists() {
        Ok(Some(file))
    } else {
        Err(missing())
    }
}

/// Moves the file `name` of a role into the role's directory, replacing the link.
///
/// # Errors
/// As [`locate`], and when the file cannot be copied; it then stays in the private directory.
pub fn move_to_role(role: &Directory, name: &str) -> Result<()> {
    let in_role = role.file(name);
    match locate(role, name)? {
        Some(staged) if staged.path() != in_role.path() => {
            let mut from = staged.open()?;
            in_role.replace(|to| io::copy(&mut from, to).at(&staged.path()))?;
            remove(role, name, &staged)
        }
        _ => Ok(()),
    }
}

/// Removes `file` of a role, the link to it, and the private directory once that is empty.
///
/// # Errors
/// When the file or the link cannot be removed.
pub fn remove(role: &Directory, name: &str, file: &RunFile) -> Result<()> {
    file.remove()?;
    let in_role = role.file(name);
    if in_role.kind() == Some(FileType::Symlink) {
        in_role.remove()?;
    }
    let path = file.path();
    let dir = path.parent().unwrap_or(Path::new(""));
    if dir != role.path() {
        // Fails while the directory contains the role's other file.
        unlinkat(CWD, dir, AtFlags::REMOVEDIR).ok();
    }
    Ok(())
}

const PREFIX: &str = "loadprint-";

/// Device and inode make the name unique to this role directory on this host, even if it contains
/// links.
fn prefix(role: &Directory) -> Result<String> {
    let stat = role.directory_stat()?;
    Ok(format!("{PREFIX}{:x}-{:x}-", stat.st_dev, stat.st_ino))
}
