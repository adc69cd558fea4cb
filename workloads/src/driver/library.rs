//! Wraps one open connection of libmysqlclient: runs texts and filled templates, prepares
//! statements.

use std::ffi::c_char;
use std::ffi::c_ulong;
use std::mem;
use std::os::fd::BorrowedFd;
use std::slice;
use std::time::Duration;

use loadprint_mysqlclient::attach_thread;
use mysqlclient_sys as sys;
use rustix::net::sockopt::set_tcp_keepcnt;
use rustix::net::sockopt::set_tcp_keepidle;
use rustix::net::sockopt::set_tcp_keepintvl;

use super::Effect;
use super::ParamType;
use super::Row;
use super::Value;
use super::connect::Account;
use super::failure::Failure;
use super::failure::failure_of;
use super::open::open;
use super::protocol::ProtocolCalls;
use super::statement::ServerStatement;
use super::template::Template;
use super::watchdog::WatchedConnection;

/// Keepalive of an idle TCP connection (tcp(7)): until the first probe, between probes, their number.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 6;

/// A connection of the library; only the thread that opened it may use it.
pub struct LibraryConnection {
    /// Reused buffer for filled templates.
    text: Vec<u8>,
    mysql: *mut sys::MYSQL,
}

impl LibraryConnection {
    /// Logs in to address `number`. `watched` gets the handle as soon as it exists.
    pub fn open(
        account: &Account,
        number: usize,
        with_database: bool,
        watched: &WatchedConnection,
    ) -> Result<Self, Failure> {
        attach_thread();
        Ok(Self {
            text: Vec::new(),
            mysql: open(account, number, with_database, watched)?,
        })
    }

    /// Detects a dead host where statements have no time limit, and keeps an idle connection in the
    /// tables of firewalls and proxies. The library has set SO_KEEPALIVE.
    pub fn keep_alive(&self) {
        // SAFETY: the connection is open, and with it its socket.
        let socket = unsafe { BorrowedFd::borrow_raw((*self.mysql).net.fd) };
        // The calls fail without harm on a socket that is not TCP.
        set_tcp_keepidle(socket, KEEPALIVE_IDLE).ok();
        set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL).ok();
        set_tcp_keepcnt(socket, KEEPALIVE_PROBES).ok();
    }

    /// Runs a text and reads all its result sets, into `rows` if it is given. The effect is `Read`
    /// with a result set, else it depends on the affected rows.
    pub fn query(&self, sql: &[u8], mut rows: Option<&mut Vec<Row>>) -> Result<Effect, Failure> {
        let mysql = self.mysql;
        // SAFETY: the connection is open and belongs to this thread. Pointer and length describe
        // `sql`; each result is freed before the next one is requested.
        unsafe {
            if sys::mysql_real_query(mysql, sql.as_ptr().cast(), sql.len() as c_ulong) != 0 {
                return Err(failure_of(mysql));
            }
            let mut effect = None;
            let mut affected = 0;
            loop {
                // An unwanted result is not stored: the library reads it to its end when it is freed.
                let result = match &rows {
                    Some(_) => sys::mysql_store_result(mysql),
                    None => sys::mysql_use_result(mysql),
                };
                if !result.is_null() {
                    if let Some(rows) = rows.as_deref_mut() {
                        read_rows(result, rows);
                    }
                    sys::mysql_free_result(result);
                    // The library stores an error among the rows in the connection.
                    if sys::mysql_errno(mysql) != 0 {
                        return Err(failure_of(mysql));
                    }
                    effect = Some(Effect::Read);
                } else if sys::mysql_errno(mysql) != 0 {
                    // Not by the number of fields, which is zero if the connection is lost within a
                    // stored result.
                    return Err(failure_of(mysql));
                } else {
                    affected += sys::mysql_affected_rows(mysql);
                }
                // Checked first, because mysql_next_result clears the number of rows.
                if sys::mysql_more_results(mysql) == sys::FALSE {
                    return Ok(effect.unwrap_or_else(|| Effect::of_rows(affected)));
                }
                if sys::mysql_next_result(mysql) != 0 {
                    return Err(failure_of(mysql));
                }
            }
        }
    }

    /// Runs the text of a template.
    pub fn fill(&mut self, template: &Template, values: &[Value<'_>]) -> Result<Effect, Failure> {
        let mut text = mem::take(&mut self.text);
        template.fill(&mut text, values, |text, bytes| self.escape(text, bytes));
        let effect = self.query(&text, None);
        self.text = text;
        effect
    }

    /// Appends `bytes` in the form required between single quotes.
    fn escape(&self, text: &mut Vec<u8>, bytes: &[u8]) {
        text.reserve(bytes.len() * 2 + 1);
        // SAFETY: the connection is open. The library writes at most 2 n + 1 bytes behind the
        // current end, where this many are reserved, and returns their number.
        unsafe {
            let end = text.as_mut_ptr().add(text.len()).cast::<c_char>();
            let written = sys::mysql_real_escape_string_quote(
                self.mysql,
                end,
                bytes.as_ptr().cast(),
                bytes.len() as c_ulong,
                b'\'' as c_char,
            );
            text.set_len(text.len() + written as usize);
        }
    }

    /// Prepares a statement on the server.
    pub fn prepare(
        &mut self,
        calls: &mut ProtocolCalls,
        sql: &str,
        params: &[ParamType],
    ) -> Result<ServerStatement, Failure> {
        calls.prepares += 1;
        // SAFETY: as above; the connection is closed after its statements.
        unsafe { ServerStatement::prepare(self.mysql, sql, params) }
    }
}

impl Drop for LibraryConnection {
    fn drop(&mut self) {
        // SAFETY: closed once, after its statements.
        unsafe { sys::mysql_close(self.mysql) };
    }
}

/// # Safety
/// `result` must be a stored result of a connection of this thread.
unsafe fn read_rows(result: *mut sys::MYSQL_RES, rows: &mut Vec<Row>) {
    // SAFETY: a row is an array of as many pointers and lengths as there are fields; it is copied
    // before the next fetch.
    unsafe {
        let fields = sys::mysql_num_fields(result) as usize;
        loop {
            let row = sys::mysql_fetch_row(result);
            if row.is_null() {
                return;
            }
            let values = slice::from_raw_parts(row, fields);
            let lengths = slice::from_raw_parts(sys::mysql_fetch_lengths(result), fields);
            let cell = |(value, length): (&*mut c_char, &c_ulong)| {
                (!value.is_null()).then(|| {
                    let bytes = slice::from_raw_parts(value.cast::<u8>(), *length as usize);
                    String::from_utf8_lossy(bytes).into_owned()
                })
            };
            rows.push(values.iter().zip(lengths).map(cell).collect());
        }
    }
}
