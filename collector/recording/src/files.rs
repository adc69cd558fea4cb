//! Creates and replaces the files of a run directory, and refuses a directory that another user can
//! change.
//!
//! A user who can change the directory could plant a link, and root would write to its target.
//! [`require_trusted`] checks this once, when a run directory is opened; files are then opened by
//! their paths.

use std::env;
use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::path::absolute;

use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::Serialize;
use serde_json::to_string_pretty;

use crate::At;
use crate::Error;
use crate::Result;

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Creates a directory and its parents if they do not exist; root refuses one that another user can
/// change.
///
/// # Errors
/// When it cannot be created, and those of [`require_trusted`].
pub fn create_directory(path: &Path) -> Result<()> {
    let existing = path.ancestors().find(|dir| dir.exists());
    require_unchangeable(existing.unwrap_or(Path::new(".")), existing != Some(path))?;
    fs::create_dir_all(path).at(path)?;
    require_trusted(path)
}

/// Refuses, for root, a directory that another user can change or redirect: each component of its
/// path must belong to root, to the user of sudo, or to the owner of this program, who can run any
/// code as root, and no other user or group than root's may write there. Parents may be sticky, such
/// as /tmp.
///
/// # Errors
/// The first component that another user can change.
pub fn require_trusted(path: &Path) -> Result<()> {
    require_unchangeable(path, false)
}

fn require_unchangeable(path: &Path, may_be_sticky: bool) -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    let id = |variable| env::var(variable).ok()?.parse().ok();
    let program = fs::metadata("/proc/self/exe").ok();
    let users = [Some(0), id("SUDO_UID"), program.map(|program| program.uid())];
    // Fails for links in a circle.
    path.canonicalize().at(path)?;
    let mut left = vec![(absolute(path).at(path)?, may_be_sticky)];
    while let Some((path, may_be_sticky)) = left.pop() {
        for dir in path.ancestors() {
            let stat = dir.symlink_metadata().at(dir)?;
            let may_be_sticky = may_be_sticky || dir != path;
            if stat.is_symlink() {
                let target = fs::read_link(dir).at(dir)?;
                left.push((dir.with_file_name(target), may_be_sticky));
            }
            let (uid, gid, mode) = (stat.uid(), stat.gid(), stat.mode() & 0o7777);
            let writers = if gid == 0 {
                OTHERS_WRITE
            } else {
                OTHERS_WRITE | GROUP_WRITES
            };
            let is_sticky = mode & STICKY != 0 && may_be_sticky;
            let is_writable = mode & writers != 0 && !is_sticky && !stat.is_symlink();
            let is_of_another = !users.contains(&Some(uid));
            if is_writable || is_of_another {
                let path = dir.display();
                let fix = if is_of_another {
                    String::new()
                } else {
                    format!("run `chmod go-w {path}`, or ")
                };
                let message = format!(
                    "other users can change it (user {uid}, group {gid}, mode {mode:o}); {fix}choose a directory that only root or you can change"
                );
                return Err(Error::format(dir, message));
            }
        }
    }
    Ok(())
}

/// True for root of the host: root of a user namespace is another user outside of it.
fn is_root() -> bool {
    let users = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let outside = users.split_whitespace().nth(1);
    geteuid().is_root() && outside.is_none_or(|user| user == "0")
}

/// The subdirectories, sorted; not links to directories.
///
/// # Errors
/// When the directory cannot be read.
pub fn subdirectories(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).at(dir)? {
        let entry = entry.at(dir)?;
        if entry.file_type().at(&entry.path())?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Creates an empty file for writing; an existing entry is removed first and never written to.
///
/// # Errors
/// When the entry cannot be removed or the file cannot be created.
pub fn create(path: &Path) -> Result<File> {
    create_new(path, 0o666)
}

/// Opens a file for appending; creates it if it does not exist.
///
/// # Errors
/// When it is a symbolic link or is not writable.
pub fn append(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .create(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path).at(path)
}

/// Replaces a file in one step: `fill` writes a temporary file, which is synced and renamed.
///
/// # Errors
/// Those of `fill`, and when the file cannot be created or renamed; the previous file stays
/// unchanged.
pub fn replace<T>(path: &Path, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let mut new = Replacement::create(path, 0o666)?;
    let value = fill(&mut new.file)?;
    new.sync_and_rename()?;
    Ok(value)
}

/// Replaces a file by one with these bytes.
///
/// # Errors
/// As [`replace`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |file| file.write_all(bytes).at(path))
}

