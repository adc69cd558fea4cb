//! Runs statements on a connection of libmysqlclient and returns their rows. Every wait has a
//! timeout.

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_uint;
use std::ffi::c_ulong;
use std::ptr;
use std::slice;
use std::str::FromStr;

use loadprint_mysqlclient::NoDestination;
use loadprint_mysqlclient::attach_thread;
use loadprint_mysqlclient::set_value;
use mysqlclient_sys as sys;
use mysqlclient_sys::mysql_option as option;

use super::account::Account;
use super::wire::Sizes;

/// Timeout for a new connection.
const CONNECT_SECONDS: c_uint = 5;
/// Timeout for each read of a response and each write of a statement.
const READ_SECONDS: c_uint = 10;
/// Maximum size of a response: four times that of all statement digests of a server.
const ANSWER_BYTES: u64 = 64 << 20;
/// Maximum size of a packet, and of the column definitions of a response.
const PACKET_BYTES: c_ulong = 16 << 20;
/// The first error number of the client library (errmsg.h); smaller numbers are those of the
/// server.
const CLIENT_ERRORS: u32 = 2000;
/// CR_UNKNOWN_ERROR, for errors of this module.
const UNKNOWN_ERROR: u32 = 2000;

/// An error of the server or the library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (error {number})")]
pub struct Failure {
    /// The number in MySQL's error reference.
    pub number: u32,
    /// The message, in one line.
    pub message: String,
}

impl Failure {
    /// Whether a later login would fail too: wrong password, host, plugin or certificate.
    pub fn is_refusal(&self) -> bool {
        // Too many connections (three kinds), shutdown in progress, out of memory or threads.
        const TEMPORARY: [u32; 8] = [1040, 1203, 1226, 1053, 1037, 1038, 1041, 1135];
        // TLS failed, unknown protocol, old authentication, plugins.
        const CLIENT: [u32; 7] = [2019, 2026, 2047, 2049, 2059, 2060, 2061];
        match self.number {
            number @ ..CLIENT_ERRORS => !TEMPORARY.contains(&number),
            number @ CLIENT_ERRORS..3000 => CLIENT.contains(&number),
            3118 | 3159 | 4150 | 4151 => true,
            _ => false,
        }
    }

    /// How to fix a refused login.
    pub fn fix(&self) -> &'static str {
        match self.number {
            2026 => "check --mysql-ssl and its files against the TLS configuration of the server",
            2061 => NoDestination::FIX,
            _ => "check --mysql-user and --mysql-password-file, and the grants in docs/mysql-probe.md",
        }
    }

    /// Whether the server does not know a column.
    pub fn is_unknown_column(&self) -> bool {
        self.number == 1054
    }

    /// Whether this server or account will never support the statement.
    pub fn is_unsupported(&self) -> bool {
        // Access denied (four kinds), unknown database, column, table, engine, variable, syntax,
        // not built in.
        const NEVER: [u32; 14] = [
            1044, 1045, 1142, 1143, 1227, 1370, 1049, 1054, 1064, 1109, 1146, 1193, 1235, 1286,
        ];
        NEVER.contains(&self.number)
    }

    /// Whether the connection is unusable.
    fn ends_connection(&self) -> bool {
        (CLIENT_ERRORS..3000).contains(&self.number) || self.number == 1053
    }

    /// The error for a query without a connection.
    pub fn no_connection() -> Self {
        Self::local("not connected")
    }

    fn without_destination(reason: &NoDestination) -> Self {
        Self {
            number: reason.number(),
            message: reason.to_string(),
        }
    }

    fn local(message: &str) -> Self {
        Self {
            number: UNKNOWN_ERROR,
            message: message.to_owned(),
        }
    }

    /// # Safety
    /// `mysql` must be a handle from mysql_init.
    unsafe fn of(mysql: *mut sys::MYSQL) -> Self {
        // SAFETY: the handle owns the string, which ends with a zero byte and is copied here.
        let (number, message) = unsafe {
            (
                sys::mysql_errno(mysql),
                CStr::from_ptr(sys::mysql_error(mysql)).to_string_lossy(),
            )
        };
        Self {
            number,
            message: message.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }
}

/// The cells of one row, `None` for NULL.
#[derive(Debug)]
pub struct Cells<'a> {
    values: &'a [*mut c_char],
    lengths: &'a [c_ulong],
}

impl<'a> Cells<'a> {
    /// The cell of column `index`; `None` for NULL and for a missing column.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let (value, length) = (*self.values.get(index)?, *self.lengths.get(index)?);
        // SAFETY: pointer and length are those of the library; the cell lives as long as the row.
        (!value.is_null()).then(|| unsafe { slice::from_raw_parts(value.cast(), length as usize) })
    }

    /// The cell of column `index` as a number; `None` if it is not one.
    pub fn number<T: FromStr>(&self, index: usize) -> Option<T> {
        str::from_utf8(self.get(index)?).ok()?.parse().ok()
    }

    fn sizes(&self) -> impl Iterator<Item = Option<u64>> {
        let cells = self.values.iter().zip(self.lengths);
        cells.map(|(value, length)| (!value.is_null()).then_some(*length))
    }
}

/// A connection. It stays open until it is dropped or lost.
#[derive(Debug)]
pub struct Client {
    mysql: *mut sys::MYSQL,
    lost: bool,
    received_bytes: u64,
}

