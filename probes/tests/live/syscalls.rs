//! Compares the system call probes with processes that make a known number of calls.

#[cfg(target_arch = "x86_64")]
use crate::common;
use std::arch::asm;
use std::collections::BTreeMap;
use std::fs;
use std::io::PipeWriter;
use std::io::Write;
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
use std::time::Instant;

use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::histogram::subtract;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

/// Timeout of a receive call without data (SO_RCVTIMEO, socket(7)).
const BLOCKED_MS: i64 = 50;

fn open(name: &str, options: &Options, shared: &Rc<Shared>) -> Box<dyn Probe> {
    common::entry(name)
        .open(&Host::default(), options, shared)
        .unwrap()
}

fn watching(pid: u32) -> Options {
    Options {
        processes: vec![format!("load={pid}").parse().unwrap()],
        ..Options::default()
    }
}

/// The first `width` counters of every call.
fn counts(probe: &mut dyn Probe) -> BTreeMap<String, [u64; 3]> {
    let mut rows = Rows::default();
    common::read(probe, &mut rows).unwrap();
    (0..rows.len())
        .map(|row| {
            let mut entity = rows.entity(row);
            assert_eq!(entity.next(), Some(&b"load"[..]));
            let call = String::from_utf8(entity.next().unwrap().to_vec()).unwrap();
            let cell = |column| match rows.value(row, column, 3) {
                Value::Bits(bits) => bits,
                other => panic!("{other:?}"),
            };
            (call, [cell(0), cell(1), cell(2)])
        })
        .collect()
}

/// Sum and buckets of every call that has a histogram.
fn histograms(probe: &mut dyn Probe) -> BTreeMap<String, (u64, Vec<u64>)> {
    let mut rows = Rows::default();
    common::read(probe, &mut rows).unwrap();
    (0..rows.len())
        .map(|row| {
            let call = rows.entity(row).nth(1).unwrap();
            let (Value::Bits(sum), Value::List(buckets)) = (rows.value(row, 0, 2), rows.value(row, 1, 2))
            else {
                panic!("not a histogram");
            };
            (String::from_utf8(call.to_vec()).unwrap(), (sum, buckets.to_vec()))
        })
        .collect()
}

/// A child that waits in `read` until it gets a byte, then runs `work` and exits. `work` may only
/// make system calls: the child is a fork of a program with threads.
fn child(work: impl Fn()) -> (i32, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    // SAFETY: the child only makes system calls and exits with one.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let mut byte = 0u8;
        // SAFETY: as above; the byte exists. The child is killed when the test ends, also if it
        // fails.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1);
            work();
            libc::syscall(libc::SYS_exit_group, 0);
        }
    }
    let stat = format!("/proc/{pid}/stat");
    let deadline = Instant::now() + Duration::from_secs(300);
    while !fs::read_to_string(&stat).unwrap().contains(") S ") {
        assert!(Instant::now() < deadline, "the child does not wait");
        thread::yield_now();
    }
    (pid, writer)
}

/// Waits until the child is blocked in `read` of this descriptor (proc_pid_syscall(5): number and
/// arguments of the call), then sends a signal.
fn interrupt_its_read(pid: i32, descriptor: i32) {
    let wanted = format!("{} {descriptor:#x} ", libc::SYS_read);
    let deadline = Instant::now() + Duration::from_secs(300);
    while !fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|now| now.starts_with(&wanted)) {
        assert!(Instant::now() < deadline, "the child does not wait");
        thread::yield_now();
    }
    // SAFETY: the signal goes to a child of this test, which has a handler for it.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGALRM) }, 0);
}

