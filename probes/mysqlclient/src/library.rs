//! Initializes the library for the process and for each thread that calls it, and sets options of a
//! handle (C API reference, mysql_options).

use std::cell::RefCell;
use std::ffi::CString;
use std::ptr;
use std::sync::OnceLock;

use mysqlclient_sys as sys;

use crate::private_file::Refusal;

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

/// A text for the library.
///
/// # Errors
/// When it contains a zero byte.
pub fn c_text(text: &str) -> Result<CString, Refusal> {
    let zero = |_| Refusal("an option of the connection contains a zero byte".to_owned());
    CString::new(text).map_err(zero)
}

/// Sets an option that takes a string; the library copies it.
///
/// # Errors
/// When the text contains a zero byte.
///
/// # Safety
/// `mysql` must come from mysql_init and must not be connected yet.
pub unsafe fn set_text(mysql: *mut sys::MYSQL, option: sys::mysql_option, text: &str) -> Result<(), Refusal> {
    let text = c_text(text)?;
    // SAFETY: the caller's promise.
    unsafe { sys::mysql_options(mysql, option, text.as_ptr().cast()) };
    Ok(())
}

/// Sets an option that takes a pointer to a value; the library copies it.
///
/// # Safety
/// As [`set_text`], and the option must take a pointer to this type.
pub unsafe fn set_value<T>(mysql: *mut sys::MYSQL, option: sys::mysql_option, value: T) {
    // SAFETY: the caller's promise.
    unsafe { sys::mysql_options(mysql, option, ptr::from_ref(&value).cast()) };
}
