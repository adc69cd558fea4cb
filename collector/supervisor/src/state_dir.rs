//! The state directory: control.sock, status.json, state.json, supervisor.log, the lock, and the outputs of the
//! processes. state.json names everything that would outlive a kill, so that the next `start` can remove it.

use std::fs;
use std::fs::DirBuilder;
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::fs::FlockOperation;
use rustix::fs::flock;
use serde::Deserialize;
use serde::Serialize;

use crate::procfs::ProcessId;

/// What a supervisor holds that does not vanish by itself.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Holdings {
    pub boot_id: String,
    /// The value of `LOADPRINT_SUPERVISOR` in the environment of every process it started.
    pub token: String,
    /// The daemon.
    pub pid: u32,
    pub processes: Vec<ProcessId>,
    pub mounts: Vec<PathBuf>,
    pub interfaces: Vec<String>,
    pub owned: Vec<PathBuf>,
}

/// An existing state directory.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    handle: File,
}

/// An open lock file, not necessarily locked.
#[derive(Debug)]
pub struct Lock(File);

impl StateDir {
    /// Makes the directory (0700), or takes one that is ours alone.
    pub fn create(path: &Path) -> Result<Self> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .with_context(|| format!("cannot make the state directory {}", path.display()))?,
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot use the state directory {}", path.display()));
            }
            Ok(meta) if !meta.is_dir() => bail!("{} is not a directory", path.display()),
            Ok(meta) => {
                let mode = meta.mode() & 0o777;
                if meta.uid() != rustix::process::geteuid().as_raw() || mode & 0o077 != 0 {
                    bail!(
                        "{} is open to other users (mode {mode:04o}, uid {}); give a directory that does not exist yet, or chown and chmod 700 it",
                        path.display(),
                        meta.uid()
                    );
                }
            }
        }
        Ok(Self::open(path)?)
    }

    /// Opens an existing directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC)
            .open(path)?;
        Ok(Self {
            path: path.to_owned(),
            handle,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path below it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// sun_path has room for 107 bytes (unix(7)); through the descriptor any directory fits.
    fn socket(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/control.sock", self.handle.as_raw_fd()))
    }

    /// Connects to the control socket.
    pub fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.socket())
    }

    /// Binds the control socket; the caller holds the lock, so a socket that is there is stale.
    pub fn listen(&self) -> io::Result<UnixListener> {
        self.remove("control.sock")?;
        UnixListener::bind(self.socket())
    }

    /// Opens the lock file.
    pub fn open_lock(&self) -> Result<Lock> {
        let path = self.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("{}", path.display()))?;
        Ok(Lock(file))
    }

    /// Removes a file that may be absent.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Replaces a file in one step, so that readers never see half of it.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        let temporary = self.join(&format!(".{name}.new"));
        let write = || -> io::Result<()> {
            let mut file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(&text)?;
            fs::rename(&temporary, self.join(name))
        };
        write().with_context(|| format!("cannot write {}", self.join(name).display()))
    }

    /// The holdings a supervisor left; none when it ended in order.
    pub fn read_holdings(&self) -> Result<Option<Holdings>> {
        let path = self.join("state.json");
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("{}", path.display())),
            Ok(text) => Ok(Some(serde_json::from_slice(&text).with_context(|| {
                format!(
                    "{} is damaged; remove what it names by hand, then the file",
                    path.display()
                )
            })?)),
        }
    }
}

impl Lock {
    /// Takes the lock unless another supervisor has it.
    pub fn try_take(&self) -> io::Result<bool> {
        match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when nobody holds the lock.
    pub fn wait(&self) -> io::Result<()> {
        Ok(flock(&self.0, FlockOperation::LockExclusive)?)
    }
}
