//! Stops process trees: sends the stop signal to the process and SIGKILL to the rest of its tree.

use std::collections::HashSet;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;

use crate::log;
use crate::procfs::ProcessId;
use crate::procfs::descendants;
use crate::state::Shared;

/// How often the tree is read while a process stops, to include the children that it forks
/// meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a killed process may take to exit, for example from an uninterruptible write.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Stops a process and its tree; returns when it is reaped, or ten seconds after SIGKILL. Must not
/// run on the main thread, which reaps.
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
        POLL_INTERVAL.min(deadline.saturating_duration_since(Instant::now())),
    ) {
        tree.extend(descendants(id.pid));
        if Instant::now() >= deadline {
            log::line(&format!(
                "killed {name} (pid {}), which did not stop within {timeout:?}",
                id.pid
            ));
            id.signal(Signal::KILL);
            wait_for_exit(shared, id, KILL_TIMEOUT);
            break;
        }
    }
    for survivor in tree {
        survivor.signal(Signal::KILL);
    }
}

/// Waits at most `time`; true if the process is still running.
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

/// Stops all processes in reverse order of their start.
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
