//! Files of a run directory, opened by descriptor and without following links.
//!
//! A run directory may have been received from somebody else, or another user may be able to write into it. Whatever a name in it
//! is, no link leads out of it, a FIFO blocks nothing, and a device is not opened.

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

/// Neither a link nor a FIFO without a writer is waited for; [`RunFile::regular`] looks at what was opened.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// An open directory; the path is for messages.
#[derive(Clone, Debug)]
pub struct Directory {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

/// A name in an open directory, whether or not the file exists.
#[derive(Clone, Debug)]
pub struct RunFile {
    dir: Directory,
    name: OsString,
}

impl Directory {
    /// Opens a directory that the user named; links in its path are followed.
    ///
    /// # Errors
    /// When it is not there, is not a directory or may not be read.
    pub fn open(path: &Path) -> Result<Self> {
        let named = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Self::at(CWD, named, path, DIRECTORY)
    }

    /// Opens a directory that the user named, and makes it and its parents where they do not exist.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn create(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).at(path)?;
        Self::open(path)
    }

    /// Opens a directory in this one; a link is refused.
    ///
    /// # Errors
    /// When it is not there, is not a directory, or `name` is not a plain name.
    pub fn sub(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        let file = self.file(name);
        let path = file.path();
        let name = file.plain_name()?;
        Self::at(&self.handle, name, &path, DIRECTORY | OFlags::NOFOLLOW).map_err(|error| match error {
            // O_NOFOLLOW and O_DIRECTORY together report a link as "not a directory".
            _ if file.kind() == Some(FileType::Symlink) => Error::format(&path, LINK),
            error => error,
        })
    }

    /// Opens a directory in this one, and makes it where it does not exist.
    ///
    /// # Errors
    /// As [`Directory::sub`], and when it cannot be made.
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

    /// The file at a relative path such as `server/cpu.parquet`, each directory of which is opened without following links.
    ///
    /// # Errors
    /// When a directory of it cannot be opened, or the path leaves this one.
    pub fn find(&self, relative: &Path) -> Result<RunFile> {
        let mut dir = self.clone();
        for part in relative.parent().unwrap_or(Path::new("")).components() {
            dir = dir.sub(part)?;
        }
        Ok(dir.file(relative.file_name().unwrap_or_default()))
    }

    /// Names and types of what is in it, sorted; a link is a link.
    ///
    /// # Errors
    /// When it cannot be read.
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its owner, mode, device and inode.
    pub(crate) fn own_stat(&self) -> Result<Stat> {
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

const LINK: &str = "a symbolic link; a run directory has none: remove it, or copy the run again from the host that recorded it";

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

impl RunFile {
    /// A file that the user named; links in the path of its directory are followed, and it itself is none.
    ///
    /// # Errors
    /// When its directory cannot be opened.
    pub fn at(path: &Path) -> Result<Self> {
        let dir = Directory::open(path.parent().unwrap_or(Path::new("")))?;
        Ok(dir.file(path.file_name().unwrap_or_default()))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path.join(&self.name)
    }

    /// True if there is anything of this name.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.kind().is_some()
    }

    /// What there is of this name.
    pub(crate) fn kind(&self) -> Option<FileType> {
        Some(kind(&self.dir.stat(&self.name).ok()?))
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// When it is not there, is not a regular file, or may not be read.
    pub fn open(&self) -> Result<File> {
        self.regular(OFlags::RDONLY)
    }

    /// Opens it for appending, and makes it where it does not exist.
    ///
    /// # Errors
    /// When it is not a regular file of one name, or may not be written.
    pub fn append(&self) -> Result<File> {
        let file = match self.regular(OFlags::WRONLY | OFlags::APPEND) {
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => self.create_new()?,
            opened => opened?,
        };
        let stat = fstat(&file).at(&self.path())?;
        if stat.st_nlink != 1 {
            let message = "has more than one name (hard links); remove it or name another file";
            return Err(Error::format(&self.path(), message));
        }
        Ok(file)
    }

    /// Makes it, empty, for writing; what was there is removed, not written to.
    ///
    /// # Errors
    /// When the directory does not take it.
    pub fn create(&self) -> Result<File> {
        self.remove_if_there()?;
        self.create_new()
    }

    /// Lets `fill` write a file of another name, then syncs it and renames it to this one.
    ///
    /// # Errors
    /// Those of `fill`, and when the directory does not take the file; what was there stays as it was.
    pub fn replace<T>(&self, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        let temporary = self.dir.file(format!(".{}.tmp", self.name.to_string_lossy()));
        let path = self.path();
        let plain = self.plain_name()?;
        let renamed = (|| {
            let mut file = temporary.create()?;
            let value = fill(&mut file)?;
            file.sync_all().at(&path)?;
            renameat(&self.dir.handle, &temporary.name, &self.dir.handle, plain).at(&path)?;
            Ok(value)
        })();
        if renamed.is_err() {
            // The half-written file is of no use to anyone; that it may already be gone does not matter.
            drop(temporary.remove_if_there());
        }
        renamed
    }

    /// Replaces it by a file of these bytes.
    ///
    /// # Errors
    /// When the directory does not take the file; what was there stays as it was.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.replace(|file| file.write_all(bytes).at(&self.path()))
    }

    /// Removes it; of a link, the link.
    ///
    /// # Errors
    /// When it is not there or the directory refuses.
    pub fn remove(&self) -> Result<()> {
        unlinkat(&self.dir.handle, self.plain_name()?, AtFlags::empty()).at(&self.path())
    }

    fn remove_if_there(&self) -> Result<()> {
        match self.remove() {
            Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn create_new(&self) -> Result<File> {
        let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(0o666);
        let file = openat(&self.dir.handle, self.plain_name()?, flags, mode);
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
        // Before the opening, because opening a device may already do something; after it, because the name may have changed hands.
        require(self.dir.stat(name).at(&path)?)?;
        let file = openat(&self.dir.handle, name, SAFE | flags, Mode::empty()).at(&path)?;
        require(fstat(&file).at(&path)?)?;
        Ok(file.into())
    }

    /// The name, if it is one: names come from manifests and journals, too.
    fn plain_name(&self) -> Result<&Path> {
        let name = Path::new(&self.name);
        let mut parts = name.components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(only)), None) if only == self.name => Ok(name),
            _ => {
                let message = format!(
                    "`{}` is not the name of a file in a run directory",
                    name.display()
                );
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
    fn neither_links_nor_fifos_nor_other_names_are_opened() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let dir = tempfile::tempdir().unwrap();
        symlink(&secret, dir.path().join("link")).unwrap();
        symlink(outside.path(), dir.path().join("role")).unwrap();
        mknodat(CWD, dir.path().join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let run = Directory::open(dir.path()).unwrap();
        for (name, expected) in [
            ("link", "link: a symbolic link; "),
            ("fifo", "fifo: not a regular file; "),
            ("../secret", "`../secret` is not the name of a file"),
            ("..", "`..` is not the name of a file"),
            ("", "`` is not the name of a file"),
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
        assert!(error.contains("role: a symbolic link; "), "{error}");
    }

    #[test]
    fn what_is_written_replaces_a_link_and_leaves_its_target_alone() {
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
