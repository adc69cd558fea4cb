//! A safe connection on libmysqlclient that runs statements by the protocol it was told.
//! Result sets are read whole and not looked at, as sysbench does; rows are only kept by `fetch` and `rows`.

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_uint;
use std::mem;
use std::num::NonZeroUsize;
use std::os::fd::RawFd;
use std::ptr;

use lru::LruCache;
use mysqlclient_sys as sys;

use super::Connection;
use super::DbError;
use super::Driver;
use super::Effect;
use super::Failure;
use super::Ignored;
use super::ParamType;
use super::Reconnects;
use super::Row;
use super::StatementId;
use super::Value;
use super::connect::Account;
use super::multiplexed::Multiplexed;
use super::named::Named;
use super::open::attach_thread;
use super::open::open;
use super::protocol::Calls;
use super::protocol::Mode;
use super::protocol::Protocol;
use super::statement::ServerStatement;
use super::template::Template;
use super::text::escape;
use super::text::run_text;
use crate::tasks;

/// ER_UNSUPPORTED_PS: the server cannot prepare this kind of statement.
const ER_UNSUPPORTED_PS: u32 = 1295;
/// Characters of a statement in an error.
pub const TEXT_SHOWN: usize = 80;
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
}

impl Driver for MysqlDriver {
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        self.connect_nth(0)
    }

    fn connect_nth(&self, number: usize) -> Result<Box<dyn Connection>, DbError> {
        // A task must not wait inside of the library.
        if tasks::inside() {
            return Ok(Box::new(Multiplexed::open(self, number)?));
        }
        Ok(Box::new(self.open(number, true)?))
    }
}

impl MysqlDriver {
    /// A connection without a database, for `prepare` to create it.
    pub fn connect_without_database(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(self.open(0, false)?))
    }

    fn open(&self, number: usize, with_database: bool) -> Result<MysqlConnection, DbError> {
        attach_thread();
        let mysql = open(&self.account, number, with_database).map_err(DbError::Fatal)?;
        Ok(MysqlConnection {
            statements: Vec::new(),
            cache: NonZeroUsize::new(self.mode.cache_size).map(LruCache::new),
            calls: Calls::default(),
            on_connect: Vec::new(),
            text: Vec::new(),
            driver: self.clone(),
            number,
            with_database,
            mysql,
        })
    }
}

/// What a connection keeps of a statement.
enum Body {
    /// The text itself; cut at its holes for each call.
    Text,
    /// The text, cut once.
    Template(Template),
    /// A handle of the server.
    Server(ServerStatement),
    /// A handle of the server in the cache, or made when it is needed.
    Cached,
    /// A handle made and closed for each call.
    Uncached,
    /// Prepared by the text PREPARE.
    Named(Named),
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
    /// Handles by the position of their statement.
    cache: Option<LruCache<usize, ServerStatement>>,
    calls: Calls,
    on_connect: Vec<String>,
    text: Vec<u8>,
    driver: MysqlDriver,
    /// Which of the addresses.
    number: usize,
    with_database: bool,
    mysql: *mut sys::MYSQL,
}

impl MysqlConnection {
    fn classify(&self, failure: Failure) -> DbError {
        if self.driver.ignored.contains(failure.errno) {
            DbError::Ignorable(failure)
        } else {
            DbError::Fatal(failure)
        }
    }

    /// The handle, unless the connection could not be opened again.
    fn live(&self) -> Result<*mut sys::MYSQL, Failure> {
        if self.mysql.is_null() {
            return Err(local_failure("the connection is closed"));
        }
        Ok(self.mysql)
    }

