//! A safe connection on libmysqlclient that runs statements by the protocol it was told.
//! Result sets are read whole and not looked at, as sysbench does; rows are only kept by `fetch` and `rows`.

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
    /// Where and as whom.
    pub account: Account,
    /// How statements go to the server.
    pub mode: Mode,
    /// When connections are opened again.
    pub reconnects: Reconnects,
    /// Error numbers that only restart the event.
    pub ignored: Ignored,
    /// How long a statement may take; those that work on whole tables (ALTER TABLE and the like) may take any time.
    pub read_timeout: Option<Duration>,
    /// Ends calls that exceed a limit.
    pub watchdog: Watchdog,
}

impl MysqlDriver {
    /// Sorts a failure by `ignored`.
    pub fn classify(&self, failure: Failure) -> DbError {
        if self.ignored.contains(failure.errno) {
            DbError::Ignorable(failure)
        } else {
            DbError::Fatal(failure)
        }
    }

    /// Adds the server and the hint to an error of the database.
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
