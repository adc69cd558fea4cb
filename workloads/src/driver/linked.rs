//! A connection of either kind: its link to the server, its statements, and how both are had again after a loss.

use std::os::fd::RawFd;

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
use super::mysql::local_failure;
use super::protocol::Calls;
use super::statements::Link;
use super::statements::Statements;

/// A link that can be opened.
pub trait Login: Link + Sized {
    /// Handles belong to the link and are closed one by one before it; else they end with it.
    const CLOSES_HANDLES: bool;

    /// Logs in to address `number`.
    fn open(driver: &MysqlDriver, number: usize, with_database: bool) -> Result<Self, Failure>;

    /// Its socket.
    fn descriptor(&self) -> RawFd;
}

/// A connection over links of one kind.
pub struct Linked<L: Login> {
    driver: MysqlDriver,
    /// Which of the addresses.
    number: usize,
    with_database: bool,
    statements: Statements<L>,
    on_connect: Vec<String>,
    /// None when it could not be opened again.
    link: Option<L>,
}

impl<L: Login> Linked<L> {
    /// Logs in.
    ///
    /// # Errors
    /// Of the link; fatal, whatever their number.
    pub fn open(driver: &MysqlDriver, number: usize, with_database: bool) -> Result<Self, DbError> {
        Ok(Self {
            driver: driver.clone(),
            number,
            with_database,
            statements: Statements::new(driver.mode),
            on_connect: Vec::new(),
            link: Some(L::open(driver, number, with_database).map_err(DbError::Fatal)?),
        })
    }

    fn run(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, DbError> {
        let result = match &mut self.link {
            Some(link) => self.statements.run(link, statement, values, rows),
            None => Err(closed()),
        };
        result.map_err(|failure| self.driver.classify(failure))
    }

    fn text(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, DbError> {
        let result = match &mut self.link {
            Some(link) => link.query(sql, rows),
            None => Err(closed()),
        };
        result.map_err(|failure| self.driver.classify(failure))
    }

    fn close(&mut self) {
        match self.link.take() {
            Some(mut link) if L::CLOSES_HANDLES => self.statements.close(&mut link),
            _ => self.statements.lose(),
        }
    }

    fn open_again(&mut self) -> Result<(), Failure> {
        self.link = Some(L::open(&self.driver, self.number, self.with_database)?);
        Ok(())
    }

    fn prepare_again(&mut self) -> Result<(), Failure> {
        let link = self.link.as_mut().ok_or_else(closed)?;
        self.statements.prepare_again(link)
    }
}

fn closed() -> Failure {
    local_failure("the connection is closed")
}

impl<L: Login> Connection for Linked<L> {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        let result = match &mut self.link {
            Some(link) => self.statements.prepare(link, sql, params),
            None => Err(closed()),
        };
        result.map_err(|failure| self.driver.classify(failure))
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
        self.close();
        self.open_again()
            .map_err(|failure| self.driver.classify(failure))?;
        for sql in self.on_connect.clone() {
            self.query(sql.as_bytes())?;
        }
        self.prepare_again()
            .map_err(|failure| self.driver.classify(failure))
    }

    fn reconnects(&self) -> Reconnects {
        self.driver.reconnects
    }

    fn text_of(&self, statement: StatementId) -> Option<String> {
        self.statements.text_of(statement)
    }

    fn socket(&self) -> Option<RawFd> {
        self.link.as_ref().map(L::descriptor)
    }

    fn calls(&self) -> Calls {
        self.statements.calls
    }
}

impl<L: Login> Drop for Linked<L> {
    fn drop(&mut self) {
        self.close();
    }
}
