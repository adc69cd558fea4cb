//! What a workload may ask of a database: statements with typed parameters, their effect, and errors in two classes.
//! Knows no workload and no clock; `mysql` is the real implementation, `dry_run` the one of the tests.

pub mod connect;
mod connection;
#[cfg(test)]
pub mod dry_run;
pub mod endpoint;
mod failure;
mod library;
pub mod mysql;
mod open;
pub mod protocol;
mod sql_prepare;
mod statement;
mod statements;
mod template;
mod text;
pub mod tls;
pub mod watchdog;

pub use failure::DbError;
pub use failure::Failure;
use protocol::ProtocolCalls;

/// The type of one parameter of a statement, as it goes over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// Four bytes, sysbench's `INT`.
    Int,
    /// Eight bytes.
    BigInt,
    /// Text of at most so many bytes.
    Char(usize),
    /// Bytes of at most this number; a hexadecimal literal in text mode.
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

/// What a statement did, by sysbench's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A result set came back.
    Read,
    /// So many rows were affected, at least one.
    Write(u64),
    /// Neither.
    Other,
}

impl Effect {
    /// Of a statement without a result set, by sysbench's rule.
    fn of_rows(affected: u64) -> Self {
        match affected {
            // (my_ulonglong)-1 is "an error or a result set"; errors have been dealt with.
            0 | u64::MAX => Self::Other,
            rows => Self::Write(rows),
        }
    }
}

/// A prepared statement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub usize);

/// When and how long connections are opened again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reconnects {
    /// After so many events; 0: never.
    pub every: u64,
    /// How long to go on trying where no server answers, nanoseconds.
    pub timeout_ns: i64,
}

/// Error numbers that only restart an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// Every one.
    All,
    /// These.
    These(Vec<u32>),
}

impl Ignored {
    /// True for this number.
    pub fn contains(&self, errno: u32) -> bool {
        match self {
            Self::All => true,
            Self::These(numbers) => numbers.contains(&errno),
        }
    }
}

/// One row of text, NULL as `None`.
pub type Row = Vec<Option<String>>;

/// A connection, used by the thread that opened it.
pub trait Connection {
    /// Makes a statement with `?` for each parameter; on the server or only in the client, as the driver was told.
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError>;

    /// Runs it and reads its whole result.
    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Effect, DbError>;

    /// Runs it and gives its rows; several result sets (of a CALL) one after the other in one list.
    fn fetch(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        rows: &mut Vec<Row>,
    ) -> Result<Effect, DbError>;

    /// Runs a text; all its result sets are read.
    fn query(&mut self, sql: &[u8]) -> Result<Effect, DbError>;

    /// Runs a text now and after each reconnect.
    fn on_connect(&mut self, sql: &str) -> Result<(), DbError>;

    /// Runs a text and gives its rows.
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError>;

    /// When it is to be opened again.
    fn reconnects(&self) -> Reconnects {
        Reconnects::default()
    }

    /// Opens the connection again, with the same statements under the same ids.
    fn reconnect(&mut self) -> Result<(), DbError>;

    /// The text of a statement, with its holes.
    fn text_of(&self, _statement: StatementId) -> Option<String> {
        None
    }

    /// What it sent so far to prepare, run and close statements.
    fn calls(&self) -> ProtocolCalls {
        ProtocolCalls::default()
    }
}

/// Opens connections.
pub trait Driver: Sync {
    /// A connection with the database chosen.
    fn connect(&self) -> Result<Box<dyn Connection>, DbError>;

    /// As [`Driver::connect`], for thread `number`: where there are several servers the threads take them in turn.
    fn connect_nth(&self, _number: usize) -> Result<Box<dyn Connection>, DbError> {
        self.connect()
    }

    /// The server in words, for messages.
    fn describe(&self) -> String {
        "the server".to_owned()
    }

    /// Shuts down the connections of all calls that wait for a server, also of those that log in.
    fn cut_waiting(&self) {}
}
