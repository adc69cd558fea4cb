//! A connection of the test's own, to look at tables and to hold locks.

use std::env;
use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::c_ulong;
use std::ptr;
use std::slice;
use std::thread::yield_now;
use std::time::Duration;
use std::time::Instant;

use mysqlclient_sys as sys;

use super::Bench;
use super::variable;

/// An open connection with the test's database.
pub struct Sql(*mut sys::MYSQL);

impl Sql {
    /// Connects as the tests' account.
    pub fn open(bench: &Bench) -> Self {
        let text = |text: &str| CString::new(text).unwrap();
        let socket = text(&variable("LOADPRINT_TEST_SOCKET"));
        let database = text(bench.database());
        let defaults = env::var("LOADPRINT_TEST_DEFAULTS").ok().map(|file| text(&file));
        let root = text("root");
        let user = if defaults.is_some() {
            ptr::null()
        } else {
            root.as_ptr()
        };
        // SAFETY: each pointer is null or a zero-terminated string that outlives the calls; the handle is checked by `Sql::expect`.
        unsafe {
            let mysql = sys::mysql_init(ptr::null_mut());
            if let Some(file) = &defaults {
                let option = sys::mysql_option::MYSQL_READ_DEFAULT_FILE;
                sys::mysql_options(mysql, option, file.as_ptr().cast());
            }
            let sql = Self(mysql);
            let connected = sys::mysql_real_connect(
                mysql,
                ptr::null(),
                user,
                ptr::null(),
                database.as_ptr(),
                0,
                socket.as_ptr(),
                0,
            );
            sql.expect(!connected.is_null(), "connect");
            sql
        }
    }

    fn expect(&self, fine: bool, what: &str) {
        // SAFETY: the handle is from mysql_init, and its message ends with a zero byte.
        let message = unsafe { CStr::from_ptr(sys::mysql_error(self.0)) };
        assert!(fine, "{what}: {}", message.to_string_lossy());
    }

    /// Runs a statement and gives its rows, NULL as `None`.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let mut rows = Vec::new();
        // SAFETY: the connection is open; a row is an array of as many pointers and lengths as there are fields, copied at once.
        unsafe {
            let sent = sys::mysql_real_query(self.0, sql.as_ptr().cast(), sql.len() as c_ulong);
            self.expect(sent == 0, sql);
            let result = sys::mysql_store_result(self.0);
            self.expect(!result.is_null() || sys::mysql_field_count(self.0) == 0, sql);
            if result.is_null() {
                return rows;
            }
            let fields = sys::mysql_num_fields(result) as usize;
            loop {
                let row = sys::mysql_fetch_row(result);
                if row.is_null() {
                    break;
                }
                let cells = slice::from_raw_parts(row, fields);
                let cell = |cell: &*mut std::ffi::c_char| {
                    (!cell.is_null()).then(|| CStr::from_ptr(*cell).to_string_lossy().into_owned())
                };
                rows.push(cells.iter().map(cell).collect());
            }
            sys::mysql_free_result(result);
        }
        rows
    }

    /// Empties the general log, a table, and has everything logged until [`Sql::stop_log`].
    pub fn start_log(&self) {
        for statement in [
            "SET GLOBAL general_log = OFF",
            "SET GLOBAL log_output = 'TABLE'",
            "TRUNCATE TABLE mysql.general_log",
            "SET GLOBAL general_log = ON",
        ] {
            self.rows(statement);
        }
    }

    /// Nothing is logged any more.
    pub fn stop_log(&self) {
        self.rows("SET GLOBAL general_log = OFF");
    }

    /// Waits until the server has let go of the connections that a load has closed: it counts them for a while yet, and the
    /// next one may be one too many.
    pub fn wait_until_let_go(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.number("SELECT COUNT(*) FROM performance_schema.processlist") > 20 {
            assert!(
                Instant::now() < deadline,
                "connections that were closed are still there"
            );
            yield_now();
        }
    }

    /// The one number that a statement gives.
    pub fn number(&self, sql: &str) -> i64 {
        let rows = self.rows(sql);
        let cell = rows.first().and_then(|row| row.first()?.as_deref());
        cell.unwrap_or_else(|| panic!("{sql} gave no value"))
            .parse()
            .unwrap_or_else(|_| panic!("{sql} gave no number"))
    }
}

impl Drop for Sql {
    fn drop(&mut self) {
        // SAFETY: closed once.
        unsafe { sys::mysql_close(self.0) };
    }
}
