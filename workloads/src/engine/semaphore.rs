//! Counting semaphore.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::lock::lock;

/// Limits the number of threads in a section.
#[derive(Debug)]
pub struct Semaphore {
    permits: Mutex<usize>,
    changed: Condvar,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub struct Permit<'a>(&'a Semaphore);

impl Semaphore {
    /// With this number of permits.
    pub fn new(permits: usize) -> Self {
        Self {
            permits: Mutex::new(permits),
            changed: Condvar::new(),
        }
    }

    /// Waits for a permit.
    pub fn acquire(&self) -> Permit<'_> {
        let none = |permits: &mut usize| *permits == 0;
        let mut permits = self
            .changed
            .wait_while(lock(&self.permits), none)
            .unwrap_or_else(PoisonError::into_inner);
        *permits -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.0.permits) += 1;
        self.0.changed.notify_one();
    }
}
