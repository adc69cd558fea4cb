//! Implements the driver of the unit tests: it logs each statement as text and derives the effect
//! from the statement's first word.

use std::sync::Arc;
use std::sync::Mutex;

use super::Connection;
use super::DbError;
use super::Driver;
use super::Effect;
use super::Failure;
use super::ParamType;
use super::Row;
use super::StatementId;
use super::Value;
use super::template::Template;

/// Number of the connection and statement, in the order of arrival.
pub type Log = Arc<Mutex<Vec<(usize, String)>>>;

/// Opens numbered connections that write to one log.
#[derive(Debug, Default)]
pub struct DryRun {
    /// The statements.
    pub log: Log,
    /// The first N `COMMIT`s fail with error 1213.
    pub deadlocks: Arc<Mutex<usize>>,
    /// Number of connections opened.
    pub opened: Mutex<usize>,
}

impl Driver for DryRun {
    fn connect_nth(&self, _number: usize) -> Result<Box<dyn Connection>, DbError> {
        let mut opened = self.opened.lock().unwrap();
        *opened += 1;
        Ok(Box::new(DryConnection {
            number: *opened - 1,
            log: Arc::clone(&self.log),
            deadlocks: Arc::clone(&self.deadlocks),
            statements: Vec::new(),
        }))
    }
}

struct DryConnection {
    number: usize,
    log: Log,
    deadlocks: Arc<Mutex<usize>>,
    statements: Vec<Template>,
}

impl Connection for DryConnection {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        self.statements.push(Template::new(sql, params));
        Ok(StatementId(self.statements.len() - 1))
    }

    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError> {
        let mut text = Vec::new();
        self.statements[statement.0].fill(&mut text, values, |text, bytes| text.extend_from_slice(bytes));
        self.query(&text)
    }

    fn query(&mut self, sql: &[u8]) -> Result<Effect, DbError> {
        let text = String::from_utf8_lossy(sql).into_owned();
        let word = text.split(' ').next().unwrap_or_default().to_owned();
        self.log.lock().unwrap().push((self.number, text));
        let mut deadlocks = self.deadlocks.lock().unwrap();
        if word == "COMMIT" && *deadlocks > 0 {
            *deadlocks -= 1;
            return Err(DbError::Ignorable(Failure {
                errno: 1213,
                sqlstate: "40001".to_owned(),
                message: "Deadlock found".to_owned(),
            }));
        }
        Ok(match word.as_str() {
            "SELECT" => Effect::Read,
            "INSERT" | "UPDATE" | "DELETE" => Effect::Write(1),
            _ => Effect::Other,
        })
    }

    fn on_connect(&mut self, sql: &str) -> Result<(), DbError> {
        self.query(sql.as_bytes()).map(drop)
    }

    fn rows(&mut self, _sql: &str) -> Result<Vec<Row>, DbError> {
        Ok(Vec::new())
    }

    fn reconnect(&mut self) -> Result<(), DbError> {
        Ok(())
    }
}
