//! Compares the system call probes with processes that make a known number of calls.

use std::arch::asm;
use std::collections::BTreeMap;
use std::fs;
use std::io::pipe;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::prelude::*;

/// Timeout of a receive call without data (SO_RCVTIMEO, socket(7)).
const BLOCKED: Duration = Duration::from_millis(50);

/// The counters of a child's calls.
fn open(child: &Child, shared: &Rc<Shared>) -> Live {
    Live::sharing(
        "ebpf_syscalls",
        &watching(&[format!("load={}", child.pid)]),
        shared,
    )
}

static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn write_to_pipe(_: i32) {
    // SAFETY: write(2) is async-signal-safe.
    unsafe {
        libc::write(SIGNAL_PIPE.load(Ordering::Relaxed), c"!".as_ptr().cast(), 1);
    }
}

/// A `read` that a signal interrupts: the handler writes the data that it waits for, and the kernel
/// restarts it. The test sends the signal when the child waits.
fn interrupted_read(reader: i32) {
    let mut byte = 0u8;
    // SAFETY: all other fields of the structures are zero, and the byte exists.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = write_to_pipe as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, null_mut());
        libc::read(reader, (&raw mut byte).cast(), 1);
    }
}

#[cfg(target_arch = "x86_64")]
fn calls_of_32_bits() {
    for _ in 0..3 {
        // SAFETY: getpid(2) with its 32-bit number and entry changes only the result register.
        unsafe {
            asm!("int 0x80", inlateout("eax") 20 => _, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
    }
}

#[test]
fn every_call_of_a_watched_process_counts_once() {
    let file = tempfile::tempfile().unwrap();
    let (silent, _other) = UnixStream::pair().unwrap();
    silent.set_read_timeout(Some(BLOCKED)).unwrap();
    let (bell, rung) = pipe().unwrap();
    SIGNAL_PIPE.store(rung.as_raw_fd(), Ordering::Relaxed);
    let (fd, silent, bell) = (file.as_raw_fd(), silent.as_raw_fd(), bell.as_raw_fd());
    let mut child = Child::new(move || {
        let mut bytes = [0u8; 16];
        getppid(1000);
        // SAFETY: the descriptors are open and the buffer exists.
        unsafe {
            for _ in 0..23 {
                libc::fsync(fd);
            }
            for _ in 0..17 {
                libc::pread(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0);
            }
            for _ in 0..7 {
                libc::close(-1);
            }
            libc::recv(silent, bytes.as_mut_ptr().cast(), 1, 0);
        }
        interrupted_read(bell);
        #[cfg(target_arch = "x86_64")]
        calls_of_32_bits();
    });
    let shared = Rc::default();
    let mut counted = open(&child, &shared);
    let options = watching(&[format!("load={}", child.pid)]);
    let mut timed = Live::sharing("ebpf_syscall_latency", &options, &shared);
    let before = timed.read();
    assert_eq!(
        counted.read(),
        Reading::new(),
        "it waits, and others do not count"
    );
    child.go();
    // A process that is not watched makes the same calls.
    for _ in 0..500 {
        file.sync_all().unwrap();
    }
    // Number and first argument of the call (proc_pid_syscall(5)).
    let wanted = format!("{} {bell:#x} ", libc::SYS_read);
    until("the child waits for the signal", || {
        fs::read_to_string(format!("/proc/{}/syscall", child.pid)).is_ok_and(|now| now.starts_with(&wanted))
    });
    // SAFETY: the signal goes to a child of this test, which has a handler for it.
    assert_eq!(unsafe { libc::kill(child.pid, libc::SIGALRM) }, 0);
    child.finish();
    child.until_asleep();

    let calls = counted.read();
    let numbers: BTreeMap<_, _> = calls
        .iter()
        .map(|(call, row)| (&**call, (row["count"], row["errors"])))
        .collect();
    let mut expected = BTreeMap::from([
        ("load fsync", (23, 0)),
        ("load getppid", (1000, 0)),
        ("load pread64", (17, 0)),
        ("load close", (7, 7)),
        ("load recvfrom", (1, 1)),
        // The calls in which it waits before and after its work are not counted: the first began
        // before the probe was opened, the last has not returned.
        ("load read", (2, 1)),
        // That of the handler, and the report of the child's end.
        ("load write", (2, 0)),
        ("load rt_sigaction", (1, 0)),
        ("load rt_sigreturn", (1, 0)),
    ]);
    if cfg!(target_arch = "x86_64") {
        expected.insert("load compat", (3, 0));
    }
    assert_eq!(numbers, expected);
    let time_of = |call: &str| calls.get(call).map_or(0, |row| row["time_ns"]);
    assert!(time_of("load recvfrom") >= BLOCKED.as_nanos() as u64, "{calls:?}");
    assert!(
        time_of("load getppid") > 0 && time_of("load fsync") > 0,
        "{calls:?}"
    );

    let after = timed.read();
    for (call, count) in [("fsync", 23), ("fdatasync", 0), ("pread64", 17), ("pwrite64", 0)] {
        let call = format!("load {call}");
        let new = between(&before, &after, &call);
        assert_eq!((new.count(), new["sum_ns"]), (count, time_of(&call)), "{call}");
    }
}

/// Without task storage, as on Linux 5.10, the entry of a call is found at its return.
#[test]
fn calls_are_counted_and_timed_without_task_storage() {
    let mut child = Child::new(|| getppid(1000));
    let mut counted = open(&child, &Rc::new(Shared::without_task_storage()));
    child.round();
    let calls = counted.read();
    let row = &calls["load getppid"];
    assert_eq!((row["count"], row["errors"]), (1000, 0), "{calls:?}");
    assert!(row["time_ns"] > 0, "{calls:?}");
}

/// Threads on one CPU preempt each other during the programs; no call may be lost.
#[test]
fn calls_of_many_threads_are_exact() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 50_000;
    let options = watching(&[format!("load={}", process::id())]);
    let mut probe = Live::open("ebpf_syscalls", &options);
    let before = probe.read();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| getppid(CALLS));
        }
    });
    let new = between(&before, &probe.read(), "load getppid");
    assert_eq!(new["count"], THREADS * CALLS);
}

/// A thread that exits in a call leaves no entry for a later thread with the same ID.
#[test]
fn calls_that_never_return_do_not_count() {
    let mut child = Child::new(|| {
        // SAFETY: no call has this number, and the last one ends the child.
        unsafe {
            libc::syscall(9999);
            libc::syscall(libc::SYS_exit_group, 0);
        }
    });
    let mut probe = open(&child, &Rc::default());
    probe.read();
    child.go();
    until("the child has exited", || {
        fs::read_to_string(format!("/proc/{}/stat", child.pid)).is_ok_and(|stat| stat.contains(") Z "))
    });
    let calls = probe.read();
    assert_eq!(
        calls.keys().collect::<Vec<_>>(),
        ["load other"],
        "exit_group does not return"
    );
    let row = &calls["load other"];
    assert_eq!((row["count"], row["errors"]), (1, 1));
}
