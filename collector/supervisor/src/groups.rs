//! Control groups (version 2, cgroups(7)): what a process forks stays in its group, whatever session, parent
//! or user it has, and ends with the group. Nothing here reads a file that such a process can block.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::mkdirat;
use rustix::fs::openat;
use rustix::fs::unlinkat;
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::mount::UnmountFlags;
use rustix::mount::mount;
use rustix::mount::unmount;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

/// How long killed processes may take to exit, for example from an uninterruptible write.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a group is read while its processes exit.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The same while they freeze, which takes less than a millisecond.
const FREEZE_POLL: Duration = Duration::from_micros(200);
/// Exists on all systems with control groups.
const MOUNT_POINT: &str = "/sys/fs/cgroup";
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A group, and the groups in it.
#[derive(Debug)]
pub struct Group {
    /// Below the root of the hierarchy.
    path: PathBuf,
    dir: OwnedFd,
}

/// Opens the root of the hierarchy, wherever this system has mounted it. The caller is in a private mount
/// namespace.
fn hierarchy() -> Result<OwnedFd> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("none", MOUNT_POINT, "cgroup2", flags, None).context(
        "cannot mount control groups of version 2, which Linux has since 4.5 (needs CONFIG_CGROUPS)",
    )?;
    let root = openat(CWD, MOUNT_POINT, DIRECTORY, Mode::empty());
    // It remains usable through the descriptor.
    unmount(MOUNT_POINT, UnmountFlags::DETACH).context(MOUNT_POINT)?;
    root.context(MOUNT_POINT)
}

impl Group {
    /// Creates a group below that of this process, whose limits it has.
    pub fn create(name: &str) -> Result<Self> {
        // First, because the kernel lists no group of a version that was never mounted.
        let hierarchy = hierarchy()?;
        let own = fs::read_to_string("/proc/self/cgroup").context("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let parent = Path::new(own.context("/proc/self/cgroup has no group of version 2")?);
        Self::create_in(&hierarchy, parent, name)
            .with_context(|| format!("cannot create a control group in /{}", parent.display()))
    }

    /// Creates a group in this one.
    pub fn child(&self, name: &str) -> Result<Self> {
        Self::create_in(&self.dir, Path::new(""), name).with_context(|| format!("control group {name}"))
    }

    fn create_in(dir: &OwnedFd, parent: &Path, name: &str) -> io::Result<Self> {
        // A group of this name may be left by a process that could not be killed.
        let mut number = 0;
        let path = loop {
            let path = parent.join(format!("{name}.{number}"));
            match mkdirat(dir, &path, Mode::from_raw_mode(0o755)) {
                Err(Errno::EXIST) => number += 1,
                created => break created.map(|()| path)?,
            }
        };
        let dir = openat(dir, &path, DIRECTORY, Mode::empty())?;
        Ok(Self { path, dir })
    }

    /// Opens the group of an earlier supervisor; `None` if it is gone.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        match openat(&hierarchy()?, path, DIRECTORY, Mode::empty()) {
            Ok(dir) => Ok(Some(Self {
                path: path.to_owned(),
                dir,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("control group {}", path.display())),
        }
    }

    /// Its path, for [`Group::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file through which a process that writes `0` enters the group.
    pub fn entrance(&self) -> io::Result<OwnedFd> {
        Ok(openat(
            &self.dir,
            "cgroup.procs",
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    }

    /// Its processes, without those of its groups.
    pub fn pids(&self) -> Vec<u32> {
        let text = self.read("cgroup.procs").unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// True if no process is in it or its groups.
    pub fn is_empty(&self) -> bool {
        self.has_event("populated 0")
    }

    fn has_event(&self, wanted: &str) -> bool {
        let events = self.read("cgroup.events");
        events.is_ok_and(|events| events.lines().any(|line| line == wanted))
    }

    /// Sends SIGKILL to all processes in it and its groups, also to frozen ones.
    pub fn kill(&self) {
        let file = openat(
            &self.dir,
            "cgroup.kill",
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        match file {
            Ok(file) => drop(rustix::io::write(file, b"1")),
            // Before Linux 5.14: repeated until the group is empty.
            Err(_) => self.kill_each(),
        }
    }

    fn kill_each(&self) {
        self.groups().iter().for_each(Self::kill_each);
        let pids = self.pids().into_iter().filter_map(|pid| i32::try_from(pid).ok());
        for pid in pids.filter_map(Pid::from_raw) {
            // It may have exited.
            kill_process(pid, Signal::KILL).ok();
        }
    }

    /// Freezes all processes in it and its groups, or lets them go on; returns when they have stopped.
    ///
    /// # Errors
    /// If they do not stop, for example because a device does not answer.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        let Ok(file) = openat(
            &self.dir,
            "cgroup.freeze",
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        ) else {
            // They have ended, and the group is gone; or a stop on a host before Linux 5.2, where nothing is frozen.
            return Ok(());
        };
        let (value, state): (&[u8], _) = if frozen {
            (b"1", "frozen 1")
        } else {
            (b"0", "frozen 0")
        };
        rustix::io::write(file, value).context("cgroup.freeze")?;
        let deadline = Instant::now() + KILL_TIMEOUT;
        while !self.has_event(state) {
            if Instant::now() >= deadline {
                bail!(
                    "processes of control group {} do not stop within {KILL_TIMEOUT:?}",
                    self.path.display()
                );
            }
            thread::sleep(FREEZE_POLL);
        }
        Ok(())
    }

    /// Kills all processes in it and removes it; calls `reap` meanwhile. Gives a description of what is left.
    pub fn end(&self, mut reap: impl FnMut()) -> Option<String> {
        let deadline = Instant::now() + KILL_TIMEOUT;
        loop {
            self.kill();
            reap();
            if self.is_empty() {
                return self
                    .remove()
                    .err()
                    .map(|error| format!("control group {}: {error}", self.path.display()));
            }
            if Instant::now() >= deadline {
                return Some(format!(
                    "processes of control group {} do not exit after SIGKILL",
                    self.path.display()
                ));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Removes it, which is empty, with its groups.
    pub fn remove(&self) -> io::Result<()> {
        for group in self.groups() {
            group.remove()?;
        }
        let name = self.path.file_name().unwrap_or_default();
        Ok(unlinkat(
            &self.dir,
            Path::new("..").join(name),
            AtFlags::REMOVEDIR,
        )?)
    }

    fn groups(&self) -> Vec<Self> {
        let path = format!("/proc/self/fd/{}", self.dir.as_raw_fd());
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        names
            .filter_map(|entry| {
                let dir = openat(&self.dir, entry.file_name(), DIRECTORY, Mode::empty()).ok()?;
                Some(Self {
                    path: self.path.join(entry.file_name()),
                    dir,
                })
            })
            .collect()
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let file = openat(&self.dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Needs root.
    #[test]
    fn a_group_ends_also_by_signals() {
        // Of this thread.
        crate::mounts::enter_private_namespace().unwrap();
        let group = Group::create("loadprint-test").unwrap();
        let inner = group.child("inner").unwrap();
        let mut children = [&group, &inner].map(|group| {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            rustix::io::write(group.entrance().unwrap(), child.id().to_string().as_bytes()).unwrap();
            child
        });
        assert_eq!(inner.pids(), [children[1].id()]);
        // As without cgroup.kill.
        while !group.is_empty() {
            group.kill_each();
        }
        for child in &mut children {
            assert!(!child.wait().unwrap().success());
        }
        assert_eq!(group.end(|| ()), None);
        assert!(Group::open(group.path()).unwrap().is_none());
    }
}
