//! Opens a connection of libmysqlclient: sets its options and selects how it waits.

use std::ffi::c_uint;
use std::ffi::c_ulong;
use std::ptr;

use loadprint_mysqlclient::set_value;
use mysqlclient_sys as sys;

use super::connect::Account;
use super::failure::Failure;
use super::failure::client_failure;
use super::failure::failure_of;
use super::watchdog::WatchedConnection;

/// CLIENT_MULTI_STATEMENTS of mysql_com.h, which sysbench sets too.
const CLIENT_MULTI_STATEMENTS: c_ulong = 1 << 16;
/// With a read timeout below INT_MAX ms the library waits in poll(2), else in recv(2)
/// (vio/viosocket.cc). 23 days: no statement reaches it.
const POLLED_SECONDS: c_uint = 2_000_000;
/// Seconds by which the library's connect timeout exceeds that of the watchdog, whose message
/// contains the option.
const CONNECT_MARGIN: c_uint = 2;
/// Limit of a packet and of the column descriptions of a result, in bytes: the library allocates
/// memory for as many columns as the server announces.
const MAX_PACKET: c_ulong = 64 << 20;

/// Opens connection `number` to its address, and selects how the library waits for replies.
///
/// On a unix socket it polls. A thread that blocks in recv(2) is woken a first time when the server
/// *reads* the query: `unix_write_space` of the kernel wakes every waiter, and poll filters by
/// event. Measured: 1.7 context switches a query against 1.0. On TCP it blocks in recv(2), which
/// saves two system calls.
pub fn open(
    account: &Account,
    number: usize,
    with_database: bool,
    watched: &WatchedConnection,
) -> Result<*mut sys::MYSQL, Failure> {
    let endpoint = account.endpoint(number);
    let login = &account.login;
    let destination = login
        .tls
        .destination(Some(&endpoint.host), endpoint.port, login.password.as_deref())
        .map_err(|reason| Failure {
            errno: reason.number(),
            ..client_failure(&reason.to_string())
        })?;
    // SAFETY: the library is initialised; null asks it to allocate the handle.
    let mysql = unsafe { sys::mysql_init(ptr::null_mut()) };
    if mysql.is_null() {
        return Err(client_failure("mysql_init: out of memory"));
    }
    watched.set_handle(mysql);
    let address = (endpoint.port, endpoint.socket.as_deref());
    let database = account.database.as_deref().filter(|_| with_database);
    // SAFETY: the handle is fresh and not connected.
    let connected = unsafe {
        set_options(mysql, account, endpoint.is_local());
        login.log_in(mysql, &destination, address, database, CLIENT_MULTI_STATEMENTS)
    };
    if matches!(connected, Ok(true)) {
        return Ok(mysql);
    }
    watched.set_handle(ptr::null_mut());
    // SAFETY: the handle is closed here and not used again.
    let failure = unsafe {
        let failure = failure_of(mysql);
        sys::mysql_close(mysql);
        failure
    };
    Err(connected
        .err()
        .map_or(failure, |refusal| client_failure(&refusal.to_string())))
}

/// # Safety
/// `mysql` must come from mysql_init and not be connected yet.
unsafe fn set_options(mysql: *mut sys::MYSQL, account: &Account, polled: bool) {
    use sys::mysql_option as option;
    let seconds: c_uint = account.answer_seconds + CONNECT_MARGIN;
    // SAFETY: the handle is not connected yet. Each option takes a pointer to the type given here (C
    // API reference, mysql_options) and copies the value; compression takes none.
    unsafe {
        set_value(mysql, option::MYSQL_OPT_CONNECT_TIMEOUT, seconds);
        set_value(mysql, option::MYSQL_OPT_MAX_ALLOWED_PACKET, MAX_PACKET);
        if polled {
            set_value(mysql, option::MYSQL_OPT_READ_TIMEOUT, POLLED_SECONDS);
        }
        if account.compression {
            sys::mysql_options(mysql, option::MYSQL_OPT_COMPRESS, ptr::null());
        }
    }
}
