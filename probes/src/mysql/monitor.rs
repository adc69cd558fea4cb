//! Enables the InnoDB counters of flushing and checkpoints (`--mysql-monitor`), and disables them
//! at the end.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::client::Failure;
use super::server::Kind;
use super::server::Link;
use super::server::Server;

/// The counters: all kinds of page flushing, and the checkpoint age.
const WANTED: &str = "(NAME LIKE 'buffer\\_flush\\_%' OR NAME LIKE 'log\\_lsn\\_%' OR NAME LIKE 'log\\_max\\_modified\\_age%' \
                      OR NAME IN ('log_waits', 'log_checkpoints', 'trx_rseg_history_len', 'buffer_pool_pages_dirty'))";

/// The counters that were enabled, shared by the reads and the cleanup.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Counters that were disabled before.
    enabled: Vec<String>,
    refusal: Option<Failure>,
}

impl Monitor {
    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The error, if a counter could not be enabled.
    pub fn refusal(&self) -> Option<String> {
        self.state(|state| state.refusal.as_ref().map(ToString::to_string))
    }

    /// Enables the counters that are disabled. Runs after each login, because a restart of the
    /// server disables them.
    ///
    /// # Errors
    /// Only the loss of the connection.
    pub fn enable(&self, link: &mut Link) -> Result<(), Failure> {
        let off = if link.is_mariadb() {
            "ENABLED = 0"
        } else {
            "STATUS = 'disabled'"
        };
        let select = format!("SELECT NAME FROM information_schema.INNODB_METRICS WHERE {off} AND {WANTED}");
        let mut names = vec![];
        let mut outcome = link.query(Kind::Select, &select, |cells| {
            names.push(String::from_utf8_lossy(cells.get(0).unwrap_or_default()).into_owned());
        });
        for name in names {
            if outcome.is_err() {
                break;
            }
            outcome = set(link, "enable", &name);
            // The list includes the counters that earlier logins enabled.
            if outcome.is_ok() {
                self.state(|state| state.enabled.push(name));
            }
        }
        match outcome {
            Err(failure) if link.is_lost() => Err(failure),
            outcome => {
                self.state(|state| state.refusal = outcome.err());
                Ok(())
            }
        }
    }

    /// Disables the counters that were enabled; prints a warning if the server does not answer in
    /// time.
    pub fn restore(&self, server: &'static Server) {
        let names = self.state(|state| std::mem::take(&mut state.enabled));
        if names.is_empty() {
            return;
        }
        let list = names.join(",");
        let disable = move |link: &mut Link| names.iter().try_for_each(|name| set(link, "disable", name));
        if server.query_once(disable).is_err() {
            eprintln!(
                "loadprint-collect: {}: InnoDB counters that --mysql-monitor enabled are still enabled; when the server runs again, run \
                 SET GLOBAL innodb_monitor_disable = '…' for each of {list}",
                server.account().describe()
            );
        }
    }
}

fn set(link: &mut Link, verb: &str, name: &str) -> Result<(), Failure> {
    link.query(
        Kind::SetOption,
        &format!("SET GLOBAL innodb_monitor_{verb} = '{name}'"),
        |_| {},
    )
}
