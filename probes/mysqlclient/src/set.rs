//! Sets options of a handle (C API reference, mysql_options).

use std::ffi::CString;
use std::ptr;

use mysqlclient_sys as sys;

use crate::private_file::Refusal;

/// Sets an option that takes a string; the library copies it.
///
/// # Errors
/// When the text contains a zero byte.
///
/// # Safety
/// `mysql` must come from mysql_init and must not be connected yet.
pub unsafe fn set_text(mysql: *mut sys::MYSQL, option: sys::mysql_option, text: &str) -> Result<(), Refusal> {
    let zero = |_| Refusal("an option of the connection contains a zero byte".to_owned());
    let text = CString::new(text).map_err(zero)?;
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
