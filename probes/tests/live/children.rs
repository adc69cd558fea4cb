//! Child processes that run a given work an exact number of times, and programs that are compiled.

use std::fs;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Read;
use std::io::Write;
use std::io::pipe;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process;
use std::process::Command;
use std::process::Stdio;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

use crate::readings::until;

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
        child.until_asleep();
        child
    }

    pub fn until_asleep(&self) {
        until("the child waits", || self.kernel().is_asleep);
    }

    /// Does the work once.
    pub fn round(&mut self) {
        self.go();
        self.finish();
    }

    /// Starts the work, which ends with [`Child::finish`].
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
            counts: [
                field("voluntary"),
                field("nonvoluntary"),
                schedstat[1],
                schedstat[2],
            ],
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    pub is_asleep: bool,
    /// Voluntary and involuntary switches, time that it waited for a CPU (ns), periods on a CPU.
    pub counts: [u64; 4],
}

/// Runs the calling thread on the first CPU with real-time priority (sched(7), SCHED_FIFO). If that
/// is refused the child exits and its test fails at once; two children that wake each other would
/// otherwise wait forever.
pub fn alone_on_one_cpu() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure lives until the call returns.
    unsafe {
        if !pin(0, 0) || libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) != 0 {
            libc::syscall(libc::SYS_exit_group, 1);
        }
    }
}

/// The time of a wait.
pub const NAP: Duration = Duration::from_millis(20);

/// Sleeps with one system call.
pub fn nap() {
    thread::sleep(NAP);
}

/// Waits for an event of one or two descriptors, up to a time.
pub fn poll(descriptors: &[i32], events: i16, milliseconds: i32) {
    let (fd, revents) = (-1, 0);
    let mut polls = [libc::pollfd { fd, events, revents }; 2];
    for (poll, descriptor) in polls.iter_mut().zip(descriptors) {
        poll.fd = *descriptor;
    }
    // SAFETY: the array has at least this number of elements.
    unsafe {
        libc::poll(
            polls.as_mut_ptr(),
            descriptors.len() as libc::nfds_t,
            milliseconds,
        )
    };
}

/// Makes this number of system calls that do nothing.
pub fn getppid(calls: u64) {
    for _ in 0..calls {
        let _parent = rustix::process::getppid();
    }
}

/// Runs a thread on one CPU; 0 is the calling one. It returns whether that is permitted.
pub fn pin(thread: i32, cpu: usize) -> bool {
    // SAFETY: the structure is complete and lives until the call returns.
    unsafe {
        let mut cpus: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut cpus);
        libc::sched_setaffinity(thread, size_of_val(&cpus), &raw const cpus) == 0
    }
}

/// Numbers that this process shares with its children.
pub fn shared_numbers() -> &'static [AtomicU32; 1024] {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new page of zeros, which is never unmapped.
    unsafe { &*libc::mmap(null_mut(), 4096, protection, flags, -1, 0).cast() }
}

/// A program that ends with the test.
pub struct Running(pub process::Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn send(&mut self, input: &str) {
        self.0
            .stdin
            .as_mut()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Compiles a program with `cc` or `c++`.
pub fn compile(compiler: &str, source: &str, program: &Path, options: &[&str]) {
    let file = program.with_extension(if compiler == "cc" { "c" } else { "cc" });
    fs::write(&file, source).unwrap();
    run(Command::new(compiler)
        .args(["-O1", "-Wl,--build-id", "-o"])
        .args([program, &file])
        .args(options));
}

/// Runs a command, which must succeed; returns its output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
