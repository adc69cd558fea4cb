//! Compares the states of runnable threads with a busy CPU and with a quota.

use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::prelude::*;
use rustix::thread::futex;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

/// A quota of 10 ms in 100 ms.
fn quota() -> ControlGroup {
    ControlGroup::new(
        "cpu",
        &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "10000")],
        &[("cpu.max", "10000 100000")],
    )
}

fn time_of(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap()
}

fn monotonic() -> Duration {
    time_of(ClockId::Monotonic)
}

/// Uses a CPU, as far as it gets one.
fn spin(milliseconds: u64) {
    let end = monotonic() + Duration::from_millis(milliseconds);
    while monotonic() < end {}
}

const STACK: usize = 1 << 16;

/// The function of a thread: 0.3 ms on the CPU.
extern "C" fn briefly(_: *mut libc::c_void) -> libc::c_int {
    while time_of(ClockId::ThreadCPUTime) < Duration::from_micros(300) {}
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
    let (none, running) = (null_mut::<libc::c_void>(), AtomicU32::new(0));
    let id = running.as_ptr();
    // SAFETY: stack and number live until the thread has ended; then the kernel clears the number.
    unsafe { libc::clone(briefly, stack.add(STACK).cast(), flags, none, id, none, id) };
    loop {
        match running.load(Ordering::Relaxed) {
            0 => return,
            now => drop(futex::wait(&running, futex::Flags::empty(), now, None)),
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
    let before = watched.read();
    watched.child.round();
    let seen = watched.since(&before);
    let (ran, ticks) = (
        seen.of("other", "on CPU").0,
        seen.sum("user_ns") + seen.sum("system_ns"),
    );
    assert!(ran > u64::from(THREADS) * 150_000, "{ran}");
    assert!(ticks > ran / 5 && ticks < ran * 2, "{ticks} of {ran}");
}

#[test]
fn wait_of_a_group_without_quota_left_is_throttled() {
    let quota = quota();
    let mut watched = Watched::new(|| spin(500));
    quota.add(watched.child.pid);
    // 50 of 500 ms are on the CPU. A host with other load makes it wait for the CPU too.
    let seen = watched.once(|seen| seen.of("other", "throttled").0 > 300_000_000);
    assert!(seen.of("other", "on CPU").0 < 200_000_000, "{seen:?}");
    drop(watched);
}

/// Other threads of the group use up its quota on both CPUs. This one moves while it waits, and continues
/// on another CPU each time. Since Linux 6.18 (e1fad12dcb66) it first runs there, and waits there again.
#[test]
fn wait_that_ends_on_another_cpu_of_a_group_without_quota_left_is_throttled() {
    let quota = quota();
    let mut others = [0, 1].map(|cpu| {
        Child::new(move || {
            pin(0, cpu);
            spin(2500);
        })
    });
    let runs_on = &shared_numbers()[0];
    let mut watched = Watched::new(|| {
        let end = monotonic() + Duration::from_millis(2000);
        while monotonic() < end {
            // SAFETY: the call has no arguments.
            runs_on.store(unsafe { libc::sched_getcpu() } as u32, Ordering::Relaxed);
        }
    });
    let pid = watched.child.pid;
    for child in others.iter().map(|child| child.pid).chain([pid]) {
        quota.add(child);
    }
    // How much of the wait is the run queue depends on what else runs, so that it is repeated.
    repeat(|| {
        let before = watched.read();
        others.iter_mut().for_each(Child::go);
        watched.child.go();
        let (end, mut cpu) = (monotonic() + Duration::from_millis(2000), 0);
        while monotonic() < end {
            if runs_on.load(Ordering::Relaxed) == cpu {
                cpu = 1 - cpu;
                pin(pid, cpu as usize);
            }
            thread::sleep(Duration::from_millis(1));
        }
        watched.child.finish();
        let seen = watched.since(&before);
        others.iter_mut().for_each(Child::finish);
        if seen.of("other", "throttled").0 > 800_000_000 {
            return Ok(());
        }
        Err(seen)
    });
    drop((others, watched));
}

#[test]
fn wait_for_a_busy_cpu_is_the_run_queue() {
    let work = || {
        alone_on_one_cpu();
        spin(200);
    };
    let mut busy = Child::new(work);
    let mut watched = Watched::new(work);
    repeat(|| {
        let before = watched.read();
        busy.go();
        watched.child.round();
        busy.finish();
        let seen = watched.since(&before);
        assert_eq!(seen.of("other", "throttled"), (0, 0), "{seen:?}");
        if seen.of("other", "run queue").0 > 50_000_000 {
            return Ok(());
        }
        Err(seen)
    });
}
