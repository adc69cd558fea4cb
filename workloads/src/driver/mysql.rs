//! Implements the driver on libmysqlclient: settings, the statements and time limits of a
//! connection, and the reconnect. As in sysbench, result sets are read and discarded; only `rows`
//! keeps its rows.

use std::ptr;
use std::time::Duration;

use anyhow::anyhow;

use super::Connection;
use super::Driver;
use super::Effect;
use super::Ignored;
use super::ParamType;
use super::Row;
use super::StatementId;
use super::Value;
use super::connect::Account;
use super::failure::DbError;
use super::failure::Failure;
use super::failure::client_failure;
use super::failure::hint;
use super::library::LibraryConnection;
use super::protocol::Mode;
use super::protocol::ProtocolCalls;
use super::statements::Statements;
use super::watchdog::CutReason;
use super::watchdog::Watchdog;
use super::watchdog::WatchedConnection;

/// First words of statements that work on whole tables: no time limit applies to them.
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
/// Longest text of a statement in an error, in characters.
const TEXT_SHOWN: usize = 80;
/// CR_OUT_OF_MEMORY and CR_SERVER_LOST of errmsg.h: the errors of the library in these cases.
const CR_OUT_OF_MEMORY: u32 = 2008;
const CR_SERVER_LOST: u32 = 2013;

/// Opens connections to one server as one account.
#[derive(Debug, Clone)]
pub struct MysqlDriver {
    /// Servers and account.
    pub account: Account,
    /// How statements are sent.
    pub mode: Mode,
    /// Errors after which an event runs again.
    pub ignored: Ignored,
    /// Time limit of a statement. It does not apply to statements on whole tables, such as ALTER
    /// TABLE.
    pub read_timeout: Option<Duration>,
    /// Ends calls that exceed a limit.
    pub watchdog: Watchdog,
}

impl MysqlDriver {
    /// Classifies a failure by `ignored`.
    pub fn classify(&self, failure: Failure) -> DbError {
        if self.ignored.contains(failure.errno) {
            DbError::Ignorable(failure)
        } else {
            DbError::Fatal(failure)
        }
    }

    /// Adds the server and the hint to a database error.
    pub fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(failure) = error
            .downcast_ref::<DbError>()
            .map(|error| error.failure().clone())
        else {
            return error;
        };
        let hint = hint(failure.errno).map_or_else(String::new, |hint| format!(": {hint}"));
        anyhow!("{}: {error:#}{hint}", self.account.describe())
    }

    /// Opens a connection without a database, so that `prepare` can create it.
    pub fn connect_without_database(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(MysqlConnection::open(self, 0, false)?))
    }
}

impl Driver for MysqlDriver {
    fn connect_nth(&self, number: usize) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(MysqlConnection::open(self, number, true)?))
    }

    fn describe(&self) -> String {
        self.account.describe()
    }

    fn shut_down_waiting(&self) {
        self.watchdog.shut_down_waiting();
    }
}

/// A call to the server, for error messages.
#[derive(Clone, Copy)]
enum Call<'a> {
    Login,
    /// A statement with its text; empty where the caller adds the text.
    Statement(&'a [u8]),
}

/// A connection to one address of the account.
pub struct MysqlConnection {
    driver: MysqlDriver,
    /// Position in the list of addresses, modulo its length.
    number: usize,
    with_database: bool,
    statements: Statements,
    on_connect: Vec<String>,
    watched: WatchedConnection,
    /// `None` if the connection could not be reopened.
    library: Option<LibraryConnection>,
}

impl MysqlConnection {
    /// Logs in.
    ///
    /// # Errors
    /// Any error is fatal.
    pub fn open(driver: &MysqlDriver, number: usize, with_database: bool) -> Result<Self, DbError> {
        let mut connection = Self {
            driver: driver.clone(),
            number,
            with_database,
            statements: Statements::new(driver.mode),
            on_connect: Vec::new(),
            watched: driver.watchdog.watch(),
            library: None,
        };
        connection.log_in().map_err(DbError::Fatal)?;
        Ok(connection)
    }

    fn text(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, DbError> {
        let unlimited = WITHOUT_LIMIT.iter().any(|word| sql.starts_with(word));
        if unlimited {
            self.watched.set_limit(None);
        }
        let result = self.call(Call::Statement(sql), |_, library| library.query(sql, rows));
        if unlimited {
            self.watched.set_limit(self.driver.read_timeout);
        }
        result
    }

    fn close(&mut self) {
        let Some(library) = self.library.take() else {
            return;
        };
        self.watched.call(|| {
            self.statements.close();
            self.watched.set_handle(ptr::null_mut());
            drop(library);
        });
    }

    /// Logs in, with the time limit of a login.
    fn log_in(&mut self) -> Result<(), Failure> {
        let limit = Duration::from_secs(self.driver.account.answer_seconds.into());
        self.watched.set_limit(Some(limit));
        let account = &self.driver.account;
        let open = || LibraryConnection::open(account, self.number, self.with_database, &self.watched);
        let opened = self.watched.call(open);
        self.watched.set_limit(self.driver.read_timeout);
        let library = opened.map_err(|failure| self.explained(failure, Call::Login))?;
        library.keep_alive();
        self.library = Some(library);
        Ok(())
    }

    /// Runs a call that waits for the server.
    fn call<T>(
        &mut self,
        what: Call<'_>,
        call: impl FnOnce(&mut Statements, &mut LibraryConnection) -> Result<T, Failure>,
    ) -> Result<T, DbError> {
        let result = match &mut self.library {
            Some(library) => self.watched.call(|| call(&mut self.statements, library)),
            None => Err(client_failure("the connection is closed")),
        };
        result.map_err(|failure| self.driver.classify(self.explained(failure, what)))
    }

    /// Replaces the library's error by the reason if the watchdog ended the call.
    #[cold]
    fn explained(&self, failure: Failure, call: Call<'_>) -> Failure {
        let Some(cut) = self.watched.take_cut_reason() else {
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
            CutReason::Time => (
                CR_SERVER_LOST,
                format!("no complete answer{place} for {seconds} s ({option})"),
            ),
            CutReason::Memory => (
                CR_OUT_OF_MEMORY,
                format!("the answer{place} was abandoned: this process uses more than 1 GiB of memory"),
            ),
            CutReason::End => (
                CR_SERVER_LOST,
                format!("the connection was closed before the answer{place} was complete"),
            ),
        };
        Failure {
            errno,
            ..client_failure(&message)
        }
    }
}

impl Connection for MysqlConnection {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        self.watched.prepared();
        self.call(Call::Statement(sql.as_bytes()), |statements, library| {
            statements.prepare(library, sql, params)
        })
    }

    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError> {
        // The caller adds the statement.
        self.call(Call::Statement(b""), |statements, library| {
            statements.run(library, statement, values)
        })
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
        // Closes first, so that the server never counts both connections.
        self.close();
        self.log_in().map_err(|failure| self.driver.classify(failure))?;
        for sql in self.on_connect.clone() {
            self.query(sql.as_bytes())?;
        }
        self.call(Call::Statement(b"PREPARE"), Statements::prepare_again)
    }

    fn text_of(&self, statement: StatementId) -> Option<String> {
        self.statements.text_of(statement)
    }

    fn calls(&self) -> ProtocolCalls {
        self.statements.calls
    }
}

impl Drop for MysqlConnection {
    fn drop(&mut self) {
        self.close();
    }
}
