//! Stops processes: sends SIGTERM, and SIGKILL to all that is left of the group after the timeout.

use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;

use crate::groups::KILL_TIMEOUT;
use crate::log;
use crate::state::Shared;

/// Stops a process; returns when all processes of its group have exited, or cannot be killed. Must not run on the
/// main thread, which reaps.
pub fn stop(shared: &Shared, number: u64) {
    let state = shared.lock();
    let Some(process) = state.get(number) else { return };
    let (name, pid, timeout) = (process.name.clone(), process.pid, process.stop_timeout);
    if state.is_running(number) {
        log::line(&format!("stopping {name} (pid {pid})"));
        // A frozen process would not see the signal.
        if let Err(error) = process.group.freeze(false) {
            log::line(&format!("{name}: {error:#}"));
        }
        process.signal(Signal::TERM);
    }
    drop(state);
    if wait_for_exit(shared, number, timeout) {
        log::line(&format!(
            "killed {name} (pid {pid}), which did not stop within {timeout:?}"
        ));
        if let Some(process) = shared.lock().get(number) {
            process.group.kill();
        }
        wait_for_exit(shared, number, 2 * KILL_TIMEOUT);
    }
}

/// Waits at most `time`; true if the process is still running.
fn wait_for_exit(shared: &Shared, number: u64, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    let mut state = shared.lock();
    while state.is_running(number) {
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
    let numbers: Vec<u64> = shared
        .lock()
        .processes
        .iter()
        .rev()
        .map(|process| process.number)
        .collect();
    for number in numbers {
        stop(shared, number);
    }
}