    /// Makes the statement at `position` as the protocol wants it at the start.
    fn make(&mut self, position: usize, sql: &str, params: &[ParamType]) -> Result<Body, Failure> {
        self.live()?;
        let made = match self.driver.mode.protocol {
            Protocol::Text => Ok(Body::Text),
            Protocol::Emulated => Ok(Body::Template(Template::new(sql, params))),
            Protocol::Ps => prepare(self.mysql, &mut self.calls, sql, params).map(Body::Server),
            Protocol::PsCached if sql.len() > self.driver.mode.cache_sql_limit => Ok(Body::Text),
            Protocol::PsCached => Ok(Body::Cached),
            Protocol::PsUncached => Ok(Body::Uncached),
            Protocol::SqlPrepare => self.name(position, sql, params).map(Body::Named),
        };
        match made {
            Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
                Ok(Body::Template(Template::new(sql, params)))
            }
            made => made,
        }
    }

    fn name(&mut self, position: usize, sql: &str, params: &[ParamType]) -> Result<Named, Failure> {
        self.fill(
            &Named::prepare(position, sql.len()),
            &[Value::Bytes(sql.as_bytes())],
        );
        self.calls.prepares += 1;
        // SAFETY: `self.mysql` is open and of this thread.
        unsafe { run_text(self.mysql, &self.text, None) }?;
        Ok(Named::new(position, params))
    }

    fn fill(&mut self, template: &Template, values: &[Value<'_>]) {
        fill(self.mysql, &mut self.text, template, values);
    }

    /// Runs the statement at `position`.
    fn run(
        &mut self,
        position: usize,
        values: &[Value<'_>],
        mut rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        let mysql = self.live()?;
        let Some(Statement { sql, params, body }) = self.statements.get(position) else {
            return Err(local_failure("the statement is not prepared on this connection"));
        };
        let result = match body {
            Body::Server(statement) => {
                self.calls.executes += 1;
                return statement.run(values, rows);
            }
            Body::Template(template) => {
                fill(mysql, &mut self.text, template, values);
                // SAFETY: `self.mysql` is open and of this thread.
                return unsafe { run_text(mysql, &self.text, rows) };
            }
            Body::Text => {
                fill(mysql, &mut self.text, &Template::new(sql, params), values);
                // SAFETY: as above.
                return unsafe { run_text(mysql, &self.text, rows) };
            }
            Body::Named(named) => {
                if let Some(set) = &named.set {
                    fill(mysql, &mut self.text, set, values);
                    // SAFETY: as above.
                    unsafe { run_text(mysql, &self.text, None) }?;
                }
                self.calls.executes += 1;
                // SAFETY: as above.
                return unsafe { run_text(mysql, named.execute.as_bytes(), rows) };
            }
            Body::Cached => {
                let cache = self.cache.as_mut();
                run_cached(
                    mysql,
                    &mut self.calls,
                    cache,
                    (position, sql, params),
                    values,
                    rows.as_deref_mut(),
                )
            }
            Body::Uncached => {
                run_uncached(mysql, &mut self.calls, (sql, params), values, rows.as_deref_mut())
            }
            Body::Lost => Err(local_failure("the statement is not prepared on this connection")),
        };
        match result {
            Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
                self.statements[position].body = Body::Template(Template::new(sql, params));
                self.run(position, values, rows)
            }
            result => result,
        }
    }

    /// Closes the statements, then the connection. On one that was lost no statement is closed: the server did that.
    fn close(&mut self) {
        for statement in &mut self.statements {
            if let Body::Server(statement) = mem::replace(&mut statement.body, Body::Lost) {
                self.calls.closes += u64::from(statement.close());
            }
        }
        while let Some((_, statement)) = self.cache.as_mut().and_then(LruCache::pop_lru) {
            self.calls.closes += u64::from(statement.close());
        }
        // SAFETY: the handle is closed once (it is null afterwards, which mysql_close takes), after its statements.
        unsafe { sys::mysql_close(self.mysql) };
        self.mysql = ptr::null_mut();
    }
}

