//! A connection for tasks: libmysqlclient logs in, then statements go over its socket without it, so that no thread waits for a reply.
//! Takes every protocol; knows neither TLS nor compression, which live inside of the library.

use std::mem;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::os::fd::RawFd;
use std::ptr;

use lru::LruCache;
use mysqlclient_sys as sys;

use super::Connection;
use super::DbError;
use super::Effect;
use super::Failure;
use super::ParamType;
use super::Reconnects;
use super::Row;
use super::StatementId;
use super::Value;
use super::mysql::MysqlDriver;
use super::mysql::TEXT_SHOWN;
use super::mysql::local_failure;
use super::named::Named;
use super::open::attach_thread;
use super::open::open;
use super::protocol::Calls;
use super::protocol::Protocol;
use super::socket::Socket;
use super::template::Template;
use super::text::escape;
use super::wire::Dialect;
use super::wire::packet;
use super::wire::reply::Command;
use super::wire::reply::Said;
use crate::tasks;

/// ER_UNSUPPORTED_PS: the server cannot prepare this kind of statement.
const ER_UNSUPPORTED_PS: u32 = 1295;
/// Capabilities of mysql_com.h.
const CLIENT_COMPRESS: u64 = 1 << 5;
const CLIENT_DEPRECATE_EOF: u64 = 1 << 24;
const CLIENT_ZSTD_COMPRESSION_ALGORITHM: u64 = 1 << 26;
const CLIENT_QUERY_ATTRIBUTES: u64 = 1 << 27;

/// A statement that the server has prepared.
#[derive(Debug, Clone, Copy)]
struct Handle {
    number: u32,
    /// The server knows the types of the parameters.
    typed: bool,
}

/// What a connection keeps of a statement.
enum Body {
    Text,
    Template(Template),
    Server(Handle),
    Cached,
    Uncached,
    Named(Named),
    /// Lost with its connection; made again by `reconnect`.
    Lost,
}

struct Statement {
    sql: String,
    params: Box<[ParamType]>,
    body: Body,
}

/// A login of libmysqlclient and its socket.
struct Link {
    socket: Socket,
    mysql: *mut sys::MYSQL,
}

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: closed once, on the thread that opened it.
        tasks::on_thread_stack(|| unsafe { sys::mysql_close(self.mysql) });
    }
}

impl Link {
    /// Logs in. The thread waits meanwhile, with all its tasks.
    fn open(driver: &MysqlDriver, number: usize) -> Result<Self, Failure> {
        let mysql = tasks::on_thread_stack(|| {
            attach_thread();
            open(&driver.account, number, true)
        })?;
        let mut link = Unclaimed(mysql);
        // SAFETY: the handle is connected; the descriptor stays open until mysql_close, which `Link` calls last.
        let (encrypted, capabilities, version, descriptor) = unsafe {
            let capabilities = (*mysql).client_flag & (*mysql).server_capabilities;
            let version = sys::mysql_get_server_version(mysql);
            let encrypted = !sys::mysql_get_ssl_cipher(mysql).is_null();
            (
                encrypted,
                capabilities,
                version,
                BorrowedFd::borrow_raw((*mysql).net.fd),
            )
        };
        if encrypted {
            return Err(local_failure(
                "--multiplex=on has no TLS: add --mysql-ssl=disabled, or run with --multiplex=off",
            ));
        }
        if capabilities & (CLIENT_COMPRESS | CLIENT_ZSTD_COMPRESSION_ALGORITHM) != 0 {
            return Err(local_failure(
                "--multiplex=on has no compression: take `compress` and `compression-algorithms` out of the option file, or run with --multiplex=off",
            ));
        }
        let dialect = Dialect {
            deprecate_eof: capabilities & CLIENT_DEPRECATE_EOF != 0,
            attributes: capabilities & CLIENT_QUERY_ATTRIBUTES != 0,
            counts_parameters: version >= 80_026,
        };
        let socket = Socket::new(descriptor, dialect)?;
        Ok(Self {
            socket,
            mysql: mem::replace(&mut link.0, ptr::null_mut()),
        })
    }

    fn said(said: Said) -> Result<Effect, Failure> {
        match said {
            Said::Done(effect) => Ok(effect),
            Said::Failed(failure) => Err(failure),
            Said::Prepared(..) => Err(local_failure("the server prepared what it was to run")),
        }
    }

