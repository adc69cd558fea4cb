//! A safe connection on libmysqlclient, with server-side or client-side prepared statements.
//! Result sets are read whole and not looked at, as sysbench does; rows are only fetched by `rows`.

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_uint;
use std::ffi::c_ulong;
use std::ptr;
use std::slice;

use mysqlclient_sys as sys;

use super::Connection;
use super::DbError;
use super::Driver;
use super::Effect;
use super::Failure;
use super::ParamType;
use super::Row;
use super::StatementId;
use super::Value;
use super::connect::Account;
use super::open::attach_thread;
use super::open::open;
use super::statement::ServerStatement;
use super::template::Template;

/// ER_UNSUPPORTED_PS: the server cannot prepare this kind of statement.
const ER_UNSUPPORTED_PS: u32 = 1295;
/// CR_UNKNOWN_ERROR, for what this driver says itself.
const CR_UNKNOWN_ERROR: u32 = 2000;

/// Opens connections to one server as one account.
#[derive(Debug, Clone)]
pub struct MysqlDriver {
    /// Where and as whom.
    pub account: Account,
    /// True: statements are prepared on the server.
    pub server_side: bool,
    /// Error numbers that only restart the event.
    pub ignored: Vec<u32>,
}

impl Driver for MysqlDriver {
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(self.open(true)?))
    }
}

impl MysqlDriver {
    /// A connection without a database, for `prepare` to create it.
    pub fn connect_without_database(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(self.open(false)?))
    }

    fn open(&self, with_database: bool) -> Result<MysqlConnection, DbError> {
        attach_thread();
        let mysql = open(&self.account, with_database).map_err(DbError::Fatal)?;
        Ok(MysqlConnection {
            statements: Vec::new(),
            on_connect: Vec::new(),
            text: Vec::new(),
            driver: self.clone(),
            with_database,
            mysql,
        })
    }
}

enum Body {
    Server(ServerStatement),
    Text(Template),
    /// Lost with its connection; made again by `reconnect`.
    Lost,
}

struct Statement {
    sql: String,
    params: Box<[ParamType]>,
    body: Body,
}

struct MysqlConnection {
    statements: Vec<Statement>,
    on_connect: Vec<String>,
    text: Vec<u8>,
    driver: MysqlDriver,
    with_database: bool,
    mysql: *mut sys::MYSQL,
}

impl MysqlConnection {
    fn classify(&self, failure: Failure) -> DbError {
        if self.driver.ignored.contains(&failure.errno) {
            DbError::Ignorable(failure)
        } else {
            DbError::Fatal(failure)
        }
    }

