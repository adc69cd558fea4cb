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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use super::*;

    #[test]
    fn at_most_as_many_threads_as_permits_enter() {
        let semaphore = Semaphore::new(3);
        let (inside, max) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _permit = semaphore.acquire();
                        max.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert!(max.into_inner() <= 3);
    }
}