    /// Runs a text.
    fn query(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, Failure> {
        let mut buffer = tasks::take_buffer();
        packet::query(&mut buffer, self.socket.dialect(), sql);
        Self::said(self.socket.exchange(buffer, Command::Query, rows)?)
    }

    /// Runs the text of a template.
    fn fill(
        &mut self,
        template: &Template,
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        let mysql = self.mysql;
        let mut text = tasks::take_buffer();
        // SAFETY: the connection is open.
        template.fill(&mut text, values, |text, bytes| unsafe {
            escape(mysql, text, bytes)
        });
        let mut buffer = tasks::take_buffer();
        packet::query(&mut buffer, self.socket.dialect(), &text);
        tasks::give_buffer(text);
        Self::said(self.socket.exchange(buffer, Command::Query, rows)?)
    }

    fn prepare(&mut self, calls: &mut Calls, sql: &str, params: &[ParamType]) -> Result<Handle, Failure> {
        calls.prepares += 1;
        let mut buffer = tasks::take_buffer();
        packet::prepare(&mut buffer, sql.as_bytes());
        match self.socket.exchange(buffer, Command::Prepare, None)? {
            Said::Prepared(number, wanted) if usize::from(wanted) == params.len() => {
                Ok(Handle { number, typed: false })
            }
            Said::Prepared(_, wanted) => Err(local_failure(&format!(
                "the statement has {wanted} parameters, {} are declared: {sql}",
                params.len()
            ))),
            Said::Failed(failure) => Err(failure),
            Said::Done(_) => Err(local_failure("the server ran what it was to prepare")),
        }
    }

    fn execute(
        &mut self,
        calls: &mut Calls,
        handle: &mut Handle,
        params: &[ParamType],
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        calls.executes += 1;
        let mut buffer = tasks::take_buffer();
        let statement = (handle.number, params);
        let made = packet::execute(
            &mut buffer,
            self.socket.dialect(),
            statement,
            values,
            !handle.typed,
        );
        if let Err(position) = made {
            return Err(local_failure(&format!(
                "parameter {} does not fit its type {:?}",
                position + 1,
                params[position]
            )));
        }
        let effect = Self::said(self.socket.exchange(buffer, Command::Execute, rows)?);
        // A refused call may have ended before the server kept the types.
        handle.typed = effect.is_ok();
        effect
    }

    fn close(&mut self, calls: &mut Calls, handle: Handle) -> Result<(), Failure> {
        calls.closes += 1;
        let mut buffer = tasks::take_buffer();
        packet::close(&mut buffer, handle.number);
        self.socket.send(buffer)
    }
}

/// Closes a handle that no `Link` has taken.
struct Unclaimed(*mut sys::MYSQL);

impl Drop for Unclaimed {
    fn drop(&mut self) {
        // SAFETY: mysql_close takes null; else the handle is closed once.
        tasks::on_thread_stack(|| unsafe { sys::mysql_close(self.0) });
    }
}

/// The connection of one task.
pub struct Multiplexed {
    driver: MysqlDriver,
    /// Which of the addresses.
    number: usize,
    statements: Vec<Statement>,
    cache: Option<LruCache<usize, Handle>>,
    calls: Calls,
    on_connect: Vec<String>,
    /// None while it is opened again.
    link: Option<Link>,
}

impl Multiplexed {
    /// Logs in.
    ///
    /// # Errors
    /// As of any connection, and for TLS and compression.
    pub fn open(driver: &MysqlDriver, number: usize) -> Result<Self, DbError> {
        Ok(Self {
            driver: driver.clone(),
            number,
            statements: Vec::new(),
            cache: NonZeroUsize::new(driver.mode.cache_size).map(LruCache::new),
            calls: Calls::default(),
            on_connect: Vec::new(),
            link: Some(Link::open(driver, number).map_err(DbError::Fatal)?),
        })
    }

    fn classify<T>(&self, result: Result<T, Failure>) -> Result<T, DbError> {
        result.map_err(|failure| {
            if self.driver.ignored.contains(failure.errno) {
                DbError::Ignorable(failure)
            } else {
                DbError::Fatal(failure)
            }
        })
    }

    /// Makes the statement at `position` as the protocol wants it at the start.
    fn make(&mut self, position: usize, sql: &str, params: &[ParamType]) -> Result<Body, Failure> {
        let link = self.link.as_mut().ok_or_else(closed)?;
        let made = match self.driver.mode.protocol {
            Protocol::Text => Ok(Body::Text),
            Protocol::Emulated => Ok(Body::Template(Template::new(sql, params))),
            Protocol::Ps => link.prepare(&mut self.calls, sql, params).map(Body::Server),
            Protocol::PsCached if sql.len() > self.driver.mode.cache_sql_limit => Ok(Body::Text),
            Protocol::PsCached => Ok(Body::Cached),
            Protocol::PsUncached => Ok(Body::Uncached),
            Protocol::SqlPrepare => {
                self.calls.prepares += 1;
                let text = Named::prepare(position, sql.len());
                link.fill(&text, &[Value::Bytes(sql.as_bytes())], None)
                    .map(|_| Body::Named(Named::new(position, params)))
            }
        };
        match made {
            Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
                Ok(Body::Template(Template::new(sql, params)))
            }
            made => made,
        }
    }

