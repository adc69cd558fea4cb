//! Where the threads of a run meet: all wait here before a phase and after it, so that the main thread can look at the
//! server and at the clock while nothing moves. A thread that fails leaves, and nobody waits for it.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Instant;

use super::ThreadFailure;

/// What a waiting thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Run events until told to stop.
    Run,
    /// Close the connection and end.
    Quit,
}

/// Why the main thread woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Every thread that is left waits.
    AllWaiting,
    /// The moment has come.
    Deadline,
    /// Somebody called [`Gate::nudge`].
    Nudged,
}

#[derive(Debug)]
struct State {
    threads: usize,
    waiting: usize,
    round: u64,
    order: Order,
    nudged: bool,
    failure: Option<ThreadFailure>,
}

/// The meeting point.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    /// For the main thread.
    changed: Condvar,
    /// For all others: an arrival wakes none of those who wait already.
    released: Condvar,
}

impl Gate {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            state: Mutex::new(State {
                threads,
                waiting: 0,
                round: 0,
                order: Order::Quit,
                nudged: false,
                failure: None,
            }),
            changed: Condvar::new(),
            released: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is plain numbers, whole after each change: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread arrives and waits for the next order.
    pub fn wait(&self) -> Order {
        let mut state = self.lock();
        state.waiting += 1;
        let round = state.round;
        self.changed.notify_all();
        while state.round == round {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.order
    }

    /// A thread goes for good. The first failure is kept.
    pub fn leave(&self, failure: Option<ThreadFailure>) {
        let mut state = self.lock();
        state.threads -= 1;
        state.nudged |= failure.is_some();
        if state.failure.is_none() {
            state.failure = failure;
        }
        self.changed.notify_all();
    }

    /// Wakes the main thread.
    pub fn nudge(&self) {
        self.lock().nudged = true;
        self.changed.notify_all();
    }

    /// Lets all waiting threads go on.
    pub fn release(&self, order: Order) {
        let mut state = self.lock();
        state.round += 1;
        state.waiting = 0;
        state.order = order;
        self.released.notify_all();
    }

    /// Blocks until all threads wait, the deadline has come, or somebody nudged.
    pub fn watch(&self, deadline: Option<Instant>) -> Wake {
        let mut state = self.lock();
        loop {
            if state.waiting == state.threads {
                return Wake::AllWaiting;
            }
            if state.nudged {
                state.nudged = false;
                return Wake::Nudged;
            }
            state = match deadline {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Wake::Deadline;
                    }
                    let woken = self.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Threads that wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Threads that do not wait and have not left.
    pub fn running(&self) -> usize {
        let state = self.lock();
        state.threads - state.waiting
    }

    /// The first failure of a thread, if there was one.
    pub fn failure(&self) -> Option<ThreadFailure> {
        self.lock().failure.clone()
    }
}

/// A thread's place at the gate: it leaves when dropped, also when the thread panics.
pub struct Seat<'a> {
    gate: &'a Gate,
    failure: Option<ThreadFailure>,
}

impl<'a> Seat<'a> {
    /// Takes one of the places that the gate was made for.
    pub fn new(gate: &'a Gate) -> Self {
        Self { gate, failure: None }
    }

    /// Leaves because of an error.
    pub fn fail(mut self, failure: ThreadFailure) {
        self.failure = Some(failure);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.gate.leave(self.failure.take());
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let gate = Gate::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let _seat = Seat::new(&gate);
                gate.wait()
            });
            let panicking = scope.spawn(|| {
                let _seat = Seat::new(&gate);
                panic!("on purpose");
            });
            assert!(panicking.join().is_err());
            assert_eq!(gate.watch(None), Wake::AllWaiting);
            gate.release(Order::Quit);
            assert_eq!(waiting.join().unwrap(), Order::Quit);
        });
    }

    #[test]
    fn a_past_deadline_and_a_nudge_wake_the_main_thread() {
        let gate = Gate::new(1);
        assert_eq!(gate.watch(Some(Instant::now())), Wake::Deadline);
        gate.nudge();
        assert_eq!(gate.watch(None), Wake::Nudged);
    }
}
