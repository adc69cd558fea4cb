//! Opens the state directory: control.sock, status.json, state.json, supervisor.log, the lock, and
//! the outputs of the processes. state.json lists the resources that survive a kill, so that the
//! next `start` can remove them.
//!
//! Root trusts these files, so no other user may create them: only this user can write to the
//! directory and its parent. Both are checked whenever they are opened, and files are opened
//! relative to the directory's descriptor.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_recording::files::require_trusted;
use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::flock;
use rustix::fs::fstat;
use rustix::fs::mkdirat;
use rustix::fs::openat;
use rustix::fs::renameat;
use rustix::fs::unlinkat;
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::interrupts::Moved;

/// The resources of a supervisor that do not disappear when it is killed.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct OwnedResources {
    pub boot_id: String,
    /// The control group of its processes, below the root of the hierarchy.
    pub group: PathBuf,
    /// The daemon.
    pub pid: u32,
    pub mounts: Vec<PathBuf>,
    pub interfaces: Vec<String>,
    #[serde(default)]
    pub interrupts: Vec<Moved>,
    pub owned: Vec<PathBuf>,
}

/// An existing state directory.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    handle: OwnedFd,
}

/// An open lock file, not necessarily locked.
#[derive(Debug)]
pub struct Lock(File);

impl StateDir {
    /// Creates the directory (0700) and its parent; accepts an existing directory that only this
    /// user can access.
    pub fn create(path: &Path) -> Result<Self> {
        // Repeated, because a supervisor that is ending may remove an empty parent.
        for _ in 0..100 {
            match mkdirat(CWD, parent_of(path)?, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(refused(path, error)),
            }
            let parent = open_parent(path)?;
            match mkdirat(&parent, name_of(path)?, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {
                    if let Some(dir) = Self::open_in(&parent, path)? {
                        return Ok(dir);
                    }
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(refused(path, error)),
            }
        }
        bail!("{}: another process removes it repeatedly", path.display())
    }

    /// Opens an existing directory; `None` if it does not exist.
    ///
    /// # Errors
    /// When other users can change it or a directory above it.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        if parent_of(path)?.symlink_metadata().is_err() {
            return Ok(None);
        }
        Self::open_in(&open_parent(path)?, path)
    }

    fn open_in(parent: &OwnedFd, path: &Path) -> Result<Option<Self>> {
        let handle = match openat(parent, name_of(path)?, DIRECTORY, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR) => bail!("{} is not a directory", path.display()),
            Err(error) => return Err(refused(path, error)),
        };
        let stat = fstat(&handle).map_err(|error| refused(path, error))?;
        let mode = stat.st_mode & 0o7777;
        if stat.st_uid != geteuid().as_raw() || mode & 0o077 != 0 {
            bail!(
                "{} is accessible to other users (mode {mode:04o}, uid {}); choose a directory that does not exist, or chown and chmod 700 it",
                path.display(),
                stat.st_uid
            );
        }
        Ok(Some(Self {
            path: path.to_owned(),
            handle,
        }))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// True until it is removed: the supervisor may own it.
    pub fn exists(&self) -> bool {
        let current = openat(CWD, &self.path, DIRECTORY, Mode::empty()).and_then(fstat);
        fstat(&self.handle).is_ok_and(|opened| {
            current.is_ok_and(|current| (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino))
        })
    }

    /// Removes the parent directory if it is empty and has the playbooks' name for it.
    pub fn remove_empty_parent(&self) {
        if let Some(parent) = self.path.parent().filter(|parent| parent.ends_with(PARENT)) {
            unlinkat(CWD, parent, AtFlags::REMOVEDIR).ok();
        }
    }

    /// A path through the descriptor, because sun_path is limited to 107 bytes (unix(7)).
    fn socket(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/control.sock", self.handle.as_raw_fd()))
    }

    /// Connects to the control socket.
    pub fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.socket())
    }

    /// Binds the control socket; the caller holds the lock, so an existing socket is stale.
    pub fn listen(&self) -> io::Result<UnixListener> {
        self.remove("control.sock")?;
        UnixListener::bind(self.socket())
    }

    /// Opens the lock file.
    pub fn open_lock(&self) -> Result<Lock> {
        let lock = self.open_file("lock", OFlags::CREATE | OFlags::WRONLY);
        Ok(Lock(
            lock.with_context(|| self.join("lock").display().to_string())?,
        ))
    }

    /// Opens a file in it (0600); refuses links and files that are not regular files of this user.
    pub fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&self.handle, name, FILE | flags, mode)?;
        let stat = fstat(&file)?;
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_regular || stat.st_uid != geteuid().as_raw() {
            return Err(io::Error::other("not a regular file of this user; remove it"));
        }
        Ok(file.into())
    }

    /// Removes a file, which need not exist.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a file in one step, so that readers never see a partial file.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        let temporary = format!(".{name}.new");
        let write = || -> io::Result<()> {
            self.remove(&temporary)?;
            let mut file = self.open_file(&temporary, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY)?;
            file.write_all(&text)?;
            Ok(renameat(&self.handle, &temporary, &self.handle, name)?)
        };
        write().with_context(|| format!("cannot write {}", self.join(name).display()))
    }

    /// Reads a JSON file in it; `None` if it does not exist.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let place = || self.join(name).display().to_string();
        let file = match self.open_file(name, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.with_context(place)?,
        };
        let text = io::read_to_string(file).with_context(place)?;
        let value = serde_json::from_str(&text).with_context(|| format!("{} is damaged", place()))?;
        Ok(Some(value))
    }

    /// The resources of a killed supervisor; `None` after a normal end.
    pub fn read_resources(&self) -> Result<Option<OwnedResources>> {
        self.read_json("state.json")
            .context("remove the resources that it lists by hand, then the file")
    }
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// The playbooks' directory of state directories.
const PARENT: &str = "loadprint";

fn refused(path: &Path, error: Errno) -> anyhow::Error {
    anyhow::Error::new(io::Error::from(error))
        .context(format!("cannot use the state directory {}", path.display()))
}

fn parent_of(path: &Path) -> Result<&Path> {
    path.parent()
        .filter(|_| path.is_absolute())
        .with_context(|| format!("{} cannot be a state directory", path.display()))
}

fn name_of(path: &Path) -> Result<&OsStr> {
    path.file_name()
        .with_context(|| format!("{} cannot be a state directory", path.display()))
}

/// Opens the parent of the state directory, in which another user could forge the state that root reads, or redirect
/// its writes.
fn open_parent(path: &Path) -> Result<OwnedFd> {
    let parent = parent_of(path)?;
    let real = require_trusted(parent)
        .map_err(anyhow::Error::from)
        .and_then(|()| Ok(parent.canonicalize()?))
        .with_context(|| format!("cannot use the state directory {}", path.display()))?;
    openat(CWD, &real, DIRECTORY, Mode::empty()).map_err(|error| refused(path, error))
}

impl Lock {
    /// Takes the lock; false if another supervisor has it.
    pub fn try_take(&self) -> io::Result<bool> {
        match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the lock is free and takes it.
    pub fn wait(&self) -> io::Result<()> {
        Ok(flock(&self.0, FlockOperation::LockExclusive)?)
    }
}
