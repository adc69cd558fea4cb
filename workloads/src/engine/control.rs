//! The switches of a run that every thread looks at between two events: go on, finish, abort, and how many events are left.
//! A thread that sleeps until a moment sleeps on them, so that the end of the phase wakes it.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use loadprint_recording::clock::monotonic_ns;
use rustix::thread::futex;
use rustix::time::Timespec;

const GO: u32 = 0;
const FINISH: u32 = 1;
const ABORT: u32 = 2;

/// The switches. Written a few times in a run, read after each event.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Control {
    state: AtomicU32,
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
        self.raise(FINISH);
    }

    /// Threads finish their event and nothing more.
    pub fn abort(&self) {
        self.raise(ABORT);
    }

    fn raise(&self, state: u32) {
        self.state.fetch_max(state, Relaxed);
        // An address that nobody sleeps on is no error; there is no other one here.
        futex::wake(&self.state, futex::Flags::PRIVATE, i32::MAX as u32).ok();
    }

    /// True after [`Control::abort`].
    pub fn aborted(&self) -> bool {
        self.state.load(Relaxed) == ABORT
    }

    /// True if a thread may try its event again.
    pub fn may_retry(&self, drains: bool) -> bool {
        match self.state.load(Relaxed) {
            GO => true,
            FINISH => drains,
            _ => false,
        }
    }

    /// True if a thread may begin another event; the event then counts against the budget.
    pub fn may_go_on(&self, drains: bool) -> bool {
        if !self.may_retry(drains) {
            return false;
        }
        self.budget.limited.load(Relaxed) == 0 || self.budget.left.fetch_sub(1, Relaxed) > 0
    }

    /// Sleeps until this moment of CLOCK_MONOTONIC; false, and at once, when the phase is over or aborted.
    pub fn sleep_until(&self, moment_ns: i64) -> bool {
        while self.state.load(Relaxed) == GO {
            if monotonic_ns() >= moment_ns {
                return true;
            }
            let timeout = Timespec {
                tv_sec: moment_ns / 1_000_000_000,
                tv_nsec: moment_ns % 1_000_000_000,
            };
            // Ends by time, by a change of the state or for no reason: the loop looks which. Unlike futex::wait, this takes a moment.
            futex::wait_bitset(
                &self.state,
                futex::Flags::PRIVATE,
                GO,
                Some(&timeout),
                NonZeroU32::MAX,
            )
            .ok();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

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

    #[test]
    fn a_sleeper_wakes_at_its_moment_and_at_the_end_of_the_phase() {
        let control = Control::default();
        let moment = monotonic_ns() + 2_000_000;
        assert!(control.sleep_until(moment) && monotonic_ns() >= moment);
        let far = monotonic_ns() + 3_600_000_000_000;
        thread::scope(|scope| {
            let sleepers: Vec<_> = (0..3).map(|_| scope.spawn(|| control.sleep_until(far))).collect();
            control.finish();
            assert!(sleepers.into_iter().all(|sleeper| !sleeper.join().unwrap()));
        });
        assert!(!control.sleep_until(0), "the phase is over");
    }
}