// SAFETY: a connection may be used by any thread that called mysql_thread_init, one at a time (C
// API reference, "Writing C API Threaded Client Programs"); `&mut` sees to the latter.
unsafe impl Send for Client {}

impl Client {
    /// Logs in.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub fn connect(account: &Account) -> Result<Self, Failure> {
        attach_thread();
        let (host, password) = (account.host.as_deref(), account.password.as_deref());
        let destination = account
            .tls
            .destination(host, account.port.unwrap_or(3306), password)
            .map_err(|reason| Failure::without_destination(&reason))?;
        // SAFETY: the library is initialised; for null it allocates the handle, which `client`
        // frees.
        let mysql = unsafe { sys::mysql_init(ptr::null_mut()) };
        let client = Self {
            mysql,
            lost: false,
            received_bytes: 0,
        };
        if client.mysql.is_null() {
            return Err(Failure::local("mysql_init: out of memory"));
        }
        let address = (account.port.unwrap_or(0), account.socket.as_deref());
        // SAFETY: the handle is fresh; the options take unsigned ints and an unsigned long.
        unsafe {
            set_value(mysql, option::MYSQL_OPT_CONNECT_TIMEOUT, CONNECT_SECONDS);
            set_value(mysql, option::MYSQL_OPT_READ_TIMEOUT, READ_SECONDS);
            set_value(mysql, option::MYSQL_OPT_WRITE_TIMEOUT, READ_SECONDS);
            set_value(mysql, option::MYSQL_OPT_MAX_ALLOWED_PACKET, PACKET_BYTES);
            match account.log_in(mysql, &destination, address, None, 0) {
                Ok(true) => Ok(client),
                Ok(false) => Err(Failure::of(mysql)),
                Err(refusal) => Err(Failure::local(&refusal.to_string())),
            }
        }
    }

    /// True if a statement has failed because the connection was lost.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// The version in the greeting of the server, or of a proxy: `5.7.22-log`.
    pub fn version(&self) -> String {
        // SAFETY: the connection is open and owns the string, which ends with a zero byte.
        let text = unsafe { CStr::from_ptr(sys::mysql_get_server_info(self.mysql)) };
        text.to_string_lossy().into_owned()
    }

    /// The packet sizes of this connection.
    pub fn sizes(&self) -> Sizes {
        // SAFETY: the connection is open. The server may not support all flags of the client.
        unsafe { Sizes::new((*self.mysql).client_flag & (*self.mysql).server_capabilities) }
    }

    /// Bytes of all responses, as the server counts them.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Runs a statement and calls `row` with each row.
    ///
    /// # Errors
    /// The error of the server, or the loss of the connection.
    pub fn query(&mut self, sql: &str, mut row: impl FnMut(&Cells<'_>)) -> Result<(), Failure> {
        attach_thread();
        let sizes = self.sizes();
        let limit = self.received_bytes + ANSWER_BYTES;
        // SAFETY: pointer and length describe `sql`; the result is freed before the next statement.
        // A row is an array of one pointer and one length for each field, and is used before the
        // next row is fetched.
        unsafe {
            if sys::mysql_real_query(self.mysql, sql.as_ptr().cast(), sql.len() as c_ulong) != 0 {
                return self.end(0);
            }
            let result = sys::mysql_use_result(self.mysql);
            if result.is_null() {
                return self.end(sizes.ok());
            }
            let count = sys::mysql_num_fields(result) as usize;
            let fields = slice::from_raw_parts(sys::mysql_fetch_fields(result), count);
            let names = |field: &sys::MYSQL_FIELD| {
                let lengths = [
                    field.catalog_length,
                    field.db_length,
                    field.table_length,
                    field.org_table_length,
                    field.name_length,
                    field.org_name_length,
                ];
                lengths.map(u64::from)
            };
            self.received_bytes += sizes.result(fields.iter().map(names));
            loop {
                let values = sys::mysql_fetch_row(result);
                if values.is_null() {
                    break;
                }
                let cells = Cells {
                    values: slice::from_raw_parts(values, count),
                    lengths: slice::from_raw_parts(sys::mysql_fetch_lengths(result), count),
                };
                self.received_bytes += sizes.row(cells.sizes());
                if self.received_bytes > limit {
                    self.lost = true;
                    // Otherwise mysql_free_result would read the rest of the response.
                    libc::shutdown((*self.mysql).net.fd, libc::SHUT_RDWR);
                    sys::mysql_free_result(result);
                    let mebibytes = ANSWER_BYTES >> 20;
                    return Err(Failure::local(&format!(
                        "the response has more than {mebibytes} MiB; the connection was closed"
                    )));
                }
                row(&cells);
            }
            sys::mysql_free_result(result);
            // The connection stores an error that occurred between rows.
            self.end(sizes.end())
        }
    }

    /// Counts the last packet of a response: `size` bytes, or an error packet.
    fn end(&mut self, size: u64) -> Result<(), Failure> {
        // SAFETY: the handle exists until this value is dropped.
        let (number, failure) = unsafe { (sys::mysql_errno(self.mysql), Failure::of(self.mysql)) };
        if number == 0 {
            self.received_bytes += size;
            return Ok(());
        }
        self.received_bytes += self.sizes().error(&failure.message);
        self.lost |= failure.ends_connection();
        Err(failure)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        attach_thread();
        // SAFETY: closed once; null is allowed.
        unsafe { sys::mysql_close(self.mysql) };
    }
}
