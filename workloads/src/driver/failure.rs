//! Defines the errors of the server and of the client library, and the hint for each.

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_uint;

use loadprint_mysqlclient::NoDestination;
use mysqlclient_sys as sys;

/// CR_UNKNOWN_ERROR of errmsg.h, for errors that this driver detects.
const CR_UNKNOWN_ERROR: u32 = 2000;

/// An error of the server or of the client library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (error {errno}, SQLSTATE {sqlstate})")]
pub struct Failure {
    /// Error number of MySQL; 2000-2999 are those of the client library.
    pub errno: u32,
    /// The five characters of SQLSTATE.
    pub sqlstate: String,
    /// The server's message, on one line.
    pub message: String,
}

/// A failed statement, by what the run does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// The number is in `--mysql-ignore-errors`: the error is counted and the event runs again.
    #[error(transparent)]
    Ignorable(Failure),
    /// The run ends.
    #[error(transparent)]
    Fatal(Failure),
}

impl DbError {
    /// The failure of either class.
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Ignorable(failure) | Self::Fatal(failure) => failure,
        }
    }

    /// True if no server listens yet, or it does not accept the connection yet.
    pub fn no_server_yet(&self) -> bool {
        self.connection_lost() || matches!(self.failure().errno, 1040 | 1053 | 2002 | 2003)
    }

    /// True if the connection is lost, by the error numbers that sysbench uses, or closed by the server because
    /// it was idle (4031, MySQL 8.0.24).
    pub fn connection_lost(&self) -> bool {
        matches!(self.failure().errno, 2006 | 2011 | 2013 | 2055 | 4031)
    }
}

/// An error that this driver detects.
pub fn client_failure(message: &str) -> Failure {
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

/// How to fix an error, by its number; `None` where the server's message contains the fix.
pub fn hint(errno: u32) -> Option<&'static str> {
    Some(match errno {
        1044 | 1142 => "the account lacks this privilege: GRANT it or use another --mysql-user",
        1045 | 1698 => "check --mysql-user and --mysql-password-file, --defaults-file or MYSQL_PWD",
        1203 | 1226 => {
            "the account has reached its limit of connections: ALTER USER ... WITH MAX_USER_CONNECTIONS, or lower --threads"
        }
        1040 => "raise max_connections on the server or lower --threads",
        1049 => "`loadprint-load prepare WORKLOAD` creates it",
        1050 => "`loadprint-load cleanup WORKLOAD` drops the tables of an earlier prepare",
        1054 | 1146 => "run `loadprint-load prepare WORKLOAD` with the same options first",
        1062 => {
            "the data have changed since prepare: run cleanup and prepare; --skip-trx, if given, can be the cause"
        }
        1114 | 1021 | 3675 => "free space on the server's data device",
        1227 => {
            "the account lacks this privilege: GRANT SYSTEM_VARIABLES_ADMIN for SET GLOBAL, or omit the option that needs it"
        }
        1461 => "raise max_prepared_stmt_count, lower --threads or --tables, or use --protocol=text",
        2002 | 2003 | 2005 => {
            "check that the server runs, and --mysql-host and --mysql-port, or --mysql-socket"
        }
        2006 | 2013 | 2055 => "the server went away or hangs: see its error log",
        2008 | 2020 => {
            "no statement of this workload has such a result: check that the address is that of a MySQL server"
        }
        2026 => "check --mysql-ssl and its files against the server's TLS configuration",
        2061 => NoDestination::FIX,
        2059 => {
            "this client does not contain the account's authentication plugin: use caching_sha2_password or mysql_native_password"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_prints_message_number_and_state_on_one_line() {
        let failure = Failure {
            errno: 1213,
            sqlstate: "40001".to_owned(),
            message: "Deadlock found".to_owned(),
        };
        assert_eq!(
            DbError::Ignorable(failure).to_string(),
            "Deadlock found (error 1213, SQLSTATE 40001)"
        );
    }
}
