//! Opens the files of a run directory relative to its descriptor, without following links.
//!
//! A run directory may come from another user, or another user may be able to write into it. No
//! link leads out of it, a FIFO does not block, and a device is not opened.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::io::ErrorKind;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::Dir;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::Stat;
use rustix::fs::fstat;
use rustix::fs::mkdirat;
use rustix::fs::openat;
use rustix::fs::renameat;
use rustix::fs::statat;
use rustix::fs::unlinkat;
use rustix::io::Errno;

use crate::At;
use crate::Error;
use crate::Result;

/// Refuses links and does not block on a FIFO without a writer; [`RunFile::regular`] checks the
/// type of the opened file.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// An open directory; the path is for messages.
#[derive(Clone, Debug)]
pub struct Directory {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

/// A name in an open directory; the file need not exist.
#[derive(Clone, Debug)]
pub struct RunFile {
    dir: Directory,
    name: OsString,
}

impl Directory {
    /// Opens a directory on the command line; links in its path are followed.
    ///
    /// # Errors
    /// When it does not exist, is not a directory or is not readable.
    pub fn open(path: &Path) -> Result<Self> {
        let named = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Self::at(CWD, named, path, DIRECTORY)
    }

    /// Opens a directory on the command line; creates it and its parents if they do not exist.
    ///
    /// # Errors
    /// When it cannot be created or opened.
    pub fn create(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).at(path)?;
        Self::open(path)
    }

    /// Opens a subdirectory; refuses a link.
    ///
    /// # Errors
    /// When it does not exist, is not a directory, or `name` is not a plain name.
    pub fn sub(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        let file = self.file(name);
        let path = file.path();
        let name = file.plain_name()?;
        Self::at(&self.handle, name, &path, DIRECTORY | OFlags::NOFOLLOW).map_err(|error| match error {
            // With O_NOFOLLOW and O_DIRECTORY the kernel reports a link as "not a directory".
            _ if file.kind() == Some(FileType::Symlink) => Error::format(&path, LINK),
            error => error,
        })
    }

    /// Opens a subdirectory; creates it if it does not exist.
    ///
    /// # Errors
    /// As [`Directory::sub`], and when it cannot be created.
    pub fn make(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        let file = self.file(name);
        match mkdirat(&self.handle, file.plain_name()?, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.sub(&file.name),
            failed => failed.at(&file.path()).and_then(|()| self.sub(&file.name)),
        }
    }

    /// A file in this directory.
    #[must_use]
    pub fn file(&self, name: impl AsRef<OsStr>) -> RunFile {
        RunFile {
            dir: self.clone(),
            name: name.as_ref().to_owned(),
        }
    }

    /// The file at a relative path such as `server/cpu.parquet`; its directories are opened without
    /// following links.
    ///
    /// # Errors
    /// When a directory of the path cannot be opened, or the path leaves this directory.
    pub fn find(&self, relative: &Path) -> Result<RunFile> {
        let mut dir = self.clone();
        for part in relative.parent().unwrap_or(Path::new("")).components() {
            dir = dir.sub(part)?;
        }
        Ok(dir.file(relative.file_name().unwrap_or_default()))
    }

