//! Starts one process: pinned, in its network namespace, root and account before it executes. Everything between
//! fork and exec is plain system calls (signal-safety(7)); each has a step number, so that a failure is named.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Result;
use anyhow::anyhow;

use crate::account::Account;
use crate::cpus::CpuSet;

/// The variable by which processes of a supervisor that was killed are known again.
pub const TOKEN_VARIABLE: &str = "LOADPRINT_SUPERVISOR";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process to start, all names resolved.
#[derive(Debug)]
pub struct Spawn {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub token: String,
    pub cpus: Option<CpuSet>,
    pub netns: Option<Arc<OwnedFd>>,
    pub chroot: Option<PathBuf>,
    pub cwd: PathBuf,
    pub account: Option<Account>,
    pub stdout: File,
    pub stderr: File,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Session = 1,
    Netns,
    Pin,
    Chroot,
    Directory,
    Groups,
    Group,
    User,
    DeathSignal,
    Descriptors,
}

/// What the child needs after fork, made ready before it: no allocation happens there.
struct Plan {
    cpus: Option<CpuSet>,
    netns: Option<Arc<OwnedFd>>,
    chroot: Option<CString>,
    cwd: CString,
    account: Option<(u32, u32, Vec<u32>)>,
    parent: i32,
}

impl Spawn {
    /// Forks and executes; returns the pid. The calling thread must live as long as the supervisor: PDEATHSIG is
    /// sent when the *thread* that forked ends (PR_SET_PDEATHSIG(2const)).
    pub fn start(self) -> Result<u32> {
        let program = self.argv.first().cloned().unwrap_or_default();
        let root = self.chroot.clone();
        let cwd = self.cwd.clone();
        let cpus = self.cpus;
        let mut command = Command::new(&program);
        command
            .args(self.argv.iter().skip(1))
            .env_clear()
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8");
        if let Some((name, home)) = self.account.as_ref().and_then(|account| account.login.as_ref()) {
            command.env("USER", name).env("LOGNAME", name).env("HOME", home);
        }
        command.envs(self.env).env(TOKEN_VARIABLE, &self.token);
        command
            .stdin(Stdio::null())
            .stdout(self.stdout)
            .stderr(self.stderr);
        let plan = Plan {
            cpus: self.cpus,
            netns: self.netns,
            chroot: self.chroot.as_deref().map(c_path).transpose()?,
            cwd: c_path(&self.cwd)?,
            account: self
                .account
                .map(|account| (account.uid, account.gid, account.groups)),
            parent: rustix::process::getpid().as_raw_nonzero().get(),
        };
        // SAFETY: enter() only makes system calls on memory prepared above; it neither allocates nor locks.
        unsafe {
            command.pre_exec(move || plan.enter());
        }
        match command.spawn() {
            // Reaping is the daemon's, by waitpid: a Child that is dropped leaves the process alone.
            Ok(child) => Ok(child.id()),
            Err(error) => Err(explain(&error, &program, root.as_deref(), &cwd, cpus.as_ref())),
        }
    }
}

impl Plan {
    fn enter(&self) -> io::Result<()> {
        // SAFETY: system calls without memory arguments.
        check(Step::Session, unsafe { libc::setsid() })?;
        // The daemon's own umask is 077; a database's files should be what its own settings say.
        // SAFETY: cannot fail, touches no memory.
        unsafe { libc::umask(0o022) };
        if let Some(netns) = &self.netns {
            // SAFETY: the descriptor is open, the Arc in this plan holds it.
            check(Step::Netns, unsafe {
                libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET)
            })?;
        }
        if let Some(cpus) = &self.cpus {
            cpus.pin_self().map_err(|error| at(Step::Pin, &error))?;
        }
        if let Some(root) = &self.chroot {
            // SAFETY: root is a terminated string.
            check(Step::Chroot, unsafe { libc::chroot(root.as_ptr()) })?;
            // SAFETY: the literal is a terminated string.
            check(Step::Chroot, unsafe { libc::chdir(c"/".as_ptr()) })?;
        }
        // SAFETY: cwd is a terminated string.
        check(Step::Directory, unsafe { libc::chdir(self.cwd.as_ptr()) })?;
        if let Some((uid, gid, groups)) = &self.account {
            // SAFETY: the pointer and length are those of one slice.
            check(Step::Groups, unsafe {
                libc::setgroups(groups.len(), groups.as_ptr())
            })?;
            // SAFETY: no memory arguments.
            check(Step::Group, unsafe { libc::setgid(*gid) })?;
            // SAFETY: no memory arguments.
            check(Step::User, unsafe { libc::setuid(*uid) })?;
        }
        // After setuid: a change of credentials clears it. The parent may have died before it was set.
        // SAFETY: no memory arguments.
        check(Step::DeathSignal, unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
        })?;
        // SAFETY: no memory arguments.
        if unsafe { libc::getppid() } != self.parent {
            return Err(at(Step::DeathSignal, &io::Error::from_raw_os_error(libc::ESRCH)));
        }
        // Marked, not closed: std still reports through a descriptor of its own when exec fails.
        // SAFETY: no memory arguments.
        let marked =
            unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if marked < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
            return Err(at(Step::Descriptors, &io::Error::last_os_error()));
        }
        Ok(())
    }
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| anyhow!("{}: a path with a NUL", path.display()))
}

fn check(step: Step, result: i32) -> io::Result<()> {
    if result < 0 {
        Err(at(step, &io::Error::last_os_error()))
    } else {
        Ok(())
    }
}

/// Command::spawn carries one i32 from child to parent: the step rides above the error number.
fn at(step: Step, error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error((step as i32) << 16 | error.raw_os_error().unwrap_or(0))
}

fn explain(
    error: &io::Error,
    program: &str,
    root: Option<&Path>,
    cwd: &Path,
    cpus: Option<&CpuSet>,
) -> anyhow::Error {
    let code = error.raw_os_error().unwrap_or(0);
    let cause = io::Error::from_raw_os_error(code & 0xffff);
    let inside = root
        .map(|root| format!(" in {}", root.display()))
        .unwrap_or_default();
    match code >> 16 {
        0 if code == libc::ENOENT => anyhow!("program not found{inside}: {program} (or its interpreter)"),
        0 => anyhow!("cannot execute {program}{inside}: {error}"),
        step if step == Step::Pin as i32 => {
            let cpus = cpus.map(CpuSet::to_string).unwrap_or_default();
            anyhow!("cannot pin to CPUs {cpus}: {cause}; a cpuset cgroup may forbid some of them")
        }
        step if step == Step::Chroot as i32 => anyhow!("cannot chroot{inside}: {cause}"),
        step if step == Step::Directory as i32 => {
            anyhow!("working directory {}{inside}: {cause}", cwd.display())
        }
        step if step == Step::Netns as i32 => anyhow!("cannot enter the network namespace: {cause}"),
        step => anyhow!("cannot prepare {program} (step {step} before exec): {cause}"),
    }
}
