//! The switches of a run that every thread looks at between two events: go on, finish, abort, and how many events are left.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::Context;
use anyhow::Result;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use super::gate::Gate;

const GO: u8 = 0;
const FINISH: u8 = 1;
const ABORT: u8 = 2;

/// The switches. Written a few times in a run, read after each event.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Control {
    state: AtomicU8,
    signal: AtomicI32,
    /// Apart from the switches, because with `--events` every event writes it.
    budget: Budget,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Budget {
    limited: AtomicU8,
    left: AtomicI64,
}

impl Control {
    /// A phase begins with so many events to run, or any number. An abort stays.
    pub fn start(&self, events: Option<u64>) {
        let left = events.map_or(0, |events| i64::try_from(events).unwrap_or(i64::MAX));
        self.budget.left.store(left, Relaxed);
        self.budget.limited.store(u8::from(events.is_some()), Relaxed);
        self.state
            .fetch_update(Relaxed, Relaxed, |state| (state == FINISH).then_some(GO))
            .ok();
    }

    /// The time is over: threads finish their event; a load that drains goes on until it is empty.
    pub fn finish(&self) {
        self.state.fetch_max(FINISH, Relaxed);
    }

    /// Threads finish their event and nothing more.
    pub fn abort(&self) {
        self.state.fetch_max(ABORT, Relaxed);
    }

    /// True after [`Control::abort`].
    pub fn aborted(&self) -> bool {
        self.state.load(Relaxed) == ABORT
    }

    /// True if a thread may begin another event.
    pub fn may_go_on(&self, drains: bool) -> bool {
        match self.state.load(Relaxed) {
            GO => {}
            FINISH if drains => {}
            _ => return false,
        }
        self.budget.limited.load(Relaxed) == 0 || self.budget.left.fetch_sub(1, Relaxed) > 0
    }

    /// The signal that ended the run.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Relaxed)).filter(|signal| *signal != 0)
    }
}

/// SIGINT and SIGTERM abort the run cleanly; a second one ends the process at once.
///
/// # Errors
/// When the handlers cannot be set.
pub fn on_signals(control: &Arc<Control>, gate: &Arc<Gate>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("set signal handlers")?;
    let (control, gate) = (Arc::clone(control), Arc::clone(gate));
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                if control.signal.swap(signal, Relaxed) != 0 {
                    std::process::exit(128 + signal);
                }
                control.abort();
                gate.nudge();
            }
        })
        .context("start the signal thread")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_allows_exactly_its_events() {
        let control = Control::default();
        control.start(Some(3));
        assert_eq!((0..10).filter(|_| control.may_go_on(false)).count(), 3);
    }

    #[test]
    fn finish_lets_a_load_drain_and_abort_does_not() {
        let control = Control::default();
        control.start(None);
        control.finish();
        assert!(!control.may_go_on(false) && control.may_go_on(true));
        control.abort();
        control.start(None);
        assert!(!control.may_go_on(true));
    }
}
