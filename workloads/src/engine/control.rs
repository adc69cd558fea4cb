//! Switches that every thread reads between two events: continue, finish or abort, and the number
//! of events left. A thread that sleeps waits on the switches, so that the end of the phase wakes
//! it.

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
    /// On other cache lines than the switches, because every event writes it with `--events`.
    budget: Budget,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Budget {
    limited: AtomicU8,
    left: AtomicI64,
}

impl Control {
    /// Starts a phase with this number of events, or without a limit. An abort stays.
    pub fn start(&self, events: Option<u64>) {
        let left = events.map_or(0, |events| i64::try_from(events).unwrap_or(i64::MAX));
        self.budget.left.store(left, Relaxed);
        self.budget.limited.store(u8::from(events.is_some()), Relaxed);
        self.state
            .fetch_update(Relaxed, Relaxed, |state| (state == FINISH).then_some(GO))
            .ok();
    }

    /// Ends the phase: threads finish their event; a load that drains continues until it is empty.
    pub fn finish(&self) {
        self.raise(FINISH);
    }

    /// Aborts the run: threads finish their event.
    pub fn abort(&self) {
        self.raise(ABORT);
    }

    fn raise(&self, state: u32) {
        self.state.fetch_max(state, Relaxed);
        // It is not an error if no thread sleeps on the address; the call has no other errors here.
        futex::wake(&self.state, futex::Flags::PRIVATE, i32::MAX as u32).ok();
    }

    /// True after [`Control::abort`].
    pub fn aborted(&self) -> bool {
        self.state.load(Relaxed) == ABORT
    }

    /// True if a thread may retry its event.
    pub fn may_retry(&self, drains: bool) -> bool {
        match self.state.load(Relaxed) {
            GO => true,
            FINISH => drains,
            _ => false,
        }
    }

    /// True if a thread may start another event, which then counts against the limit.
    pub fn may_start_event(&self, drains: bool) -> bool {
        if !self.may_retry(drains) {
            return false;
        }
        self.budget.limited.load(Relaxed) == 0 || self.budget.left.fetch_sub(1, Relaxed) > 0
    }

    /// Sleeps until this time of CLOCK_MONOTONIC; false at once when the phase is over or aborted.
    pub fn sleep_until(&self, moment_ns: i64) -> bool {
        while self.state.load(Relaxed) == GO {
            if monotonic_ns() >= moment_ns {
                return true;
            }
            let timeout = Timespec {
                tv_sec: moment_ns / 1_000_000_000,
                tv_nsec: moment_ns % 1_000_000_000,
            };
            // Ends by time, by a change of the state or spuriously: the loop checks. Unlike
            // futex::wait, it takes an absolute time.
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
    fn exactly_the_limited_number_of_events_starts() {
        let control = Control::default();
        control.start(Some(3));
        assert_eq!((0..10).filter(|_| control.may_start_event(false)).count(), 3);
    }

    #[test]
    fn finish_lets_a_load_drain_and_abort_does_not() {
        let control = Control::default();
        control.start(None);
        control.finish();
        assert!(!control.may_start_event(false) && control.may_start_event(true));
        control.abort();
        control.start(None);
        assert!(!control.may_start_event(true));
    }

    #[test]
    fn a_sleeper_wakes_at_its_time_and_at_the_end_of_the_phase() {
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
