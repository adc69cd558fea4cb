//! Barrier of the threads of a run: all threads wait here before and after a phase, so that the
//! main thread reads the server and the clock at rest. A thread that fails leaves the barrier.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use super::ThreadFailure;
use crate::lock::lock;

/// What a released thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Run events until the phase ends.
    Run,
    /// Close the connection and end.
    #[default]
    Quit,
}

/// Why the main thread woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// All remaining threads wait.
    AllWaiting,
    /// The deadline has passed.
    Deadline,
    /// [`PhaseBarrier::notify`] was called.
    Notified,
}

#[derive(Debug, Default)]
struct State {
    threads: usize,
    waiting: usize,
    round: u64,
    order: Order,
    notified: bool,
    failure: Option<ThreadFailure>,
}

/// The barrier.
#[derive(Debug, Default)]
pub struct PhaseBarrier {
    state: Mutex<State>,
    /// Wakes the main thread.
    changed: Condvar,
    /// Wakes all other threads: an arrival must not wake the waiting ones.
    released: Condvar,
}

impl PhaseBarrier {
    /// For this number of threads.
    pub fn new(threads: usize) -> Self {
        Self {
            state: Mutex::new(State {
                threads,
                ..State::default()
            }),
            ..Self::default()
        }
    }

    /// Called by a thread: waits for the next order.
    pub fn wait(&self) -> Order {
        let mut state = lock(&self.state);
        state.waiting += 1;
        let round = state.round;
        self.changed.notify_all();
        while state.round == round {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.order
    }

    /// Removes a thread. The first failure is kept.
    pub fn leave(&self, failure: Option<ThreadFailure>) {
        let mut state = lock(&self.state);
        state.threads -= 1;
        state.notified |= failure.is_some();
        if state.failure.is_none() {
            state.failure = failure;
        }
        self.changed.notify_all();
    }

    /// Wakes the main thread.
    pub fn notify(&self) {
        lock(&self.state).notified = true;
        self.changed.notify_all();
    }

    /// Releases all waiting threads.
    pub fn release(&self, order: Order) {
        let mut state = lock(&self.state);
        state.round += 1;
        state.waiting = 0;
        state.order = order;
        self.released.notify_all();
    }

    /// Blocks until all threads wait, the deadline passes, or the main thread is notified.
    pub fn wait_for_threads(&self, deadline: Instant) -> Wake {
        let mut state = lock(&self.state);
        loop {
            if state.waiting == state.threads {
                return Wake::AllWaiting;
            }
            if state.notified {
                state.notified = false;
                return Wake::Notified;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Wake::Deadline;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Number of waiting threads.
    pub fn waiting(&self) -> usize {
        lock(&self.state).waiting
    }

    /// Number of threads that neither wait nor left.
    pub fn running(&self) -> usize {
        let state = lock(&self.state);
        state.threads - state.waiting
    }

    /// The first failure of a thread.
    pub fn failure(&self) -> Option<ThreadFailure> {
        lock(&self.state).failure.clone()
    }
}

/// A thread's membership in the barrier: it leaves when this is dropped, also after a panic.
pub struct Participant<'a> {
    barrier: &'a PhaseBarrier,
    failure: Option<ThreadFailure>,
}

impl<'a> Participant<'a> {
    /// Adds one of the threads for which the barrier was made.
    pub fn new(barrier: &'a PhaseBarrier) -> Self {
        Self {
            barrier,
            failure: None,
        }
    }

    /// Leaves with an error.
    pub fn fail(mut self, failure: ThreadFailure) {
        self.failure = Some(failure);
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        self.barrier.leave(self.failure.take());
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_panicked_thread_leaves_the_barrier() {
        let barrier = PhaseBarrier::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let _participant = Participant::new(&barrier);
                barrier.wait()
            });
            let panicking = scope.spawn(|| {
                let _participant = Participant::new(&barrier);
                panic!("on purpose");
            });
            assert!(panicking.join().is_err());
            let deadline = Instant::now() + Duration::from_secs(600);
            assert_eq!(barrier.wait_for_threads(deadline), Wake::AllWaiting);
            barrier.release(Order::Quit);
            assert_eq!(waiting.join().unwrap(), Order::Quit);
        });
    }

    #[test]
    fn a_deadline_and_a_notification_wake_the_main_thread() {
        let barrier = PhaseBarrier::new(1);
        assert_eq!(barrier.wait_for_threads(Instant::now()), Wake::Deadline);
        barrier.notify();
        assert_eq!(barrier.wait_for_threads(Instant::now()), Wake::Notified);
    }
}