impl Connection for MysqlConnection {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        let position = self.statements.len();
        let body = self.make(position, sql, params);
        let body = body.map_err(|failure| self.classify(failure))?;
        self.statements.push(Statement {
            sql: sql.to_owned(),
            params: params.into(),
            body,
        });
        Ok(StatementId(position))
    }

    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError> {
        self.run(statement.0, values, None)
            .map_err(|failure| self.classify(failure))
    }

    fn fetch(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: &mut Vec<Row>,
    ) -> Result<Effect, DbError> {
        self.run(statement.0, values, Some(rows))
            .map_err(|failure| self.classify(failure))
    }

    fn query(&mut self, sql: &[u8]) -> Result<Effect, DbError> {
        // SAFETY: the handle is that of an open connection of this thread.
        let effect = self
            .live()
            .and_then(|mysql| unsafe { run_text(mysql, sql, None) });
        effect.map_err(|failure| self.classify(failure))
    }

    fn on_connect(&mut self, sql: &str) -> Result<(), DbError> {
        self.query(sql.as_bytes())?;
        self.on_connect.push(sql.to_owned());
        Ok(())
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        let mut rows = Vec::new();
        let run = |mysql| {
            // SAFETY: the handle is that of an open connection of this thread.
            unsafe { run_text(mysql, sql.as_bytes(), Some(&mut rows)) }
        };
        let read = self.live().and_then(run);
        read.map_err(|failure| self.classify(failure))?;
        Ok(rows)
    }

    fn reconnect(&mut self) -> Result<(), DbError> {
        self.close();
        self.mysql = open(&self.driver.account, self.number, self.with_database)
            .map_err(|failure| self.classify(failure))?;
        for sql in self.on_connect.clone() {
            self.query(sql.as_bytes())?;
        }
        for position in 0..self.statements.len() {
            let statement = &mut self.statements[position];
            let (sql, params) = (mem::take(&mut statement.sql), mem::take(&mut statement.params));
            let body = self.make(position, &sql, &params);
            self.statements[position] = Statement {
                sql,
                params,
                body: Body::Lost,
            };
            self.statements[position].body = body.map_err(|failure| self.classify(failure))?;
        }
        Ok(())
    }

    fn reconnects(&self) -> Reconnects {
        self.driver.reconnects
    }

    fn text_of(&self, statement: StatementId) -> Option<String> {
        let found = self.statements.get(statement.0);
        found.map(|statement| statement.sql.chars().take(TEXT_SHOWN).collect())
    }

    fn socket(&self) -> Option<RawFd> {
        // SAFETY: the handle is null or connected, and only this thread opens and closes it.
        unsafe { self.mysql.as_ref() }.map(|mysql| mysql.net.fd)
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl Drop for MysqlConnection {
    fn drop(&mut self) {
        self.close();
    }
}

/// Prepares a statement on the server and counts it.
fn prepare(
    mysql: *mut sys::MYSQL,
    calls: &mut Calls,
    sql: &str,
    params: &[ParamType],
) -> Result<ServerStatement, Failure> {
    calls.prepares += 1;
    // SAFETY: the connection is open, of this thread, and closed only after its statements.
    unsafe { ServerStatement::prepare(mysql, sql, params) }
}

/// Runs a statement of the cache; one that is not in it is prepared and takes the place of the least recently used.
fn run_cached(
    mysql: *mut sys::MYSQL,
    calls: &mut Calls,
    cache: Option<&mut LruCache<usize, ServerStatement>>,
    (position, sql, params): (usize, &str, &[ParamType]),
    values: &[Value<'_>],
    rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    let Some(cache) = cache else {
        return run_uncached(mysql, calls, (sql, params), values, rows);
    };
    if let Some(statement) = cache.get(&position) {
        calls.executes += 1;
        return statement.run(values, rows);
    }
    let statement = prepare(mysql, calls, sql, params)?;
    calls.executes += 1;
    let effect = statement.run(values, rows);
    if let Some((_, evicted)) = cache.push(position, statement) {
        calls.closes += u64::from(evicted.close());
    }
    effect
}

/// Prepares, runs and closes a statement.
fn run_uncached(
    mysql: *mut sys::MYSQL,
    calls: &mut Calls,
    (sql, params): (&str, &[ParamType]),
    values: &[Value<'_>],
    rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    let statement = prepare(mysql, calls, sql, params)?;
    calls.executes += 1;
    let effect = statement.run(values, rows);
    calls.closes += u64::from(statement.close());
    effect
}

/// Writes the statement into `text`.
fn fill(mysql: *mut sys::MYSQL, text: &mut Vec<u8>, template: &Template, values: &[Value<'_>]) {
    // SAFETY: the connection is open.
    template.fill(text, values, |text, bytes| unsafe { escape(mysql, text, bytes) });
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
