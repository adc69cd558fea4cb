//! Switches that every thread reads between two events: continue, pause, finish or abort, and the
//! number of events left. A thread that sleeps waits on the switches, so that a pause or the end of
//! the phase wakes it.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::SeqCst;

use loadprint_recording::clock::monotonic_ns;
use rustix::thread::futex;
use rustix::time::Timespec;

const GO: u32 = 0;
const PAUSE: u32 = 1;
const FINISH: u32 = 2;
const ABORT: u32 = 3;

/// The switches. Written a few times in a run, read after each event.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Control {
    state: AtomicU32,
    /// Threads that wait for the end of a pause.
    parked: AtomicUsize,
    /// Length of the pauses of this phase.
    rested_ns: AtomicI64,
    /// What signals ask for; the main thread carries it out.
    pause_asked: AtomicBool,
    /// A pause was asked for and is not carried out yet, even if it is to end by now.
    pause_due: AtomicBool,
    boundary_asked: AtomicBool,
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
        self.rested_ns.store(0, Relaxed);
        self.state
            .fetch_update(Relaxed, Relaxed, |state| (state == FINISH).then_some(GO))
            .ok();
    }

    /// Asks for a pause.
    pub fn ask_pause(&self) {
        self.pause_asked.store(true, SeqCst);
        self.pause_due.store(true, SeqCst);
    }

    /// Asks for the end of a pause, else for an end of the current interval.
    pub fn ask_resume(&self) {
        if !self.pause_asked.swap(false, SeqCst) {
            self.boundary_asked.store(true, SeqCst);
        }
    }

    /// True from [`Control::ask_pause`] to [`Control::ask_resume`].
    pub fn pause_asked(&self) -> bool {
        self.pause_asked.load(SeqCst)
    }

    /// True once after a pause was asked for: each is carried out and reported, even if its end came
    /// first, because the asker waits for both.
    pub fn take_pause(&self) -> bool {
        self.pause_due.swap(false, SeqCst)
    }

    /// True once after each time that an end of the interval was asked for.
    pub fn take_boundary(&self) -> bool {
        self.boundary_asked.swap(false, SeqCst)
    }

    /// Lets threads finish their event and then wait.
    pub fn pause(&self) {
        self.change(GO, PAUSE);
    }

    /// Ends a pause in which all threads rested for this time.
    pub fn resume(&self, rested_ns: i64) {
        self.rested_ns.fetch_add(rested_ns, SeqCst);
        self.change(PAUSE, GO);
    }

    fn change(&self, from: u32, to: u32) {
        self.state.compare_exchange(from, to, SeqCst, SeqCst).ok();
        self.wake_all();
    }

    /// Number of threads that wait for the end of a pause.
    pub fn parked(&self) -> usize {
        self.parked.load(SeqCst)
    }

    /// Length of the pauses of this phase, in nanoseconds.
    pub fn rested_ns(&self) -> i64 {
        self.rested_ns.load(SeqCst)
    }

    /// CLOCK_MONOTONIC without the pauses of this phase.
    pub fn now_ns(&self) -> i64 {
        monotonic_ns() - self.rested_ns()
    }

    fn wait_while_paused(&self) {
        if self.state.load(SeqCst) != PAUSE {
            return;
        }
        self.parked.fetch_add(1, SeqCst);
        while self.state.load(SeqCst) == PAUSE {
            // Ends by a change of the state or spuriously.
            futex::wait(&self.state, futex::Flags::PRIVATE, PAUSE, None).ok();
        }
        self.parked.fetch_sub(1, SeqCst);
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
        self.state.fetch_max(state, SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
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
            GO | PAUSE => true,
            FINISH => drains,
            _ => false,
        }
    }

    /// True if a thread may start another event, which then counts against the limit; waits in a
    /// pause.
    pub fn may_start_event(&self, drains: bool) -> bool {
        self.wait_while_paused();
        if !self.may_retry(drains) {
            return false;
        }
        self.budget.limited.load(Relaxed) == 0 || self.budget.left.fetch_sub(1, Relaxed) > 0
    }

    /// Sleeps until this time of [`Control::now_ns`], and returns it on CLOCK_MONOTONIC; `None` at once
    /// when the phase is over or aborted.
    pub fn sleep_until(&self, moment_ns: i64) -> Option<i64> {
        loop {
            self.wait_while_paused();
            let moment_ns = moment_ns + self.rested_ns();
            match self.state.load(SeqCst) {
                GO if monotonic_ns() >= moment_ns => return Some(moment_ns),
                GO => {}
                PAUSE => continue,
                _ => return None,
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
    fn a_pause_parks_threads_and_moves_what_is_due() {
        let control = Control::default();
        control.pause();
        thread::scope(|scope| {
            let due = scope.spawn(|| control.sleep_until(monotonic_ns()));
            let event = scope.spawn(|| control.may_start_event(false));
            while control.parked() < 2 {
                thread::yield_now();
            }
            assert!(control.may_retry(false), "an event that has begun goes on");
            let asked = monotonic_ns();
            control.resume(1_000_000);
            assert!(due.join().unwrap().unwrap() <= asked + 1_000_000);
            assert!(event.join().unwrap());
        });
        assert_eq!((control.parked(), control.rested_ns()), (0, 1_000_000));
        control.ask_resume();
        assert!(control.take_boundary() && !control.take_boundary());
    }

    #[test]
    fn a_sleeper_wakes_at_its_time_and_at_the_end_of_the_phase() {
        let control = Control::default();
        let moment = monotonic_ns() + 2_000_000;
        assert_eq!(control.sleep_until(moment), Some(moment));
        assert!(monotonic_ns() >= moment);
        let far = monotonic_ns() + 3_600_000_000_000;
        thread::scope(|scope| {
            let sleepers: Vec<_> = (0..3).map(|_| scope.spawn(|| control.sleep_until(far))).collect();
            control.finish();
            assert!(
                sleepers
                    .into_iter()
                    .all(|sleeper| sleeper.join().unwrap().is_none())
            );
        });
        assert!(control.sleep_until(0).is_none(), "the phase is over");
    }
}
