//! Keeps the inserts and the deletes of one client near each other: neither is more than eight statements ahead.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// Statements that one side may be ahead of the other.
pub const AHEAD: u64 = 8;

/// One of the two.
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

/// The statements of both sides since the phase began.
#[derive(Debug, Default)]
pub struct Pair {
    state: Mutex<State>,
    changed: Condvar,
}

impl Pair {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole after each change: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A phase begins.
    pub fn begin(&self) {
        *self.lock() = State::default();
    }

    /// The phase is over: nobody waits any longer.
    pub fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Blocks until this side may run its next statement; false when the phase is over.
    pub fn turn(&self, side: Side) -> bool {
        let mut state = self.lock();
        let (own, other) = (side as usize, 1 - side as usize);
        while state.done[own] >= state.done[other] + AHEAD && !state.over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.over
    }

    /// A statement of this side is committed.
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
                        assert!(pair.turn(side));
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
    fn the_end_of_a_phase_wakes_the_side_that_waits() {
        let pair = Pair::default();
        thread::scope(|scope| {
            let ahead = scope.spawn(|| {
                let mut statements = 0;
                while pair.turn(Side::Insert) {
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
        assert!(pair.turn(Side::Insert));
    }
}
