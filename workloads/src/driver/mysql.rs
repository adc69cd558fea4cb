//! A safe connection on libmysqlclient that runs statements by the protocol it was told.
//! Result sets are read whole and not looked at, as sysbench does; rows are only kept by `fetch` and `rows`.

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_uint;
use std::time::Duration;

use mysqlclient_sys as sys;

use super::Connection;
use super::DbError;
use super::Driver;
use super::Effect;
use super::Failure;
use super::Ignored;
use super::Reconnects;
use super::connect::Account;
use super::connection::MysqlConnection;
use super::protocol::Mode;
use super::watchdog::Watchdog;

/// CR_UNKNOWN_ERROR, for what this driver says itself.
const CR_UNKNOWN_ERROR: u32 = 2000;

/// Opens connections to one server as one account.
#[derive(Debug, Clone)]
pub struct MysqlDriver {
    /// Where and as whom.
    pub account: Account,
    /// How statements go to the server.
    pub mode: Mode,
    /// When connections are opened again.
    pub reconnects: Reconnects,
    /// Error numbers that only restart the event.
    pub ignored: Ignored,
    /// How long a statement may take; those that work on whole tables (ALTER TABLE and the like) may take any time.
    pub read_timeout: Option<Duration>,
    /// Ends calls that exceed a limit.
    pub watchdog: Watchdog,
}

impl Driver for MysqlDriver {
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        self.connect_nth(0)
    }

    fn connect_nth(&self, number: usize) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(MysqlConnection::open(self, number, true)?))
    }

    fn describe(&self) -> String {
        self.account.describe()
    }

    fn cut_waiting(&self) {
        self.watchdog.cut_waiting();
    }
}

impl MysqlDriver {
    /// A connection without a database, for `prepare` to create it.
    pub fn connect_without_database(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(MysqlConnection::open(self, 0, false)?))
    }

    /// Sorts a failure by `ignored`.
    pub fn classify(&self, failure: Failure) -> DbError {
        if self.ignored.contains(failure.errno) {
            DbError::Ignorable(failure)
        } else {
            DbError::Fatal(failure)
        }
    }
}

/// Sysbench's rule for a statement without a result set.
pub fn effect_of(affected: u64) -> Effect {
    match affected {
        // (my_ulonglong)-1 is "an error or a result set"; errors have been dealt with.
        0 | u64::MAX => Effect::Other,
        rows => Effect::Write(rows),
    }
}

/// A failure that this driver reports itself.
pub fn local_failure(message: &str) -> Failure {
    Failure {
        errno: CR_UNKNOWN_ERROR,
        sqlstate: "HY000".to_owned(),
        message: message.to_owned(),
    }
}

/// Copies an error of the library.
///
/// # Safety
/// Both strings must be null or end with a zero byte.
pub unsafe fn failure_from(errno: c_uint, sqlstate: *const c_char, message: *const c_char) -> Failure {
    let copy = |text: *const c_char| {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null, and zero-terminated by the contract of this function.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    Failure {
        errno,
        sqlstate: copy(sqlstate),
        message: copy(message),
    }
}

/// Copies the last error of a connection.
///
/// # Safety
/// `mysql` must be a handle from mysql_init.
pub unsafe fn failure_of(mysql: *mut sys::MYSQL) -> Failure {
    // SAFETY: the strings belong to the handle and are copied at once.
    unsafe {
        failure_from(
            sys::mysql_errno(mysql),
            sys::mysql_sqlstate(mysql),
            sys::mysql_error(mysql),
        )
    }
}
