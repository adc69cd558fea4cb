//! A connection with its statements and its limits; reopens both after the connection is lost.

use std::ptr;
use std::time::Duration;

use super::Connection;
use super::DbError;
use super::Effect;
use super::Failure;
use super::ParamType;
use super::Reconnects;
use super::Row;
use super::StatementId;
use super::Value;
use super::library::LibraryConnection;
use super::mysql::MysqlDriver;
use super::mysql::local_failure;
use super::protocol::Calls;
use super::statements::Statements;
use super::watchdog::Cut;
use super::watchdog::Watched;

/// First words of statements that work on whole tables, however long that takes.
const WITHOUT_LIMIT: [&[u8]; 8] = [
    b"ALTER",
    b"ANALYZE",
    b"CHECK",
    b"CREATE",
    b"DROP",
    b"OPTIMIZE",
    b"REPAIR",
    b"TRUNCATE",
];
/// Characters of a statement in an error.
const TEXT_SHOWN: usize = 80;

/// What a connection asks of the server.
#[derive(Clone, Copy)]
enum Call<'a> {
    Login,
    /// A statement; its text, or nothing where the caller names it.
    Statement(&'a [u8]),
}

/// A connection to one address of the account.
pub struct MysqlConnection {
    driver: MysqlDriver,
    /// Which of the addresses.
    number: usize,
    with_database: bool,
    statements: Statements,
    on_connect: Vec<String>,
    watched: Watched,
    /// None when it could not be opened again.
    link: Option<LibraryConnection>,
}

impl MysqlConnection {
    /// Logs in.
    ///
    /// # Errors
    /// Of the link; fatal, whatever their number.
    pub fn open(driver: &MysqlDriver, number: usize, with_database: bool) -> Result<Self, DbError> {
        let mut connection = Self {
            driver: driver.clone(),
            number,
            with_database,
            statements: Statements::new(driver.mode),
            on_connect: Vec::new(),
            watched: driver.watchdog.watch(),
            link: None,
        };
        connection.open_again().map_err(DbError::Fatal)?;
        Ok(connection)
    }

    fn run(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, DbError> {
        let result = match &mut self.link {
            Some(link) => self
                .watched
                .call(|| self.statements.run(link, statement, values, rows)),
            None => Err(closed()),
        };
        // The caller names the statement.
        result.map_err(|failure| self.failed(failure, Call::Statement(b"")))
    }

    fn text(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, DbError> {
        let unlimited = WITHOUT_LIMIT.iter().any(|word| sql.starts_with(word));
        if unlimited {
            self.watched.set_limit(None);
        }
        let result = match &mut self.link {
            Some(link) => self.watched.call(|| link.query(sql, rows)),
            None => Err(closed()),
        };
        if unlimited {
            self.watched.set_limit(self.driver.read_timeout);
        }
        result.map_err(|failure| self.failed(failure, Call::Statement(sql)))
    }

    fn close(&mut self) {
        let link = self.link.take();
        self.watched.call(|| {
            if let Some(link) = link {
                self.statements.close();
                self.watched.set_handle(ptr::null_mut());
                drop(link);
            }
        });
    }

    /// Logs in, under the limit of a login.
    fn open_again(&mut self) -> Result<(), Failure> {
        let limit = Duration::from_secs(self.driver.account.answer_seconds.into());
        self.watched.set_limit(Some(limit));
        let open = || LibraryConnection::open(&self.driver, self.number, self.with_database, &self.watched);
        let opened = self.watched.call(open);
        self.watched.set_limit(self.driver.read_timeout);
        self.link = Some(opened.map_err(|failure| self.explained(failure, Call::Login))?);
        Ok(())
    }

    fn prepare_again(&mut self) -> Result<(), Failure> {
        let link = self.link.as_mut().ok_or_else(closed)?;
        self.watched.call(|| self.statements.prepare_again(link))
    }

    fn failed(&self, failure: Failure, call: Call<'_>) -> DbError {
        self.driver.classify(self.explained(failure, call))
    }

    /// A failure of a call; of one that the watchdog ended, with the limit that it exceeded.
    #[cold]
    fn explained(&self, failure: Failure, call: Call<'_>) -> Failure {
        let Some(cut) = self.watched.take_cut() else {
            return failure;
        };
        let login = self.driver.account.answer_seconds;
        let (place, option, seconds) = match call {
            Call::Login => (" to the login".to_owned(), "--thread-init-timeout", login.into()),
            Call::Statement(text) => {
                let text = String::from_utf8_lossy(text);
                let shown: String = text.chars().take(TEXT_SHOWN).collect();
                let place = if shown.is_empty() {
                    shown
                } else {
                    format!(" to `{shown}`")
                };
                let limit = self.driver.read_timeout.unwrap_or_default();
                (place, "--mysql-read-timeout", limit.as_secs_f64())
            }
        };
        let (errno, message) = match cut {
            Cut::Time => (
                CR_SERVER_LOST,
                format!("no complete answer{place} for {seconds} s ({option})"),
            ),
            Cut::Memory => (
                CR_OUT_OF_MEMORY,
                format!("more than 1 GiB of memory is in use while the answer{place} is read"),
            ),
            Cut::End => (
                CR_SERVER_LOST,
                format!("the connection was closed before there was an answer{place}"),
            ),
        };
        Failure {
            errno,
            sqlstate: "HY000".to_owned(),
            message,
        }
    }
}

/// CR_OUT_OF_MEMORY and CR_SERVER_LOST of errmsg.h: what the library reports in the same place.
const CR_OUT_OF_MEMORY: u32 = 2008;
const CR_SERVER_LOST: u32 = 2013;

fn closed() -> Failure {
    local_failure("the connection is closed")
}

impl Connection for MysqlConnection {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        let result = match &mut self.link {
            Some(link) => self.watched.call(|| self.statements.prepare(link, sql, params)),
            None => Err(closed()),
        };
        result.map_err(|failure| self.failed(failure, Call::Statement(sql.as_bytes())))
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
            .map_err(|failure| self.failed(failure, Call::Statement(b"PREPARE")))
    }

    fn reconnects(&self) -> Reconnects {
        self.driver.reconnects
    }

    fn text_of(&self, statement: StatementId) -> Option<String> {
        self.statements.text_of(statement)
    }

    fn calls(&self) -> Calls {
        self.statements.calls
    }
}

impl Drop for MysqlConnection {
    fn drop(&mut self) {
        self.close();
    }
}
