//! Child processes that run a given work an exact number of times.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

use std::fs;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Read;
use std::io::Write;
use std::io::pipe;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;
use std::time::Instant;

/// Waits until `done`; fails after a timeout.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

/// A fork of this program. Because the program has threads, the child may only make system calls.
pub struct Child {
    pub pid: i32,
    start: PipeWriter,
    done: PipeReader,
}

impl Child {
    /// A child that runs `work` at every [`Child::go`] and waits on a pipe in between.
    pub fn new(work: impl Fn()) -> Self {
        // SAFETY: the child only makes system calls until it is killed.
        Self::forked(|| unsafe { libc::fork() }, work)
    }

    /// A child with the given process ID (clone(2), `set_tid`).
    pub fn numbered(pid: i32, work: impl Fn()) -> Self {
        let fork = || {
            // SAFETY: all other fields are zero; without a separate stack the child is a fork.
            let mut arguments: libc::clone_args = unsafe { zeroed() };
            arguments.exit_signal = libc::SIGCHLD as u64;
            arguments.set_tid = (&raw const pid) as u64;
            arguments.set_tid_size = 1;
            // SAFETY: the structure and the ID live until the call returns.
            unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments)) as i32 }
        };
        Self::forked(fork, work)
    }

    fn forked(fork: impl Fn() -> i32, work: impl Fn()) -> Self {
        let (wait, start) = pipe().unwrap();
        let (done, done_writer) = pipe().unwrap();
        let pid = fork();
        assert!(pid >= 0);
        if pid == 0 {
            let mut byte = 0u8;
            // SAFETY: as above; the byte exists. The child is killed when its parent thread exits,
            // also if the test fails.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    if libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
                        libc::syscall(libc::SYS_exit_group, 0);
                    }
                    work();
                    libc::write(done_writer.as_raw_fd(), (&raw const byte).cast(), 1);
                }
            }
        }
        let child = Self { pid, start, done };
        until("the child does not wait", || child.kernel().is_asleep);
        child
    }

    /// Starts the work.
    pub fn go(&mut self) {
        self.start.write_all(b"!").unwrap();
    }

    /// Waits until the work is done.
    pub fn finish(&mut self) {
        self.done.read_exact(&mut [0]).unwrap();
    }

    /// True if it is blocked in this system call (proc_pid_syscall(5)).
    pub fn waits_in(&self, call: libc::c_long) -> bool {
        let now = fs::read_to_string(format!("/proc/{}/syscall", self.pid)).unwrap();
        now.split(' ').next() == Some(&call.to_string())
    }

    /// The kernel's counters of the child: proc_pid_status(5), proc_pid_schedstat in
    /// Documentation/scheduler/sched-stats.rst.
    pub fn kernel(&self) -> Kernel {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.pid)).unwrap();
        let status = read("status");
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.rsplit('\t').next().unwrap().parse().unwrap()
        };
        let schedstat: Vec<u64> = read("schedstat")
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        Kernel {
            is_asleep: read("stat").contains(") S "),
            voluntary: field("voluntary"),
            involuntary: field("nonvoluntary"),
            waited_ns: schedstat[1],
            timeslices: schedstat[2],
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the child belongs to this process and has not been reaped.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, null_mut(), 0);
        }
    }
}

/// The kernel's counters of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub is_asleep: bool,
    pub voluntary: u64,
    pub involuntary: u64,
    pub waited_ns: u64,
    pub timeslices: u64,
}

/// Runs the calling thread on the first CPU with real-time priority (sched(7), SCHED_FIFO). If that
/// is refused the child exits and its test fails at once; two children that wake each other would
/// otherwise wait forever.
pub fn alone_on_one_cpu() {
    // SAFETY: the structures are complete and live until the calls return.
    unsafe {
        let mut cpus: libc::cpu_set_t = zeroed();
        libc::CPU_SET(0, &mut cpus);
        let priority = libc::sched_param { sched_priority: 1 };
        if libc::sched_setaffinity(0, size_of_val(&cpus), &raw const cpus) != 0
            || libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) != 0
        {
            libc::syscall(libc::SYS_exit_group, 1);
        }
    }
}

/// Sleeps for 20 ms (clock_nanosleep(2)).
pub fn nap() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    // SAFETY: the structure lives until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            0,
            &raw const time,
            0,
        );
    }
}
