//! Lets so many threads through at a time.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Places that threads take and give back.
#[derive(Debug)]
pub struct Turnstile {
    free: Mutex<usize>,
    changed: Condvar,
}

/// A place; given back when dropped.
#[derive(Debug)]
pub struct Pass<'a>(&'a Turnstile);

impl Turnstile {
    /// For so many at a time.
    pub fn new(places: usize) -> Self {
        Self {
            free: Mutex::new(places),
            changed: Condvar::new(),
        }
    }

    /// Waits for a place.
    pub fn enter(&self) -> Pass<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let none = |free: &mut usize| *free == 0;
        let mut free = self
            .changed
            .wait_while(free, none)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Pass(self)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
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
    fn no_more_than_its_places_are_inside() {
        let turnstile = Turnstile::new(3);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _pass = turnstile.enter();
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
    }
}
