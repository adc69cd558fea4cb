//! Defines the interface to a database: connections, statements with typed parameters, their
//! effect, and errors. The driver depends on no workload. `mysql` implements it on libmysqlclient,
//! `dry_run` for the unit tests.

pub mod connect;
#[cfg(test)]
pub mod dry_run;
pub mod endpoint;
mod failure;
mod library;
pub mod mysql;
mod open;
pub mod protocol;
mod statement;
mod statements;
mod template;
pub mod watchdog;

pub use failure::DbError;
pub use failure::Failure;
pub use failure::client_failure;
use protocol::ProtocolCalls;

/// The type of a statement's parameter in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// Four bytes, sysbench's `INT`.
    Int,
    /// Eight bytes.
    BigInt,
    /// Text of at most this many bytes.
    Char(usize),
    /// Bytes, at most this many; a hexadecimal literal in text mode.
    Binary(usize),
}

/// The value of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// For `Int` and `BigInt`.
    Int(i64),
    /// For `Char` and `Binary`.
    Bytes(&'a [u8]),
}

/// The effect of a statement, by the rule of sysbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It returned a result set.
    Read,
    /// It affected this many rows, at least one.
    Write(u64),
    /// It did neither.
    Other,
}

impl Effect {
    /// The effect of a statement without a result set.
    fn of_rows(affected: u64) -> Self {
        match affected {
            // (my_ulonglong)-1 means an error or a result set; errors are handled before.
            0 | u64::MAX => Self::Other,
            rows => Self::Write(rows),
        }
    }
}

/// A prepared statement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub usize);

/// Errors after which an event runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// All errors.
    All,
    /// These error numbers.
    These(Vec<u32>),
}

impl Ignored {
    /// True if this error is ignored.
    pub fn contains(&self, errno: u32) -> bool {
        match self {
            Self::All => true,
            Self::These(numbers) => numbers.contains(&errno),
        }
    }
}

/// One row of text, NULL as `None`.
pub type Row = Vec<Option<String>>;

/// A connection; only the thread that opened it uses it.
pub trait Connection {
    /// Makes a statement with `?` for each parameter, on the server or only in the client, as the
    /// protocol requires.
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError>;

    /// Runs a statement and reads its whole result.
    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError>;

    /// Runs a text and reads all its result sets.
    fn query(&mut self, sql: &[u8]) -> Result<Effect, DbError>;

    /// Runs a text, and again after each reconnect.
    fn on_connect(&mut self, sql: &str) -> Result<(), DbError>;

    /// Runs a text and returns its rows.
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError>;

    /// Reopens the connection, with the same statements under the same ids.
    fn reconnect(&mut self) -> Result<(), DbError>;

    /// The text of a statement, with `?` for its parameters.
    fn text_of(&self, _statement: StatementId) -> Option<String> {
        None
    }

    /// Number of calls that prepared, ran and closed statements.
    fn calls(&self) -> ProtocolCalls {
        ProtocolCalls::default()
    }
}

/// Opens connections.
pub trait Driver: Sync {
    /// Opens a connection with the default database.
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        self.connect_nth(0)
    }

    /// As [`Driver::connect`], for thread `number`: several servers are assigned to the threads
    /// round-robin.
    fn connect_nth(&self, number: usize) -> Result<Box<dyn Connection>, DbError>;

    /// The server, for messages.
    fn describe(&self) -> String {
        "the server".to_owned()
    }

    /// Shuts down all connections that wait for a server, also during login.
    fn shut_down_waiting(&self) {}
}
