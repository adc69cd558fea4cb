//! Initializes the library for the process and for each thread that calls it.

use std::cell::RefCell;
use std::ptr;
use std::sync::OnceLock;

use mysqlclient_sys as sys;

use crate::guard;

/// Calls mysql_library_init once per process and mysql_thread_init once per thread; calls
/// mysql_thread_end when the thread exits. From the first call on, passwords are guarded
/// (`guard.rs`).
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
        guard::install();
    });
    ATTACHED.with_borrow_mut(|attached| {
        attached.get_or_insert_with(|| {
            // SAFETY: the library is initialised.
            unsafe { sys::mysql_thread_init() };
            Attached
        });
    });
}