    fn run(
        &mut self,
        position: usize,
        values: &[Value<'_>],
        mut rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        let link = self.link.as_mut().ok_or_else(closed)?;
        let Statement { sql, params, body } = self.statements.get_mut(position).ok_or_else(closed)?;
        let calls = &mut self.calls;
        let result = match body {
            Body::Server(handle) => return link.execute(calls, handle, params, values, rows),
            Body::Template(template) => return link.fill(template, values, rows),
            Body::Text => return link.fill(&Template::new(sql, params), values, rows),
            Body::Named(named) => {
                if let Some(set) = &named.set {
                    link.fill(set, values, None)?;
                }
                calls.executes += 1;
                return link.query(named.execute.as_bytes(), rows);
            }
            Body::Cached => {
                let cached = self.cache.as_mut().and_then(|cache| cache.pop(&position));
                let handle = cached.map_or_else(|| link.prepare(calls, sql, params), Ok);
                handle.and_then(|mut handle| {
                    let effect = link.execute(calls, &mut handle, params, values, rows.as_deref_mut());
                    let evicted = match &mut self.cache {
                        Some(cache) => cache.push(position, handle).map(|(_, evicted)| evicted),
                        None => Some(handle),
                    };
                    let closed = evicted.map_or(Ok(()), |evicted| link.close(calls, evicted));
                    effect.and_then(|effect| closed.map(|()| effect))
                })
            }
            Body::Uncached => link.prepare(calls, sql, params).and_then(|mut handle| {
                let effect = link.execute(calls, &mut handle, params, values, rows.as_deref_mut());
                let closed = link.close(calls, handle);
                effect.and_then(|effect| closed.map(|()| effect))
            }),
            Body::Lost => Err(closed()),
        };
        match result {
            Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
                *body = Body::Template(Template::new(sql, params));
                self.run(position, values, rows)
            }
            result => result,
        }
    }

    fn text(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, DbError> {
        let result = match &mut self.link {
            Some(link) => link.query(sql, rows),
            None => Err(closed()),
        };
        self.classify(result)
    }
}

fn closed() -> Failure {
    local_failure("the statement is not prepared on this connection")
}

impl Connection for Multiplexed {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        let position = self.statements.len();
        let body = self.make(position, sql, params);
        self.statements.push(Statement {
            sql: sql.to_owned(),
            params: params.into(),
            body: self.classify(body)?,
        });
        Ok(StatementId(position))
    }

    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError> {
        let result = self.run(statement.0, values, None);
        self.classify(result)
    }

    fn fetch(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: &mut Vec<Row>,
    ) -> Result<Effect, DbError> {
        let result = self.run(statement.0, values, Some(rows));
        self.classify(result)
    }

    fn query(&mut self, sql: &[u8]) -> Result<Effect, DbError> {
        self.text(sql, None)
    }

    fn on_connect(&mut self, sql: &str) -> Result<(), DbError> {
        self.query(sql.as_bytes())?;
        self.on_connect.push(sql.to_owned());
        Ok(())
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        let mut rows = Vec::new();
        self.text(sql.as_bytes(), Some(&mut rows))?;
        Ok(rows)
    }

    fn reconnect(&mut self) -> Result<(), DbError> {
        // Closed before the new one is opened, as the server counts both.
        self.link = None;
        if let Some(cache) = &mut self.cache {
            cache.clear();
        }
        self.link = Some(self.classify(Link::open(&self.driver, self.number))?);
        for sql in self.on_connect.clone() {
            self.query(sql.as_bytes())?;
        }
        for position in 0..self.statements.len() {
            let statement = &mut self.statements[position];
            statement.body = Body::Lost;
            let (sql, params) = (mem::take(&mut statement.sql), mem::take(&mut statement.params));
            let body = self.make(position, &sql, &params);
            let statement = &mut self.statements[position];
            (statement.sql, statement.params) = (sql, params);
            self.statements[position].body = self.classify(body)?;
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
        self.link.as_ref().map(|link| link.socket.descriptor())
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}