    fn make(&self, sql: &str, params: &[ParamType]) -> Result<Body, Failure> {
        if self.driver.server_side {
            // SAFETY: `self.mysql` is open, of this thread, and closed only after its statements are dropped.
            match unsafe { ServerStatement::prepare(self.mysql, sql, params) } {
                Ok(statement) => return Ok(Body::Server(statement)),
                Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(Body::Text(Template::new(sql, params)))
    }

    fn run(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, DbError> {
        let found = self.statements.get(statement.0).map(|statement| &statement.body);
        let result = match (found, rows) {
            (Some(Body::Server(statement)), None) => statement.execute(values),
            (Some(Body::Server(statement)), Some(rows)) => statement.fetch(values, rows),
            (Some(Body::Text(template)), rows) => {
                let mysql = self.mysql;
                // SAFETY: the connection is open.
                template.fill(&mut self.text, values, |text, bytes| unsafe {
                    escape(mysql, text, bytes)
                });
                // SAFETY: as above.
                unsafe { run_text(mysql, &self.text, rows) }
            }
            (Some(Body::Lost) | None, _) => {
                Err(local_failure("the statement is not prepared on this connection"))
            }
        };
        result.map_err(|failure| self.classify(failure))
    }

    fn close(&mut self) {
        for statement in &mut self.statements {
            if matches!(statement.body, Body::Server(_)) {
                statement.body = Body::Lost;
            }
        }
        // SAFETY: the handle is closed once (it is null afterwards, which mysql_close takes), after its statements.
        unsafe { sys::mysql_close(self.mysql) };
        self.mysql = ptr::null_mut();
    }
}

impl Connection for MysqlConnection {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        let body = self.make(sql, params).map_err(|failure| self.classify(failure))?;
        self.statements.push(Statement {
            sql: sql.to_owned(),
            params: params.into(),
            body,
        });
        Ok(StatementId(self.statements.len() - 1))
    }

    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError> {
        self.run(statement, values, None)
    }

    fn fetch(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: &mut Vec<Row>,
    ) -> Result<Effect, DbError> {
        self.run(statement, values, Some(rows))
    }

    fn query(&mut self, sql: &[u8]) -> Result<Effect, DbError> {
        // SAFETY: `self.mysql` is an open connection of this thread.
        unsafe { run_text(self.mysql, sql, None) }.map_err(|failure| self.classify(failure))
    }

    fn on_connect(&mut self, sql: &str) -> Result<(), DbError> {
        self.query(sql.as_bytes())?;
        self.on_connect.push(sql.to_owned());
        Ok(())
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        let mut rows = Vec::new();
        // SAFETY: `self.mysql` is an open connection of this thread.
        unsafe { run_text(self.mysql, sql.as_bytes(), Some(&mut rows)) }
            .map_err(|failure| self.classify(failure))?;
        Ok(rows)
    }

    fn reconnect(&mut self) -> Result<(), DbError> {
        self.close();
        self.mysql =
            open(&self.driver.account, self.with_database).map_err(|failure| self.classify(failure))?;
        for sql in self.on_connect.clone() {
            self.query(sql.as_bytes())?;
        }
        for position in 0..self.statements.len() {
            let Statement { sql, params, .. } = &self.statements[position];
            let body = self.make(sql, params).map_err(|failure| self.classify(failure))?;
            self.statements[position].body = body;
        }
        Ok(())
    }
}

impl Drop for MysqlConnection {
    fn drop(&mut self) {
        self.close();
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

/// Appends `bytes` as they may stand between single quotes.
///
/// # Safety
/// `mysql` must be an open connection.
unsafe fn escape(mysql: *mut sys::MYSQL, text: &mut Vec<u8>, bytes: &[u8]) {
    text.reserve(bytes.len() * 2 + 1);
    // SAFETY: the library writes at most 2 n + 1 bytes, for which there is room behind the current end; it says how many.
    unsafe {
        let end = text.as_mut_ptr().add(text.len()).cast::<c_char>();
        let written = sys::mysql_real_escape_string_quote(
            mysql,
            end,
            bytes.as_ptr().cast(),
            bytes.len() as c_ulong,
            b'\'' as c_char,
        );
        text.set_len(text.len() + written as usize);
    }
}

/// Runs a text and reads all its result sets, into `rows` where they are wanted. Read if there was one, else by the rows affected.
///
/// # Safety
/// `mysql` must be an open connection of this thread.
unsafe fn run_text(
    mysql: *mut sys::MYSQL,
    sql: &[u8],
    mut rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    // SAFETY: pointer and length describe `sql`; each result is freed before the next one is asked for.
    unsafe {
        if sys::mysql_real_query(mysql, sql.as_ptr().cast(), sql.len() as c_ulong) != 0 {
            return Err(failure_of(mysql));
        }
        let mut effect = None;
        loop {
            let result = sys::mysql_store_result(mysql);
            if !result.is_null() {
                if let Some(rows) = rows.as_deref_mut() {
                    read_rows(result, rows);
                }
                sys::mysql_free_result(result);
                effect = Some(Effect::Read);
            } else if sys::mysql_field_count(mysql) > 0 {
                return Err(failure_of(mysql));
            }
            // 0: another result, -1: there was none, else an error.
            match sys::mysql_next_result(mysql) {
                0 => {}
                -1 => break,
                _ => return Err(failure_of(mysql)),
            }
        }
        Ok(effect.unwrap_or_else(|| effect_of(sys::mysql_affected_rows(mysql))))
    }
}

/// # Safety
/// `result` must be a stored result of a connection of this thread.
unsafe fn read_rows(result: *mut sys::MYSQL_RES, rows: &mut Vec<Row>) {
    // SAFETY: a row is an array of as many pointers and lengths as there are fields; it is copied before the next fetch.
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
