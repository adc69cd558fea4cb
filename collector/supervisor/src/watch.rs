//! Watches the running processes in a separate thread: their placement and memory. A process can block the
//! readers of its files in /proc, such as by a file of fuse(4) that it maps over its arguments; then samples are
//! missing, and leases, signals and requests act.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::memory;
use crate::memory::Schedule;
use crate::placement::Sample;
use crate::state::Process;
use crate::state::ProcessState;
use crate::state::Shared;

const INTERVAL: Duration = Duration::from_secs(1);
/// After the first samples of each process, samples use at most 1/500 of the time: with many threads they are less
/// frequent.
const SHARE: u32 = 500;
/// How long `stop` waits for its reading of the memory: 1 TB of 4 kB pages takes 10 s.
const LAST_READING: Duration = Duration::from_secs(20);

/// Samples until this program exits.
pub fn watch(shared: &Shared) {
    let mut next = Instant::now();
    loop {
        let begin = Instant::now();
        let is_due = begin >= next;
        sample(shared, is_due);
        if is_due {
            next = begin + begin.elapsed() * SHARE;
        }
        for number in running(shared, |process| process.schedule().is_some_and(Schedule::is_due)) {
            read_memory(shared, number);
        }
        thread::sleep(INTERVAL.saturating_sub(begin.elapsed()));
    }
}

/// Samples the placement; unless a sample is due, only of processes that started a few intervals ago, because they
/// may end before the next.
fn sample(shared: &Shared, is_due: bool) {
    let is_sampled = |process: &Process| {
        let placement = process.placement.as_ref();
        placement.is_some_and(|placement| is_due || placement.is_new())
    };
    for number in running(shared, is_sampled) {
        let state = shared.lock();
        let Some(process) = state.get(number) else {
            continue;
        };
        let (pids, set) = (
            process.group.pids(),
            process.placement.as_ref().map(|placement| placement.set),
        );
        drop(state);
        let Some(set) = set else { continue };
        let taken = Sample::take(&pids, &set);
        if let Some(placement) = shared.lock().placement(number) {
            placement.add(&taken);
        }
    }
}

fn running(shared: &Shared, is_wanted: impl Fn(&Process) -> bool) -> Vec<u64> {
    let state = shared.lock();
    let running = state
        .processes
        .iter()
        .filter(|process| process.state == ProcessState::Running);
    running
        .filter(|process| is_wanted(process))
        .map(|process| process.number)
        .collect()
}

/// Reads the memory of a process's group, without the lock of the state, and stores the reading if it is the
/// largest. A program frees its memory before it exits, so the last reading may be of nothing.
fn read_memory(shared: &Shared, number: u64) {
    let pids = match shared.lock().get(number) {
        Some(process) if process.schedule().is_some() => process.group.pids(),
        _ => return,
    };
    let begin = Instant::now();
    let nodes = memory::read(&pids);
    let took = begin.elapsed();
    if let Some(placement) = shared.lock().placement(number) {
        placement.store(nodes);
        if let Some(schedule) = &mut placement.schedule {
            schedule.after(took);
        }
    }
}

/// Reads the memory of a process that is about to be stopped: a server has all its memory then.
pub fn read_last(shared: &Arc<Shared>, number: u64) {
    let (done, ended) = channel::<()>();
    let shared = Arc::clone(shared);
    let reader = thread::Builder::new().name("memory".into()).spawn(move || {
        read_memory(&shared, number);
        drop(done);
    });
    if reader.is_ok() {
        ended.recv_timeout(LAST_READING).ok();
    }
}
