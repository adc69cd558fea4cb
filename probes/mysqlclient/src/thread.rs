//! Initializes the library for the process and for each thread that calls it; keeps its first
//! connections apart.

use std::cell::RefCell;
use std::ptr;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;

use mysqlclient_sys as sys;

/// Calls mysql_library_init once per process and mysql_thread_init once per thread; calls
/// mysql_thread_end when the thread exits.
pub fn attach_thread() {
    #[derive(Debug)]
    struct Attached;
    impl Drop for Attached {
        fn drop(&mut self) {
            // SAFETY: pairs with the mysql_thread_init of this thread.
            unsafe { sys::mysql_thread_end() };
        }
    }
    static LIBRARY: OnceLock<()> = OnceLock::new();
    thread_local!(static ATTACHED: RefCell<Option<Attached>> = const { RefCell::new(None) });
    LIBRARY.get_or_init(|| {
        // SAFETY: null arguments are the documented form (mysql_library_init is a macro for this);
        // `OnceLock` excludes concurrent calls.
        unsafe { sys::mysql_server_init(0, ptr::null_mut(), ptr::null_mut()) };
    });
    ATTACHED.with_borrow_mut(|attached| {
        attached.get_or_insert_with(|| {
            // SAFETY: the library is initialised.
            unsafe { sys::mysql_thread_init() };
            Attached
        });
    });
}

/// Runs `connect`, which calls mysql_real_connect; the first run in the process excludes the others.
///
/// Each connection with an option file writes the same keys to static maps without a lock
/// (mysys/my_default.cc, init_variable_default_paths): threads that inserted them at once crashed.
/// Once the keys exist, a connection leaves the maps' structure as it is. The recorder opens one
/// connection at a time and does not need this.
pub fn connect_first_alone<T>(connect: impl FnOnce() -> T) -> T {
    static IS_READ: Mutex<bool> = Mutex::new(false);
    let mut is_read = IS_READ.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_read {
        drop(is_read);
        return connect();
    }
    let connected = connect();
    *is_read = true;
    connected
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_the_first_connection_excludes_others() {
        let (started, running, together) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(3));
        let connect = || {
            let alone = running.fetch_add(1, SeqCst) == 0;
            if started.fetch_add(1, SeqCst) == 0 {
                thread::sleep(Duration::from_millis(100));
                assert!(alone);
                assert_eq!(running.load(SeqCst), 1);
            } else {
                // passes only if these three run at the same time
                together.wait();
            }
            running.fetch_sub(1, SeqCst);
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| connect_first_alone(connect));
            }
        });
    }
}
