//! The statements of a connection by protocol: what is kept of each, when it is prepared, run and closed.

use std::mem;
use std::num::NonZeroUsize;

use lru::LruCache;

use super::Effect;
use super::Failure;
use super::ParamType;
use super::Row;
use super::StatementId;
use super::Value;
use super::library::LibraryConnection;
use super::mysql::local_failure;
use super::named::Named;
use super::protocol::Calls;
use super::protocol::Mode;
use super::protocol::Protocol;
use super::statement::ServerStatement;
use super::template::Template;

/// ER_UNSUPPORTED_PS: the server cannot prepare this kind of statement.
const ER_UNSUPPORTED_PS: u32 = 1295;
/// Characters of a statement in an error.
const TEXT_SHOWN: usize = 80;

/// What is kept of a statement.
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
    /// Lost with its connection; made again by [`Statements::prepare_again`].
    Lost,
}

struct Statement {
    sql: String,
    params: Box<[ParamType]>,
    body: Body,
}

/// The statements of one connection.
pub struct Statements {
    mode: Mode,
    kept: Vec<Statement>,
    /// Handles by the position of their statement.
    cache: Option<LruCache<usize, ServerStatement>>,
    /// What was sent to prepare, run and close them.
    pub calls: Calls,
}

impl Statements {
    /// None yet.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            kept: Vec::new(),
            cache: NonZeroUsize::new(mode.cache_size).map(LruCache::new),
            calls: Calls::default(),
        }
    }

    /// The beginning of a statement's text, for errors.
    pub fn text_of(&self, statement: StatementId) -> Option<String> {
        let found = self.kept.get(statement.0);
        found.map(|statement| statement.sql.chars().take(TEXT_SHOWN).collect())
    }

    /// Makes a statement as the protocol wants it at the start.
    pub fn prepare(
        &mut self,
        link: &mut LibraryConnection,
        sql: &str,
        params: &[ParamType],
    ) -> Result<StatementId, Failure> {
        let position = self.kept.len();
        let body = start(&self.mode, link, &mut self.calls, (position, sql, params))?;
        self.kept.push(Statement {
            sql: sql.to_owned(),
            params: params.into(),
            body,
        });
        Ok(StatementId(position))
    }

    /// Makes all statements again on a new link, under the same ids.
    pub fn prepare_again(&mut self, link: &mut LibraryConnection) -> Result<(), Failure> {
        for (position, Statement { sql, params, body }) in self.kept.iter_mut().enumerate() {
            *body = Body::Lost;
            *body = start(&self.mode, link, &mut self.calls, (position, sql, params))?;
        }
        Ok(())
    }

    /// Runs a statement.
    pub fn run(
        &mut self,
        link: &mut LibraryConnection,
        statement: StatementId,
        values: &[Value<'_>],
        mut rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        let position = statement.0;
        let Statement { sql, params, body } = self.kept.get_mut(position).ok_or_else(not_prepared)?;
        let calls = &mut self.calls;
        let result = match body {
            Body::Server(handle) => {
                calls.executes += 1;
                return handle.run(values, rows);
            }
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
                let statement = (position, sql.as_str(), &**params);
                cached(
                    link,
                    calls,
                    self.cache.as_mut(),
                    statement,
                    values,
                    rows.as_deref_mut(),
                )
            }
            Body::Uncached => uncached(link, calls, (sql, params), values, rows.as_deref_mut()),
            Body::Lost => Err(not_prepared()),
        };
        match result {
            Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
                *body = Body::Template(Template::new(sql, params));
                self.run(link, statement, values, rows)
            }
            result => result,
        }
    }

    /// Closes all handles.
    pub fn close(&mut self) {
        for statement in &mut self.kept {
            if let Body::Server(handle) = mem::replace(&mut statement.body, Body::Lost) {
                close(&mut self.calls, handle);
            }
        }
        while let Some((_, handle)) = self.cache.as_mut().and_then(LruCache::pop_lru) {
            close(&mut self.calls, handle);
        }
    }
}

fn not_prepared() -> Failure {
    local_failure("the statement is not prepared on this connection")
}

/// What is kept of the statement at this position from the start.
fn start(
    mode: &Mode,
    link: &mut LibraryConnection,
    calls: &mut Calls,
    (position, sql, params): (usize, &str, &[ParamType]),
) -> Result<Body, Failure> {
    let made = match mode.protocol {
        Protocol::Text => Ok(Body::Text),
        Protocol::Emulated => Ok(Body::Template(Template::new(sql, params))),
        Protocol::Ps => link.prepare(calls, sql, params).map(Body::Server),
        Protocol::PsCached if sql.len() > mode.cache_sql_limit => Ok(Body::Text),
        Protocol::PsCached => Ok(Body::Cached),
        Protocol::PsUncached => Ok(Body::Uncached),
        Protocol::SqlPrepare => {
            calls.prepares += 1;
            let text = Named::prepare(position, sql.len());
            link.fill(&text, &[Value::Bytes(sql.as_bytes())], None)
                .map(|_| Body::Named(Named::new(position, params)))
        }
    };
    match made {
        Err(failure) if failure.errno == ER_UNSUPPORTED_PS => Ok(Body::Template(Template::new(sql, params))),
        made => made,
    }
}

/// Runs a statement of the cache; one that is not in it is prepared and takes the place of the least recently used.
fn cached(
    link: &mut LibraryConnection,
    calls: &mut Calls,
    cache: Option<&mut LruCache<usize, ServerStatement>>,
    (position, sql, params): (usize, &str, &[ParamType]),
    values: &[Value<'_>],
    rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    let Some(cache) = cache else {
        return uncached(link, calls, (sql, params), values, rows);
    };
    if let Some(handle) = cache.get_mut(&position) {
        calls.executes += 1;
        return handle.run(values, rows);
    }
    let handle = link.prepare(calls, sql, params)?;
    calls.executes += 1;
    let effect = handle.run(values, rows);
    let evicted = cache.push(position, handle);
    if let Some((_, evicted)) = evicted {
        close(calls, evicted);
    }
    effect
}

/// Prepares, runs and closes a statement.
fn uncached(
    link: &mut LibraryConnection,
    calls: &mut Calls,
    (sql, params): (&str, &[ParamType]),
    values: &[Value<'_>],
    rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    let handle = link.prepare(calls, sql, params)?;
    calls.executes += 1;
    let effect = handle.run(values, rows);
    close(calls, handle);
    effect
}

/// Closes a statement. On a lost connection the server has closed it, and the call is not counted.
fn close(calls: &mut Calls, statement: ServerStatement) {
    calls.closes += u64::from(statement.close());
}
