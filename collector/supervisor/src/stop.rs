//! Stops processes as whole trees: the stop signal to the process itself, SIGKILL to what is left of its tree.

use std::collections::HashSet;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;

use crate::log;
use crate::procfs::ProcessId;
use crate::procfs::descendants;
use crate::state::Shared;

/// How often the tree is looked at while a process stops: what it forks meanwhile belongs to it as well.
const LOOK: Duration = Duration::from_millis(200);
/// How long a killed process may take to vanish (it may sit in an uninterruptible write).
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// Stops a process and its tree; returns when it has been reaped, or ten seconds after SIGKILL.
/// Runs on any thread but the main one, which reaps.
pub fn stop(shared: &Shared, id: ProcessId) {
    let Some((name, signal, timeout)) = shared
        .lock()
        .get(id)
        .map(|process| (process.name.clone(), process.stop_signal, process.stop_timeout))
    else {
        return;
    };
    let mut tree: HashSet<ProcessId> = descendants(id.pid).into_iter().collect();
    if shared.lock().is_running(id) {
        log::line(&format!("stopping {name} (pid {})", id.pid));
        id.signal(signal);
    }
    let deadline = Instant::now() + timeout;
    while wait_for_exit(
        shared,
        id,
        LOOK.min(deadline.saturating_duration_since(Instant::now())),
    ) {
        tree.extend(descendants(id.pid));
        if Instant::now() >= deadline {
            log::line(&format!(
                "{name} (pid {}) did not stop in {timeout:?}: killed",
                id.pid
            ));
            id.signal(Signal::KILL);
            wait_for_exit(shared, id, KILL_PATIENCE);
            break;
        }
    }
    for survivor in tree {
        survivor.signal(Signal::KILL);
    }
}

/// Waits at most `time`; whether the process still runs.
fn wait_for_exit(shared: &Shared, id: ProcessId, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    let mut state = shared.lock();
    while state.is_running(id) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        state = shared.wait_change(state, left);
    }
    false
}

/// Stops everything in reverse start order.
pub fn stop_all(shared: &Shared) {
    let ids: Vec<ProcessId> = shared
        .lock()
        .processes
        .iter()
        .rev()
        .map(|process| process.id)
        .collect();
    for id in ids {
        if shared.lock().is_running(id) {
            stop(shared, id);
        }
    }
}
