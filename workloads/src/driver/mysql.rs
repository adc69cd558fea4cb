//! Holds the settings of the driver on libmysqlclient, and classifies its errors.
//! As in sysbench, result sets are read and discarded; only `fetch` and `rows` keep their rows.

use std::time::Duration;

use anyhow::anyhow;

use super::Ignored;
use super::Reconnects;
use super::connect::Account;
use super::failure::DbError;
use super::failure::Failure;
use super::failure::hint;
use super::protocol::Mode;
use super::watchdog::Watchdog;

/// Opens connections to one server as one account.
#[derive(Debug, Clone)]
pub struct MysqlDriver {
    /// Servers and account.
    pub account: Account,
    /// How statements are sent.
    pub mode: Mode,
    /// When connections are reopened.
    pub reconnects: Reconnects,
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
}
