//! Synchronizes the inserts and the deletes of one client: neither side is more than eight
//! statements ahead.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// Statements that one side may be ahead of the other.
pub const AHEAD: u64 = 8;

/// One side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The connection that inserts.
    Insert,
    /// The connection that deletes.
    Delete,
}

#[derive(Debug, Default)]
struct State {
    done: [u64; 2],
    over: bool,
}

/// The number of statements of both sides since the phase started.
#[derive(Debug, Default)]
pub struct Pair {
    state: Mutex<State>,
    changed: Condvar,
}

impl Pair {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state consistent: a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a phase.
    pub fn begin(&self) {
        *self.lock() = State::default();
    }

    /// Ends the phase: both sides stop waiting.
    pub fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Blocks until this side may run its next statement; false after the end of the phase.
    pub fn wait_turn(&self, side: Side) -> bool {
        let mut state = self.lock();
        let (this, other) = (side as usize, 1 - side as usize);
        while state.done[this] >= state.done[other] + AHEAD && !state.over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.over
    }

    /// Counts a committed statement of this side.
    pub fn done(&self, side: Side) {
        self.lock().done[side as usize] += 1;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn neither_side_is_more_than_eight_statements_ahead() {
        let pair = Pair::default();
        thread::scope(|scope| {
            for side in [Side::Insert, Side::Delete] {
                let pair = &pair;
                scope.spawn(move || {
                    for _ in 0..5000 {
                        assert!(pair.wait_turn(side));
                        let done = pair.lock().done;
                        assert!(done[side as usize] < done[1 - side as usize] + AHEAD);
                        pair.done(side);
                    }
                });
            }
        });
        assert_eq!(pair.lock().done, [5000, 5000]);
    }

    #[test]
    fn the_end_of_a_phase_wakes_a_waiting_side() {
        let pair = Pair::default();
        thread::scope(|scope| {
            let ahead = scope.spawn(|| {
                let mut statements = 0;
                while pair.wait_turn(Side::Insert) {
                    pair.done(Side::Insert);
                    statements += 1;
                }
                statements
            });
            while pair.lock().done[0] < AHEAD {
                thread::yield_now();
            }
            pair.end();
            assert_eq!(ahead.join().unwrap(), AHEAD);
        });
        pair.begin();
        assert!(pair.wait_turn(Side::Insert));
    }
}
