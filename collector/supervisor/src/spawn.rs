//! Starts one process. CPUs, memory nodes, network namespace, root directory and user are set between fork and
//! exec, after the process has entered its control group, by system calls only (signal-safety(7)). Each has a step number, by which the parent
//! reports a failure.

use std::ffi::CStr;
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

use anyhow::Context;
use anyhow::Result;
use anyhow::anyhow;
use loadprint_cpulist::CpuSet;

use crate::cpus;
use crate::groups::Group;
use crate::memory::NodeSet;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process to start, with all names resolved.
#[derive(Debug)]
pub struct Spawn {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub group: Arc<Group>,
    pub cpus: Option<CpuSet>,
    pub memory_nodes: Option<NodeSet>,
    pub netns: Option<Arc<OwnedFd>>,
    pub chroot: Option<PathBuf>,
    /// Numbers of its user and of its only group.
    pub user: Option<(u32, u32)>,
    pub stdout: File,
    pub stderr: File,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    ControlGroup = 1,
    Session,
    Netns,
    Pin,
    Memory,
    Chroot,
    Groups,
    Group,
    User,
    DeathSignal,
    Descriptors,
}

impl Spawn {
    /// Forks and executes; returns the pid. The calling thread must run as long as the supervisor:
    /// the kernel sends PDEATHSIG when the *thread* that forked exits (PR_SET_PDEATHSIG(2const)).
    pub fn start(self) -> Result<u32> {
        let program = self.argv.first().cloned().unwrap_or_default();
        let mut command = Command::new(&program);
        command
            .args(self.argv.iter().skip(1))
            .env_clear()
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8");
        command
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(self.stdout.try_clone()?)
            .stderr(self.stderr.try_clone()?);
        // The child must not allocate memory.
        let entrance = self.group.entrance().context("cgroup.procs")?;
        let root = self.chroot.as_deref().map(c_path).transpose()?;
        let parent = rustix::process::getpid().as_raw_nonzero().get();
        let plan = Arc::new(self);
        let of_child = Arc::clone(&plan);
        // SAFETY: enter() only makes system calls on memory prepared above; it neither allocates
        // nor locks.
        unsafe {
            command.pre_exec(move || of_child.enter(&entrance, root.as_deref(), parent));
        }
        match command.spawn() {
            // Dropping the Child does not affect the process; the daemon reaps it by waitpid.
            Ok(child) => Ok(child.id()),
            Err(error) => Err(plan.explain(&error, &program)),
        }
    }

    fn enter(&self, entrance: &OwnedFd, root: Option<&CStr>, parent: i32) -> io::Result<()> {
        // SAFETY: the literal has one byte.
        let entered = unsafe { libc::write(entrance.as_raw_fd(), c"0".as_ptr().cast(), 1) };
        check(Step::ControlGroup, entered as i32)?;
        // SAFETY: system calls without memory arguments.
        check(Step::Session, unsafe { libc::setsid() })?;
        // The daemon's umask is 077; the modes of a database's files must come from its own
        // settings. SAFETY: cannot fail, touches no memory.
        unsafe { libc::umask(0o022) };
        if let Some(netns) = &self.netns {
            // SAFETY: the Arc in this plan keeps the descriptor open.
            check(Step::Netns, unsafe {
                libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET)
            })?;
        }
        if let Some(cpus) = &self.cpus {
            cpus::pin_self(cpus).map_err(|error| at(Step::Pin, &error))?;
        }
        if let Some(nodes) = &self.memory_nodes {
            nodes.bind_self().map_err(|error| at(Step::Memory, &error))?;
        }
        if let Some(root) = root {
            // SAFETY: root is a terminated string.
            check(Step::Chroot, unsafe { libc::chroot(root.as_ptr()) })?;
            // SAFETY: the literal is a terminated string.
            check(Step::Chroot, unsafe { libc::chdir(c"/".as_ptr()) })?;
        }
        if let Some((uid, gid)) = self.user {
            // SAFETY: the pointer is that of one number.
            check(Step::Groups, unsafe { libc::setgroups(1, &raw const gid) })?;
            // SAFETY: no memory arguments.
            check(Step::Group, unsafe { libc::setgid(gid) })?;
            // SAFETY: no memory arguments.
            check(Step::User, unsafe { libc::setuid(uid) })?;
        }
        // After setuid, which clears it. The parent may have exited before it is set, hence the
        // check below. SAFETY: no memory arguments.
        check(Step::DeathSignal, unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
        })?;
        // SAFETY: no memory arguments.
        if unsafe { libc::getppid() } != parent {
            return Err(at(Step::DeathSignal, &io::Error::from_raw_os_error(libc::ESRCH)));
        }
        // Close-on-exec instead of close: std needs its own descriptor to report a failed exec.
        // SAFETY: no memory arguments.
        let marked =
            unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if marked < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
            return Err(at(Step::Descriptors, &io::Error::last_os_error()));
        }
        Ok(())
    }

    fn explain(&self, error: &io::Error, program: &str) -> anyhow::Error {
        let code = error.raw_os_error().unwrap_or(0);
        let cause = io::Error::from_raw_os_error(code & 0xffff);
        let root = self.chroot.as_ref();
        let inside = root
            .map(|root| format!(" in {}", root.display()))
            .unwrap_or_default();
        match code >> 16 {
            0 if code == libc::ENOENT => anyhow!("program not found{inside}: {program} (or its interpreter)"),
            0 => anyhow!("cannot execute {program}{inside}: {error}"),
            step if step == Step::Pin as i32 => {
                let cpus = self.cpus.map(|cpus| cpus.to_string()).unwrap_or_default();
                anyhow!(
                    "cannot pin to CPUs {cpus}: {cause}; check whether a cpuset cgroup forbids some of them"
                )
            }
            step if step == Step::Memory as i32 => anyhow!(
                "cannot bind to the memory nodes: {cause}; check whether a cpuset cgroup or a container (set_mempolicy \
             needs CAP_SYS_NICE in Docker) forbids it"
            ),
            step if step == Step::Chroot as i32 => anyhow!("cannot chroot{inside}: {cause}"),
            step if step == Step::ControlGroup as i32 => anyhow!("cannot enter the control group: {cause}"),
            step if step == Step::Netns as i32 => anyhow!("cannot enter the network namespace: {cause}"),
            step => anyhow!("cannot prepare {program} (step {step} before exec): {cause}"),
        }
    }
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| anyhow!("{}: the path contains a NUL byte", path.display()))
}

fn check(step: Step, result: i32) -> io::Result<()> {
    if result < 0 {
        Err(at(step, &io::Error::last_os_error()))
    } else {
        Ok(())
    }
}

/// Command::spawn passes one i32 from child to parent: the upper half is the step, the lower half
/// the error number.
fn at(step: Step, error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error((step as i32) << 16 | error.raw_os_error().unwrap_or(0))
}
