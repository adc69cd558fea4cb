//! The statements of a connection by protocol: what is kept of each, when it is prepared, run and closed.
//! The same whether libmysqlclient speaks to the server or a task does; where they differ is [`Link`].

use std::mem;
use std::num::NonZeroUsize;

use lru::LruCache;

use super::Effect;
use super::Failure;
use super::ParamType;
use super::Row;
use super::StatementId;
use super::Value;
use super::mysql::local_failure;
use super::named::Named;
use super::protocol::Calls;
use super::protocol::Mode;
use super::protocol::Protocol;
use super::template::Template;

/// ER_UNSUPPORTED_PS: the server cannot prepare this kind of statement.
const ER_UNSUPPORTED_PS: u32 = 1295;
/// Characters of a statement in an error.
const TEXT_SHOWN: usize = 80;

/// The way to the server, open.
pub trait Link {
    /// A statement that the server has prepared.
    type Handle;

    /// Runs a text and reads all its result sets, into `rows` where they are wanted.
    fn query(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, Failure>;

    /// Runs the text of a template.
    fn fill(
        &mut self,
        template: &Template,
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure>;

    /// Prepares a statement on the server.
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Self::Handle, Failure>;

    /// Runs a prepared statement.
    fn execute(
        &mut self,
        handle: &mut Self::Handle,
        params: &[ParamType],
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure>;

    /// Closes a prepared statement, and counts it if the server was told.
    fn close(&mut self, calls: &mut Calls, handle: Self::Handle) -> Result<(), Failure>;
}

/// What is kept of a statement.
enum Body<H> {
    /// The text itself; cut at its holes for each call.
    Text,
    /// The text, cut once.
    Template(Template),
    /// A handle of the server.
    Server(H),
    /// A handle of the server in the cache, or made when it is needed.
    Cached,
    /// A handle made and closed for each call.
    Uncached,
    /// Prepared by the text PREPARE.
    Named(Named),
    /// Lost with its connection; made again by [`Statements::prepare_again`].
    Lost,
}

struct Statement<H> {
    sql: String,
    params: Box<[ParamType]>,
    body: Body<H>,
}

/// The statements of one connection.
pub struct Statements<L: Link> {
    mode: Mode,
    kept: Vec<Statement<L::Handle>>,
    /// Handles by the position of their statement.
    cache: Option<LruCache<usize, L::Handle>>,
    /// What was sent to prepare, run and close them.
    pub calls: Calls,
}

impl<L: Link> Statements<L> {
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
    pub fn prepare(&mut self, link: &mut L, sql: &str, params: &[ParamType]) -> Result<StatementId, Failure> {
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
    pub fn prepare_again(&mut self, link: &mut L) -> Result<(), Failure> {
        for (position, Statement { sql, params, body }) in self.kept.iter_mut().enumerate() {
            *body = Body::Lost;
            *body = start(&self.mode, link, &mut self.calls, (position, sql, params))?;
        }
        Ok(())
    }

    /// Runs a statement.
    pub fn run(
        &mut self,
        link: &mut L,
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
                return link.execute(handle, params, values, rows);
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
    pub fn close(&mut self, link: &mut L) {
        for statement in &mut self.kept {
            if let Body::Server(handle) = mem::replace(&mut statement.body, Body::Lost) {
                // The connection ends anyway.
                link.close(&mut self.calls, handle).ok();
            }
        }
        while let Some((_, handle)) = self.cache.as_mut().and_then(LruCache::pop_lru) {
            link.close(&mut self.calls, handle).ok();
        }
    }

    /// Forgets all handles: they end with their link.
    pub fn lose(&mut self) {
        self.kept
            .iter_mut()
            .for_each(|statement| statement.body = Body::Lost);
        if let Some(cache) = &mut self.cache {
            cache.clear();
        }
    }
}

fn not_prepared() -> Failure {
    local_failure("the statement is not prepared on this connection")
}

/// What is kept of the statement at this position from the start.
fn start<L: Link>(
    mode: &Mode,
    link: &mut L,
    calls: &mut Calls,
    (position, sql, params): (usize, &str, &[ParamType]),
) -> Result<Body<L::Handle>, Failure> {
    let made = match mode.protocol {
        Protocol::Text => Ok(Body::Text),
        Protocol::Emulated => Ok(Body::Template(Template::new(sql, params))),
        Protocol::Ps => prepare(link, calls, sql, params).map(Body::Server),
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

fn prepare<L: Link>(
    link: &mut L,
    calls: &mut Calls,
    sql: &str,
    params: &[ParamType],
) -> Result<L::Handle, Failure> {
    calls.prepares += 1;
    link.prepare(sql, params)
}

/// Runs a statement of the cache; one that is not in it is prepared and takes the place of the least recently used.
fn cached<L: Link>(
    link: &mut L,
    calls: &mut Calls,
    cache: Option<&mut LruCache<usize, L::Handle>>,
    (position, sql, params): (usize, &str, &[ParamType]),
    values: &[Value<'_>],
    rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    let Some(cache) = cache else {
        return uncached(link, calls, (sql, params), values, rows);
    };
    if let Some(handle) = cache.get_mut(&position) {
        calls.executes += 1;
        return link.execute(handle, params, values, rows);
    }
    let mut handle = prepare(link, calls, sql, params)?;
    calls.executes += 1;
    let effect = link.execute(&mut handle, params, values, rows);
    let evicted = cache.push(position, handle);
    let closed = evicted.map_or(Ok(()), |(_, evicted)| link.close(calls, evicted));
    effect.and_then(|effect| closed.map(|()| effect))
}

/// Prepares, runs and closes a statement.
fn uncached<L: Link>(
    link: &mut L,
    calls: &mut Calls,
    (sql, params): (&str, &[ParamType]),
    values: &[Value<'_>],
    rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    let mut handle = prepare(link, calls, sql, params)?;
    calls.executes += 1;
    let effect = link.execute(&mut handle, params, values, rows);
    let closed = link.close(calls, handle);
    effect.and_then(|effect| closed.map(|()| effect))
}
