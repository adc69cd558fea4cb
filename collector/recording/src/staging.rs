//! Files of a role that are kept in another directory while they are written: the journal and sysstat's file, off the data device.
//!
//! The role's directory gets a link to each. A run directory may come from somebody else, so that a link alone is no reason to read
//! or to remove a file: it is followed only into a directory that this user made for this very role directory.

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

/// Where files of a role are written: in its directory, or in a private one of its own.
#[derive(Clone, Debug)]
pub struct Place {
    role: Directory,
    private: Option<Directory>,
}

impl Place {
    /// The role's directory if that is `dir`; otherwise a new directory in `dir` (0700), which is made with its parents if it is
    /// missing.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn new(role: &Directory, dir: &Path) -> Result<Self> {
        let parent = Directory::create(dir)?;
        let (here, there) = (role.own_stat()?, parent.own_stat()?);
        let role = role.clone();
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) {
            return Ok(Self { role, private: None });
        }
        let dir = dir.canonicalize().at(dir)?;
        let made = tempfile::Builder::new()
            .prefix(&prefix(&role)?)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&dir)
            .at(&dir)?;
        let private = Some(Directory::open(&made.keep())?);
        Ok(Self { role, private })
    }

    /// The private directory, where there is one.
    #[must_use]
    pub fn private(&self) -> Option<&Path> {
        self.private.as_ref().map(Directory::path)
    }

    /// The file `name`, and a link to it in the role's directory if it is elsewhere.
    ///
    /// # Errors
    /// When the link cannot be made.
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

/// The file `name` of a role, wherever it is; nothing if there is none.
///
/// # Errors
/// When it is a link to anything but a file that this user's recorder made for this role.
pub fn locate(role: &Directory, name: &str) -> Result<Option<RunFile>> {
    let here = role.file(name);
    if here.kind() != Some(FileType::Symlink) {
        return Ok(here.exists().then_some(here));
    }
    let link = here.path();
    let target = readlinkat(role.handle(), name, Vec::new()).at(&link)?;
    let target = PathBuf::from(OsStr::new(&*target.to_string_lossy()));
    let foreign = |message: &str| {
        Error::format(
            &link,
            format!(
                "a link to {}, {message}; put the file itself in place of the link, or remove the link",
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
        return Err(foreign("which no recorder made for this directory"));
    }
    // A missing directory is one of another host, or of before a reboot.
    let gone = || {
        Error::format(
            &link,
            format!(
                "its file {} is not here; run finish on the host that recorded",
                target.display()
            ),
        )
    };
    let parent = Directory::open(dir.parent().unwrap_or(Path::new("/"))).map_err(|_| gone())?;
    let private = parent
        .sub(dir.file_name().unwrap_or_default())
        .map_err(|_| gone())?;
    let stat = private.own_stat()?;
    if stat.st_uid != geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
        return Err(foreign("in a directory that other users can change"));
    }
    let file = private.file(name);
    if file.exists() {
        Ok(Some(file))
    } else {
        Err(gone())
    }
}

/// Puts the file `name` of a role in place of the link to it, if there is one.
///
/// # Errors
/// As [`locate`], and when it cannot be copied; it then stays where it is.
pub fn bring_home(role: &Directory, name: &str) -> Result<()> {
    let here = role.file(name);
    match locate(role, name)? {
        Some(there) if there.path() != here.path() => {
            let mut from = there.open()?;
            here.replace(|to| io::copy(&mut from, to).at(&there.path()))?;
            remove(role, name, &there)
        }
        _ => Ok(()),
    }
}

/// Removes `file` of a role, and, if it was elsewhere, the link to it and the directory that it was in once that is empty.
///
/// # Errors
/// When the file or the link cannot be removed.
pub fn remove(role: &Directory, name: &str, file: &RunFile) -> Result<()> {
    file.remove()?;
    let here = role.file(name);
    if here.kind() == Some(FileType::Symlink) {
        here.remove()?;
    }
    let path = file.path();
    let dir = path.parent().unwrap_or(Path::new(""));
    if dir != role.path() {
        // The role's other file may still be in it.
        unlinkat(CWD, dir, AtFlags::REMOVEDIR).ok();
    }
    Ok(())
}

const PREFIX: &str = "loadprint-";

/// By device and inode: no other directory of this host has such a name made for it, whatever links it holds.
fn prefix(role: &Directory) -> Result<String> {
    let stat = role.own_stat()?;
    Ok(format!("{PREFIX}{:x}-{:x}-", stat.st_dev, stat.st_ino))
}