/// As [`write`], readable by its owner only and not synced: it is read while the writer runs.
///
/// # Errors
/// As [`replace`].
pub fn publish(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut new = Replacement::create(path, 0o600)?;
    new.file.write_all(bytes).at(path)?;
    new.rename()
}

/// Replaces a file by `value` as indented JSON with a final newline.
///
/// # Errors
/// As [`replace`], and when the value cannot be converted to JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = to_string_pretty(value).at(path)?;
    write(path, format!("{text}\n").as_bytes())
}

/// True for the temporary names of [`replace`].
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// A file under a temporary name, which is removed unless the file is renamed.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    temporary: PathBuf,
}

impl Replacement {
    pub(crate) fn create(path: &Path, mode: u32) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.tmp"));
        Ok(Self {
            path: path.to_owned(),
            file: create_new(&temporary, mode)?,
            temporary,
        })
    }

    pub(crate) fn sync_and_rename(self) -> Result<()> {
        self.file.sync_all().at(&self.path)?;
        self.rename()
    }

    fn rename(self) -> Result<()> {
        fs::rename(&self.temporary, &self.path).at(&self.path)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // A partial file is useless; a renamed one has this name no longer.
        drop(fs::remove_file(&self.temporary));
    }
}

fn create_new(path: &Path, mode: u32) -> Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).at(path),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .at(path)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::chown;
    use std::os::unix::fs::lchown;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_write_keeps_the_previous_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        write_json(&path, &json!({"status": "running"})).unwrap();
        write_json(&path, &json!({"status": "complete"})).unwrap();
        let expected = "{\n  \"status\": \"complete\"\n}\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);

        let failed: Result<()> = replace(&path, |_| Err(Error::format(&path, "interrupted")));
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        for name in ["created", "written", ".written.tmp", "appended"] {
            symlink(&kept, dir.path().join(name)).unwrap();
        }
        let file = |name| dir.path().join(name);
        create(&file("created")).unwrap().write_all(b"new").unwrap();
        write(&file("written"), b"new").unwrap();
        assert!(append(&file("appended")).is_err());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
        assert!(!file("created").is_symlink() && !file("written").is_symlink());
    }

    #[test]
    fn root_refuses_a_directory_that_another_user_can_change() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("user/run");
        create_directory(&run).unwrap();
        let user = dir.path().join("user");
        for (mode, is_trusted) in [(0o755, true), (0o1777, true), (0o777, false)] {
            fs::set_permissions(&user, Permissions::from_mode(mode)).unwrap();
            assert_eq!(require_trusted(&run).is_ok(), is_trusted, "{mode:o}");
        }
        fs::set_permissions(&user, Permissions::from_mode(0o775)).unwrap();
        require_trusted(&run).unwrap();
        chown(&user, None, Some(65534)).unwrap();
        let error = require_trusted(&run).unwrap_err().to_string();
        let fix = format!("run `chmod go-w {}`", user.display());
        assert!(error.contains(&fix), "{error}");
        fs::set_permissions(&user, Permissions::from_mode(0o755)).unwrap();
        require_trusted(&run).unwrap();
        chown(&user, Some(65534), Some(65534)).unwrap();
        assert!(create_directory(&user.join("new")).is_err() && !user.join("new").exists());
        let error = require_trusted(&run).unwrap_err().to_string();
        assert!(
            error.contains("/user: other users can change it (user 65534"),
            "{error}"
        );
        symlink(&user, dir.path().join("link")).unwrap();
        assert!(require_trusted(&dir.path().join("link/run")).is_err());
        // The user can let it point to another directory.
        symlink(dir.path(), user.join("back")).unwrap();
        assert!(require_trusted(&user.join("back")).is_err());
        let own = dir.path().join("own");
        symlink("../..", &own).unwrap();
        require_trusted(&own).unwrap();
        lchown(&own, Some(65534), Some(65534)).unwrap();
        assert!(require_trusted(&own).is_err());
    }
}
