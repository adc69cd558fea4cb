//! Keeps the statements of a connection and prepares, runs and closes them as the protocol
//! requires.

use std::mem;

use lru::LruCache;

use super::Effect;
use super::ParamType;
use super::StatementId;
use super::Value;
use super::failure::Failure;
use super::failure::client_failure;
use super::library::LibraryConnection;
use super::protocol::Mode;
use super::protocol::Protocol;
use super::protocol::ProtocolCalls;
use super::statement::ServerStatement;
use super::template::Template;

/// ER_UNSUPPORTED_PS: the server cannot prepare this kind of statement.
const ER_UNSUPPORTED_PS: u32 = 1295;
/// Longest text of a statement in an error, in characters.
const TEXT_SHOWN: usize = 80;

/// The stored form of a statement.
enum StatementForm {
    /// The text; parsed for each call.
    Text,
    /// The text, parsed once.
    Template(Template),
    /// A server-side handle.
    Server(ServerStatement),
    /// A server-side handle in the cache, or prepared when it is needed.
    Cached,
    /// Prepared by the text PREPARE.
    SqlPrepareTexts(SqlPrepareTexts),
    /// Closed with its connection; [`Statements::prepare_again`] makes it again.
    Lost,
}

struct Statement {
    sql: String,
    params: Box<[ParamType]>,
    form: StatementForm,
}

/// The statements of one connection.
pub struct Statements {
    mode: Mode,
    statements: Vec<Statement>,
    /// Handles by position of their statement, and how many are kept: none without a cache.
    cache: LruCache<usize, ServerStatement>,
    cache_size: usize,
    /// Number of calls that prepared, ran and closed statements.
    pub calls: ProtocolCalls,
}

impl Statements {
    /// Without statements.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            statements: Vec::new(),
            cache: LruCache::unbounded(),
            cache_size: match mode.protocol {
                Protocol::PsUncached => 0,
                _ => mode.cache_size,
            },
            calls: ProtocolCalls::default(),
        }
    }

    /// The start of a statement's text, for errors.
    pub fn text_of(&self, statement: StatementId) -> Option<String> {
        let statement = self.statements.get(statement.0);
        statement.map(|statement| statement.sql.chars().take(TEXT_SHOWN).collect())
    }

    /// Adds a statement in the form that the protocol requires.
    pub fn prepare(
        &mut self,
        library: &mut LibraryConnection,
        sql: &str,
        params: &[ParamType],
    ) -> Result<StatementId, Failure> {
        let position = self.statements.len();
        let form = start(&self.mode, library, &mut self.calls, (position, sql, params))?;
        self.statements.push(Statement {
            sql: sql.to_owned(),
            params: params.into(),
            form,
        });
        Ok(StatementId(position))
    }

    /// Makes all statements again on a new connection, under the same ids.
    pub fn prepare_again(&mut self, library: &mut LibraryConnection) -> Result<(), Failure> {
        for (position, Statement { sql, params, form }) in self.statements.iter_mut().enumerate() {
            *form = StatementForm::Lost;
            *form = start(&self.mode, library, &mut self.calls, (position, sql, params))?;
        }
        Ok(())
    }

    /// Runs a statement.
    pub fn run(
        &mut self,
        library: &mut LibraryConnection,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<Effect, Failure> {
        let position = statement.0;
        let Statement { sql, params, form } = self.statements.get_mut(position).ok_or_else(not_prepared)?;
        let calls = &mut self.calls;
        let result = match form {
            StatementForm::Server(handle) => {
                calls.executes += 1;
                return handle.run(values);
            }
            StatementForm::Template(template) => return library.fill(template, values),
            StatementForm::Text => return library.fill(&Template::new(sql, params), values),
            StatementForm::SqlPrepareTexts(named) => {
                if let Some(set) = &named.set {
                    library.fill(set, values)?;
                }
                calls.executes += 1;
                return library.query(named.execute.as_bytes(), None);
            }
            StatementForm::Cached => match self.cache.get(&position) {
                Some(handle) => {
                    calls.executes += 1;
                    return handle.run(values);
                }
                None => library.prepare(calls, sql, params).and_then(|handle| {
                    calls.executes += 1;
                    let effect = handle.run(values);
                    self.cache.push(position, handle);
                    // Closes the least recently used one.
                    if self.cache.len() > self.cache_size
                        && let Some((_, evicted)) = self.cache.pop_lru()
                    {
                        close(calls, evicted);
                    }
                    effect
                }),
            },
            StatementForm::Lost => Err(not_prepared()),
        };
        match result {
            Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
                *form = StatementForm::Template(Template::new(sql, params));
                self.run(library, statement, values)
            }
            result => result,
        }
    }

    /// Closes all handles.
    pub fn close(&mut self) {
        for statement in &mut self.statements {
            if let StatementForm::Server(handle) = mem::replace(&mut statement.form, StatementForm::Lost) {
                close(&mut self.calls, handle);
            }
        }
        while let Some((_, handle)) = self.cache.pop_lru() {
            close(&mut self.calls, handle);
        }
    }
}