fn wait_for_the_end_of(pid: i32) {
    let mut status = -1;
    // SAFETY: the child belongs to this process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child failed");
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
    silent
        .set_read_timeout(Some(Duration::from_millis(BLOCKED_MS.unsigned_abs())))
        .unwrap();
    let (bell, rung) = pipe().unwrap();
    SIGNAL_PIPE.store(rung.as_raw_fd(), Ordering::Relaxed);
    let (fd, silent, bell) = (file.as_raw_fd(), silent.as_raw_fd(), bell.as_raw_fd());
    let (pid, mut go) = child(move || {
        let mut bytes = [0u8; 16];
        // SAFETY: the descriptors are open and the buffer exists.
        unsafe {
            for _ in 0..23 {
                libc::fsync(fd);
            }
            for _ in 0..1000 {
                libc::syscall(libc::SYS_getppid);
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
    let (options, shared) = (watching(pid.unsigned_abs()), Rc::default());
    let (mut counted, mut timed) = (
        open("ebpf_syscalls", &options, &shared),
        open("ebpf_syscall_latency", &options, &shared),
    );
    let before = histograms(timed.as_mut());
    assert_eq!(
        counts(counted.as_mut()),
        BTreeMap::new(),
        "it waits, and others do not count"
    );
    go.write_all(b"!").unwrap();
    // A process that is not watched makes the same calls.
    for _ in 0..500 {
        file.sync_all().unwrap();
    }
    interrupt_its_read(pid, bell);
    wait_for_the_end_of(pid);

    let calls = counts(counted.as_mut());
    let numbers: BTreeMap<_, _> = calls
        .iter()
        .map(|(call, [count, _, errors])| (&**call, (*count, *errors)))
        .collect();
    let mut expected = BTreeMap::from([
        ("fsync", (23, 0)),
        ("getppid", (1000, 0)),
        ("pread64", (17, 0)),
        ("close", (7, 7)),
        ("recvfrom", (1, 1)),
        // The call that waited when the probe was opened is not counted.
        ("read", (2, 1)),
        ("write", (1, 0)),
        ("rt_sigaction", (1, 0)),
        ("rt_sigreturn", (1, 0)),
    ]);
    if cfg!(target_arch = "x86_64") {
        expected.insert("compat", (3, 0));
    }
    assert_eq!(numbers, expected);
    assert!(
        calls["recvfrom"][1] >= BLOCKED_MS.unsigned_abs() * 1_000_000,
        "{calls:?}"
    );
    assert!(calls["getppid"][1] > 0 && calls["fsync"][1] > 0, "{calls:?}");

    let after = histograms(timed.as_mut());
    for (call, count) in [("fsync", 23), ("fdatasync", 0), ("pread64", 17), ("pwrite64", 0)] {
        let (sum, buckets) = &after[call];
        let (sum_before, buckets_before) = &before[call];
        let new: u64 = subtract(buckets, buckets_before).iter().sum();
        assert_eq!(new, count, "{call}");
        let time = calls.get(call).map_or(0, |counters| counters[1]);
        assert_eq!(sum - sum_before, time, "{call}");
    }
}

/// Without task storage, as on Linux 5.10, the entry of a call is found at its return.
#[test]
fn calls_are_counted_and_timed_without_task_storage() {
    let (pid, mut go) = child(|| {
        for _ in 0..1000 {
            // SAFETY: getppid(2) takes nothing and cannot fail.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
    });
    let shared = Rc::new(Shared::without_task_storage());
    let mut counted = open("ebpf_syscalls", &watching(pid.unsigned_abs()), &shared);
    go.write_all(b"!").unwrap();
    wait_for_the_end_of(pid);
    let calls = counts(counted.as_mut());
    let [count, time_ns, errors] = calls["getppid"];
    assert_eq!((count, errors), (1000, 0), "{calls:?}");
    assert!(time_ns > 0, "{calls:?}");
}

/// Threads on one CPU preempt each other during the programs; no call may be lost.
#[test]
fn calls_of_many_threads_are_exact() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 50_000;
    let mut probe = open("ebpf_syscalls", &watching(process::id()), &Rc::default());
    let before = counts(probe.as_mut()).get("getppid").map_or(0, |call| call[0]);
    let work = || {
        for _ in 0..CALLS {
            // SAFETY: getppid(2) has no arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let after = counts(probe.as_mut())["getppid"][0];
    assert_eq!(after - before, THREADS * CALLS);
}

/// A thread that exits in a call leaves no entry for a later thread with the same ID.
#[test]
fn calls_that_never_return_do_not_count() {
    let (pid, mut go) = child(|| {
        // SAFETY: no call has this number.
        unsafe { libc::syscall(9999) };
    });
    let mut probe = open("ebpf_syscalls", &watching(pid.unsigned_abs()), &Rc::default());
    counts(probe.as_mut());
    go.write_all(b"!").unwrap();
    wait_for_the_end_of(pid);
    let calls = counts(probe.as_mut());
    assert_eq!(
        calls.keys().collect::<Vec<_>>(),
        ["other"],
        "exit_group does not return"
    );
    assert_eq!((calls["other"][0], calls["other"][2]), (1, 1));
}
