//! Who waits for a change that another thread or task makes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use super::hub;
use super::hub::Outside;

/// Tasks to be woken. A task that was woken otherwise stays until the next notice, which then wakes it for no reason.
#[derive(Debug, Default)]
pub struct Waiters {
    /// By the address of the thread's part and the task, so that a task is in it once.
    list: Mutex<HashMap<(usize, usize), Arc<Outside>>>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<(usize, usize), Arc<Outside>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the running task on the list; after this it looks once more whether it has to wait, then calls [`Waiters::wait`].
    pub fn join(&self) {
        if let Some(hub) = hub::current() {
            let key = (Arc::as_ptr(&hub.outside) as usize, hub.running());
            self.lock().entry(key).or_insert_with(|| Arc::clone(&hub.outside));
        }
    }

    /// Suspends the running task until it is notified, at the latest until this moment of CLOCK_MONOTONIC.
    pub fn wait(&self, moment_ns: Option<i64>) {
        match (hub::current(), moment_ns) {
            (Some(hub), Some(moment)) => hub.suspend_until(moment),
            (Some(hub), None) => hub.suspend(),
            (None, _) => {}
        }
    }

    /// Wakes all tasks on the list.
    pub fn notify_all(&self) {
        for ((_, task), outside) in self.lock().drain() {
            outside.wake(task);
        }
    }
}
