//! A condition variable on which threads block and tasks are suspended.

use std::sync;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use super::Waiters;
use super::inside;

/// As std's, except that waiting needs the mutex. Wakes for no reason too: callers look again.
#[derive(Debug, Default)]
pub struct Condvar {
    threads: sync::Condvar,
    tasks: Waiters,
}

impl Condvar {
    /// Nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets go of the mutex, waits to be notified, and takes it again.
    pub fn wait<'a, T>(&self, mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        if !inside() {
            return self.threads.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        // Before the mutex is let go: what changes the state after that finds the task on the list.
        self.tasks.join();
        drop(guard);
        self.tasks.wait(None);
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody.
    pub fn notify_all(&self) {
        self.threads.notify_all();
        self.tasks.notify_all();
    }
}
