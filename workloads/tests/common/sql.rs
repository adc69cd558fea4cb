//! The test's connection to a server, with which it reads tables and holds locks.

use std::env;
use std::ffi::CStr;
use std::ffi::c_ulong;
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;

use loadprint_mysqlclient::Account;
use loadprint_mysqlclient::OptionFile;
use loadprint_mysqlclient::attach_thread;
use mysqlclient_sys as sys;

use super::Bench;
use super::variable;
use super::wait_until;

/// Open connections of this type to the tests' server.
static OPEN: AtomicI64 = AtomicI64::new(0);

/// An open connection.
pub struct Sql {
    mysql: *mut sys::MYSQL,
    /// To the server that all tests share.
    is_shared: bool,
}

impl Sql {
    /// Connects to the tests' server as their account, with the test's database.
    pub fn open(bench: &Bench) -> Self {
        Self::shared(Some(bench.database()))
    }

    /// Connects to the tests' server as their account.
    pub fn shared(database: Option<&str>) -> Self {
        let socket = variable("LOADPRINT_TEST_SOCKET");
        let mut sql = match env::var("LOADPRINT_TEST_DEFAULTS") {
            Ok(path) => {
                let path = Path::new(&path);
                let file = OptionFile::read(path, "LOADPRINT_TEST_DEFAULTS", &["client"]).unwrap();
                let user = file.get("user").unwrap_or_default();
                Self::connect(&socket, user, file.get("password"), database)
            }
            Err(_) => Self::connect(&socket, "root", None, database),
        };
        OPEN.fetch_add(1, SeqCst);
        sql.is_shared = true;
        sql
    }

    /// Connects to the server at a socket.
    pub fn connect(socket: &str, user: &str, password: Option<&str>, database: Option<&str>) -> Self {
        attach_thread();
        let account = Account {
            user: Some(user.to_owned()),
            password: password.map(str::to_owned),
            ..Account::default()
        };
        let destination = account.tls.destination(None, 0, password).unwrap();
        // SAFETY: the handle is not connected yet, and is checked by `Sql::expect`.
        unsafe {
            let mysql = sys::mysql_init(ptr::null_mut());
            let sql = Self {
                mysql,
                is_shared: false,
            };
            let connected = account.log_in(mysql, &destination, (0, Some(socket)), database, 0);
            sql.expect(connected.unwrap(), "connect");
            sql
        }
    }

    fn expect(&self, is_success: bool, action: &str) {
        // SAFETY: the handle is from mysql_init, and its message ends with a zero byte.
        let message = unsafe { CStr::from_ptr(sys::mysql_error(self.mysql)) };
        assert!(is_success, "{action}: {}", message.to_string_lossy());
    }

    /// Runs a statement and gives its rows, NULL as `None`.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let mut rows = Vec::new();
        // SAFETY: the connection is open; a row is an array of as many pointers and lengths as
        // there are fields, copied at once.
        unsafe {
            let sent = sys::mysql_real_query(self.mysql, sql.as_ptr().cast(), sql.len() as c_ulong);
            self.expect(sent == 0, sql);
            let result = sys::mysql_store_result(self.mysql);
            self.expect(!result.is_null() || sys::mysql_field_count(self.mysql) == 0, sql);
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

    /// Runs a statement without rows that may fail.
    pub fn attempt(&self, sql: &str) {
        // SAFETY: the connection is open; a statement without rows leaves nothing to be read.
        unsafe { sys::mysql_real_query(self.mysql, sql.as_ptr().cast(), sql.len() as c_ulong) };
    }

    /// Empties the general log, a table, and logs all statements until [`Sql::stop_log`].
    pub fn start_log(&self) {
        self.wait_until_disconnected();
        for statement in [
            "SET GLOBAL general_log = OFF",
            "SET GLOBAL log_output = 'TABLE'",
            "TRUNCATE TABLE mysql.general_log",
            "SET GLOBAL general_log = ON",
        ] {
            self.rows(statement);
        }
    }

    /// Ends logging.
    pub fn stop_log(&self) {
        self.rows("SET GLOBAL general_log = OFF");
    }

    /// Waits until the server has closed every connection except this process's. The server does
    /// not answer the last commands of a connection (COM_STMT_CLOSE, COM_QUIT): a busy server
    /// counts them (`Questions`) some time after its client has ended, perhaps in the next load's
    /// measurement. Until then, the next connection may exceed a limit.
    pub fn wait_until_disconnected(&self) {
        self.wait_until(
            "the server has no other clients, so that its counters are exact",
            "SELECT COUNT(*) FROM performance_schema.threads WHERE name = 'thread/sql/one_connection'",
            |connections| connections <= OPEN.load(SeqCst),
        );
    }

    /// Repeats a query of one number until the condition is true for it.
    pub fn wait_until(&self, awaited: &str, sql: &str, condition: impl Fn(i64) -> bool) {
        wait_until(&format!("{awaited}: {sql}"), || condition(self.number(sql)));
    }

    /// The result of a query of one number.
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
        if self.is_shared {
            OPEN.fetch_sub(1, SeqCst);
        }
        // SAFETY: closed once.
        unsafe { sys::mysql_close(self.mysql) };
    }
}
