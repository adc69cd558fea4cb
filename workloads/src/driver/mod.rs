//! What a workload may ask of a database: statements with typed parameters, their effect, and errors in two classes.
//! Knows no workload and no clock; `mysql` is the real implementation, `dry_run` the one of the tests.

pub mod connect;
mod connection;
#[cfg(test)]
pub mod dry_run;
pub mod endpoint;
mod library;
pub mod mysql;
mod named;
mod open;
pub mod protocol;
mod statement;
mod statements;
mod template;
mod text;
pub mod tls;
pub mod watchdog;

use protocol::Calls;

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

/// A prepared statement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub usize);

/// What the server or the client library said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (error {errno}, SQLSTATE {sqlstate})")]
pub struct Failure {
    /// MySQL's error number; 2000-2999 come from the client library.
    pub errno: u32,
    /// The five characters of SQLSTATE.
    pub sqlstate: String,
    /// The server's words, on one line.
    pub message: String,
}

/// A failed statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// Its number is in `--mysql-ignore-errors`: the event is run again and the error counted.
    #[error(transparent)]
    Ignorable(Failure),
    /// Stops the run.
    #[error(transparent)]
    Fatal(Failure),
}

impl DbError {
    /// The failure of either class.
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Ignorable(failure) | Self::Fatal(failure) => failure,
        }
    }

    /// True if no server is there to connect to, or it cannot take the connection yet.
    pub fn no_server_yet(&self) -> bool {
        self.connection_lost() || matches!(self.failure().errno, 1040 | 1053 | 2002 | 2003)
    }

    /// True if the connection is gone, by the numbers that sysbench takes for it.
    pub fn connection_lost(&self) -> bool {
        matches!(self.failure().errno, 2006 | 2011 | 2013 | 2055)
    }
}

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
    fn calls(&self) -> Calls {
        Calls::default()
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

/// What a person can do about an error, by its number; nothing for numbers that say it themselves.
pub fn mend(errno: u32) -> Option<&'static str> {
    Some(match errno {
        1044 | 1142 => "the account lacks this privilege: GRANT it, or give another --mysql-user",
        1045 | 1698 => "check --mysql-user and --mysql-password-file, --defaults-file or MYSQL_PWD",
        1203 | 1226 => {
            "the account may not have more connections: ALTER USER ... WITH MAX_USER_CONNECTIONS, or lower --threads"
        }
        1040 => "raise max_connections on the server or lower --threads",
        1049 => "`loadprint-load prepare WORKLOAD` creates it",
        1050 => "`loadprint-load cleanup WORKLOAD` removes what an earlier prepare left",
        1054 | 1146 => "run `loadprint-load prepare WORKLOAD` with the same options first",
        1062 => "the data are not as prepared: run cleanup and prepare, or leave out --skip-trx",
        1114 | 1021 | 3675 => "make room on the server's data device",
        1227 => {
            "the account lacks the privilege: for SET GLOBAL, GRANT SYSTEM_VARIABLES_ADMIN, or leave out what needs it"
        }
        1461 => "raise max_prepared_stmt_count, lower --threads or --tables, or use --protocol=text",
        2002 | 2003 | 2005 => "is the server running? check --mysql-host and --mysql-port, or --mysql-socket",
        2006 | 2013 | 2055 => "the server went away or hangs: see its error log",
        2008 | 2020 => "no statement of this workload has such a result: is this a MySQL server?",
        2026 => "check --mysql-ssl and its files against the server's TLS set-up",
        2059 => {
            "the account's authentication plugin is not in this client: use caching_sha2_password or mysql_native_password"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_prints_words_number_and_state_on_one_line() {
        let failure = Failure {
            errno: 1213,
            sqlstate: "40001".to_owned(),
            message: "Deadlock found".to_owned(),
        };
        assert_eq!(
            DbError::Ignorable(failure).to_string(),
            "Deadlock found (error 1213, SQLSTATE 40001)"
        );
    }
}