fn not_prepared() -> Failure {
    client_failure("the statement is not prepared on this connection")
}

/// The initial form of the statement at this position.
fn start(
    mode: &Mode,
    library: &mut LibraryConnection,
    calls: &mut ProtocolCalls,
    (position, sql, params): (usize, &str, &[ParamType]),
) -> Result<StatementForm, Failure> {
    let form = match mode.protocol {
        Protocol::Text => Ok(StatementForm::Text),
        Protocol::Emulated => Ok(StatementForm::Template(Template::new(sql, params))),
        Protocol::Ps => library.prepare(calls, sql, params).map(StatementForm::Server),
        Protocol::PsCached if sql.len() > mode.cache_sql_limit => Ok(StatementForm::Text),
        Protocol::PsCached | Protocol::PsUncached => Ok(StatementForm::Cached),
        Protocol::SqlPrepare => {
            calls.prepares += 1;
            let text = SqlPrepareTexts::prepare(position, sql.len());
            library
                .fill(&text, &[Value::Bytes(sql.as_bytes())])
                .map(|_| StatementForm::SqlPrepareTexts(SqlPrepareTexts::new(position, params)))
        }
    };
    match form {
        Err(failure) if failure.errno == ER_UNSUPPORTED_PS => {
            Ok(StatementForm::Template(Template::new(sql, params)))
        }
        form => form,
    }
}

/// Closes a statement. On a lost connection the server has closed it, and the call is not counted.
fn close(calls: &mut ProtocolCalls, statement: ServerStatement) {
    calls.closes += u64::from(statement.close());
}

/// The texts that run one named statement.
#[derive(Debug)]
struct SqlPrepareTexts {
    /// `SET @lp0=?, …`; `None` for a statement without parameters.
    set: Option<Template>,
    /// `EXECUTE … USING @lp0, …`.
    execute: String,
}

impl SqlPrepareTexts {
    /// The text that prepares statement `number`, with `?` for the statement itself.
    fn prepare(number: usize, length: usize) -> Template {
        Template::new(&format!("PREPARE lp{number} FROM ?"), &[ParamType::Char(length)])
    }

    /// The texts that run statement `number`.
    fn new(number: usize, params: &[ParamType]) -> Self {
        let mut set = "SET".to_owned();
        let mut execute = format!("EXECUTE lp{number}");
        for position in 0..params.len() {
            let (comma, using) = if position == 0 { ("", " USING") } else { (",", ",") };
            set += &format!("{comma} @lp{position}=?");
            execute += &format!("{using} @lp{position}");
        }
        Self {
            set: (!params.is_empty()).then(|| Template::new(&set, params)),
            execute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_through_user_variables() {
        let named = SqlPrepareTexts::new(3, &[ParamType::Int, ParamType::Char(5)]);
        assert_eq!(named.execute, "EXECUTE lp3 USING @lp0, @lp1");
        let mut text = Vec::new();
        let values = [Value::Int(7), Value::Bytes(b"word")];
        named
            .set
            .unwrap()
            .fill(&mut text, &values, |text, bytes| text.extend_from_slice(bytes));
        assert_eq!(text, b"SET @lp0=7, @lp1='word'");
        assert!(SqlPrepareTexts::new(0, &[]).set.is_none());
    }
}
