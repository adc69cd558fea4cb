//! Compares the states of runnable threads with a busy CPU and with a quota.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

mod children;
mod common;
mod watched;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process;
use std::ptr::null_mut;
use std::time::Duration;
use std::time::Instant;

use children::Child;
use children::until;
use watched::Watched;

/// A control group of either version with a quota of 10 ms in 100 ms, removed when the test ends.
struct Quota(PathBuf);

impl Quota {
    fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = |kind: &str, option: &str| {
            let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let found = mounts.find(|words| {
                words[2] == kind && (option.is_empty() || words[3].split(',').any(|word| word == option))
            });
            found.map(|words| PathBuf::from(words[1]))
        };
        let name = format!("loadprint-quota-{}", process::id());
        let write = |path: &Path, file: &str, value: &str| fs::write(path.join(file), value).unwrap();
        if let Some(root) = mount("cgroup", "cpu") {
            let path = root.join(name);
            fs::create_dir(&path).unwrap();
            write(&path, "cpu.cfs_period_us", "100000");
            write(&path, "cpu.cfs_quota_us", "10000");
            return Self(path);
        }
        let root = mount("cgroup2", "").unwrap();
        write(&root, "cgroup.subtree_control", "+cpu");
        let path = root.join(name);
        fs::create_dir(&path).unwrap();
        write(&path, "cpu.max", "10000 100000");
        Self(path)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

fn monotonic() -> Duration {
    time_of(libc::CLOCK_MONOTONIC)
}

fn time_of(clock: libc::clockid_t) -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure lives until the call returns.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}

const STACK: usize = 1 << 16;

/// The function of a thread: 0.3 ms on the CPU.
extern "C" fn briefly(_: *mut libc::c_void) -> libc::c_int {
    while time_of(libc::CLOCK_THREAD_CPUTIME_ID) < Duration::from_micros(300) {}
    0
}

/// Runs `briefly` in a thread, and waits for its end.
fn run_thread(stack: *mut u8) {
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_SYSVSEM
        | libc::CLONE_THREAD
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    let (none, mut running) = (null_mut::<libc::c_void>(), 0u32);
    let id = &raw mut running;
    // SAFETY: stack and number live until the thread has ended; then the kernel clears the number.
    unsafe {
        libc::clone(briefly, stack.add(STACK).cast(), flags, none, id, none, id);
        loop {
            let now = id.read_volatile();
            if now == 0 {
                return;
            }
            libc::syscall(libc::SYS_futex, id, libc::FUTEX_WAIT, now, 0);
        }
    }
}

/// The kernel counts user and system time by tick: most threads have none, some have more than they
/// ran. A hypervisor can delay ticks.
#[test]
fn threads_of_less_than_a_millisecond_have_user_and_system_time() {
    const THREADS: u32 = 2000;
    // Aligned as a stack is.
    let mut stack = vec![0u128; STACK / size_of::<u128>()];
    let stack = stack.as_mut_ptr().cast::<u8>();
    let mut watched = Watched::new(|| (0..THREADS).for_each(|_| run_thread(stack)));
    let (before, ticks) = (watched.read(), watched.user_and_system_ns());
    watched.child.go();
    watched.child.finish();
    let ran = watched.read().since(&before).of("other", "on CPU").0;
    let ticks = watched.user_and_system_ns() - ticks;
    assert!(ran > u64::from(THREADS) * 150_000, "{ran}");
    assert!(ticks > ran / 5 && ticks < ran * 2, "{ticks} of {ran}");
}

#[test]
fn wait_of_a_group_without_quota_left_is_throttled() {
    let quota = Quota::new();
    let mut watched = Watched::new(|| {
        let end = monotonic() + Duration::from_millis(500);
        while monotonic() < end {}
    });
    fs::write(quota.0.join("cgroup.procs"), watched.child.pid.to_string()).unwrap();
    // 50 of 500 ms are on the CPU. A host with other load makes it wait for the CPU too.
    let seen = watched.once(|seen| seen.of("other", "throttled").0 > 300_000_000);
    assert!(seen.of("other", "on CPU").0 < 200_000_000, "{seen:?}");
    drop(watched);
}

#[test]
fn wait_for_a_busy_cpu_is_the_run_queue() {
    let spin = || {
        let end = monotonic() + Duration::from_millis(200);
        while monotonic() < end {}
    };
    let work = || {
        children::alone_on_one_cpu();
        spin();
    };
    let mut busy = Child::new(work);
    let mut watched = Watched::new(work);
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let before = watched.read();
        busy.go();
        watched.child.go();
        watched.child.finish();
        busy.finish();
        let seen = watched.read().since(&before);
        assert_eq!(seen.of("other", "throttled"), (0, 0), "{seen:?}");
        if seen.of("other", "run queue").0 > 50_000_000 {
            return;
        }
        assert!(Instant::now() < deadline, "{seen:?}");
    }
}