    /// Names and types of the entries, sorted; links are not followed.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn entries(&self) -> Result<Vec<(OsString, FileType)>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.handle).at(&self.path)? {
            let entry = entry.at(&self.path)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.stat(&name).map_or(FileType::Unknown, |stat| kind(&stat)),
                kind => kind,
            };
            entries.push((name, kind));
        }
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(entries)
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Owner, mode, device and inode of the directory.
    pub(crate) fn directory_stat(&self) -> Result<Stat> {
        fstat(&self.handle).at(&self.path)
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    fn stat(&self, name: impl AsRef<OsStr>) -> rustix::io::Result<Stat> {
        statat(&self.handle, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn at(dir: impl AsFd, name: &Path, path: &Path, flags: OFlags) -> Result<Self> {
        let handle = openat(dir, name, flags, Mode::empty()).at(path)?;
        Ok(Self {
            handle: Arc::new(handle),
            path: path.to_owned(),
        })
    }
}

const LINK: &str = "a symbolic link, which a run directory must not contain; remove it, or copy the run again from the host that recorded it";

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

impl RunFile {
    /// A file on the command line; links in the path of its directory are followed, but it must not
    /// be a link itself.
    ///
    /// # Errors
    /// When its directory cannot be opened.
    pub fn at(path: &Path) -> Result<Self> {
        let dir = Directory::open(path.parent().unwrap_or(Path::new("")))?;
        Ok(dir.file(path.file_name().unwrap_or_default()))
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path.join(&self.name)
    }

    /// True if an entry of this name exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.kind().is_some()
    }

    /// The type of the entry.
    pub(crate) fn kind(&self) -> Option<FileType> {
        Some(kind(&self.dir.stat(&self.name).ok()?))
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// When it does not exist, is not a regular file, or is not readable.
    pub fn open(&self) -> Result<File> {
        self.regular(OFlags::RDONLY)
    }

    /// Opens the file for appending; creates it if it does not exist.
    ///
    /// # Errors
    /// When it is not a regular file, has hard links, or is not writable.
    pub fn append(&self) -> Result<File> {
        let file = match self.regular(OFlags::WRONLY | OFlags::APPEND) {
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => self.create_new(0o666)?,
            opened => opened?,
        };
        let stat = fstat(&file).at(&self.path())?;
        if stat.st_nlink != 1 {
            let message = "has hard links; remove it or choose another file";
            return Err(Error::format(&self.path(), message));
        }
        Ok(file)
    }

    /// Creates an empty file for writing; an existing entry is removed first and never written to.
    ///
    /// # Errors
    /// When the entry cannot be removed or the file cannot be created.
    pub fn create(&self) -> Result<File> {
        self.remove_if_exists()?;
        self.create_new(0o666)
    }

    /// Replaces the file in one step: `fill` writes a temporary file, which is synced and renamed.
    ///
    /// # Errors
    /// Those of `fill`, and when the file cannot be created or renamed; the previous file stays
    /// unchanged.
    pub fn replace<T>(&self, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        self.rename_new(0o666, |file| {
            let value = fill(file)?;
            file.sync_all().at(&self.path())?;
            Ok(value)
        })
    }

    /// Replaces the file by one with these bytes.
    ///
    /// # Errors
    /// As [`RunFile::replace`].
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.replace(|file| file.write_all(bytes).at(&self.path()))
    }

    /// As [`RunFile::write`], readable by its owner only and not synced: it is read while the writer runs.
    ///
    /// # Errors
    /// As [`RunFile::replace`].
    pub fn publish(&self, bytes: &[u8]) -> Result<()> {
        self.rename_new(0o600, |file| file.write_all(bytes).at(&self.path()))
    }

    fn rename_new<T>(&self, mode: u32, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        let temporary = self.dir.file(format!(".{}.tmp", self.name.to_string_lossy()));
        let plain = self.plain_name()?;
        let renamed = (|| {
            temporary.remove_if_exists()?;
            let value = fill(&mut temporary.create_new(mode)?)?;
            renameat(&self.dir.handle, &temporary.name, &self.dir.handle, plain).at(&self.path())?;
            Ok(value)
        })();
        if renamed.is_err() {
            // A partial file is useless; it may not exist.
            drop(temporary.remove_if_exists());
        }
        renamed
    }

    /// Removes the entry; a link itself, not its target.
    ///
    /// # Errors
    /// When it does not exist or cannot be removed.
    pub fn remove(&self) -> Result<()> {
        unlinkat(&self.dir.handle, self.plain_name()?, AtFlags::empty()).at(&self.path())
    }

    fn remove_if_exists(&self) -> Result<()> {
        match self.remove() {
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn create_new(&self, mode: u32) -> Result<File> {
        let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = openat(
            &self.dir.handle,
            self.plain_name()?,
            flags,
            Mode::from_raw_mode(mode),
        );
        Ok(file.at(&self.path())?.into())
    }

    fn regular(&self, flags: OFlags) -> Result<File> {
        let (path, name) = (self.path(), self.plain_name()?);
        let require = |stat: Stat| match kind(&stat) {
            FileType::RegularFile => Ok(()),
            FileType::Symlink => Err(Error::format(&path, LINK)),
            _ => Err(Error::format(
                &path,
                "not a regular file; remove it, or copy the run again from the host that recorded it",
            )),
        };
        // Before openat, because opening a device can have side effects; after it, because the
        // entry may have been replaced.
        require(self.dir.stat(name).at(&path)?)?;
        let file = openat(&self.dir.handle, name, SAFE | flags, Mode::empty()).at(&path)?;
        require(fstat(&file).at(&path)?)?;
        Ok(file.into())
    }

    /// The name, if it has no directory: names also come from manifests and journals.
    fn plain_name(&self) -> Result<&Path> {
        let name = Path::new(&self.name);
        let mut parts = name.components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(only)), None) if only == self.name => Ok(name),
            _ => {
                let message = format!("`{}` is not a file name in a run directory", name.display());
                Err(Error::format(&self.dir.path, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::mknodat;

    use super::*;

    #[test]
    fn links_fifos_and_paths_are_not_opened() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let dir = tempfile::tempdir().unwrap();
        symlink(&secret, dir.path().join("link")).unwrap();
        symlink(outside.path(), dir.path().join("role")).unwrap();
        mknodat(CWD, dir.path().join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let run = Directory::open(dir.path()).unwrap();
        for (name, expected) in [
            ("link", "link: a symbolic link, "),
            ("fifo", "fifo: not a regular file; "),
            ("../secret", "`../secret` is not a file name"),
            ("..", "`..` is not a file name"),
            ("", "`` is not a file name"),
        ] {
            for error in [
                run.file(name).open().unwrap_err(),
                run.file(name).append().unwrap_err(),
            ] {
                assert!(error.to_string().contains(expected), "{name}: {error}");
            }
        }
        for path in ["role/secret", "../secret", "/etc/passwd"] {
            assert!(run.find(Path::new(path)).is_err(), "{path}");
        }
        let error = run.make("role").unwrap_err().to_string();
        assert!(error.contains("role: a symbolic link, "), "{error}");
    }

    #[test]
    fn a_written_file_replaces_a_link_and_keeps_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, run) = (
            dir.path().join("kept"),
            Directory::create(&dir.path().join("run")).unwrap(),
        );
        fs::write(&kept, "kept").unwrap();
        for name in ["phases.jsonl", "run.json", ".run.json.tmp"] {
            symlink(&kept, run.path().join(name)).unwrap();
        }
        run.file("phases.jsonl")
            .create()
            .unwrap()
            .write_all(b"new")
            .unwrap();
        run.file("run.json").write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
        for name in ["phases.jsonl", "run.json"] {
            assert_eq!(fs::read_to_string(run.path().join(name)).unwrap(), "new");
            assert!(!run.path().join(name).is_symlink());
        }
        fs::hard_link(&kept, run.path().join("canary.jsonl")).unwrap();
        assert!(run.file("canary.jsonl").append().is_err());
        assert_eq!(run.entries().unwrap().len(), 3);
    }
}
