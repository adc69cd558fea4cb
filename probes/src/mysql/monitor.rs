//! `--mysql-monitor`: enables the InnoDB counters that tell of flushing and checkpoints, and disables at the end what was off.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::client::Failure;
use super::server::Kind;
use super::server::Link;
use super::server::Server;

/// Which counters: page flushing in all its kinds, and the age of the checkpoint.
const WANTED: &str = "(NAME LIKE 'buffer\\_flush\\_%' OR NAME LIKE 'log\\_lsn\\_%' OR NAME LIKE 'log\\_max\\_modified\\_age%' \
                      OR NAME IN ('log_waits', 'log_checkpoints', 'trx_rseg_history_len', 'buffer_pool_pages_dirty'))";

/// What was enabled, shared by the reads and by the end.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Counters that were off and are on now.
    enabled: Vec<String>,
    refusal: Option<Failure>,
}

impl Monitor {
    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Why the counters, or some of them, could not be enabled.
    pub fn refusal(&self) -> Option<String> {
        self.state(|state| state.refusal.as_ref().map(ToString::to_string))
    }

    /// Enables what is wanted and off. After a lost connection as well: a server that was restarted has forgotten it.
    ///
    /// # Errors
    /// Only the loss of the connection.
    pub fn enable(&self, link: &mut Link) -> Result<(), Failure> {
        let off = if link.is_mariadb() {
            "ENABLED = 0"
        } else {
            "STATUS = 'disabled'"
        };
        let question = format!("SELECT NAME FROM information_schema.INNODB_METRICS WHERE {off} AND {WANTED}");
        let mut names = vec![];
        let mut outcome = link.query(Kind::Select, &question, |cells| {
            names.push(String::from_utf8_lossy(cells.get(0).unwrap_or_default()).into_owned());
        });
        for name in names {
            if outcome.is_err() {
                break;
            }
            outcome = set(link, "enable", &name);
            // What one login enabled is still to be disabled after the next one.
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

    /// Disables what was enabled; a server that does not answer in time is told of, and left as it is.
    pub fn restore(&self, server: &'static Server) {
        let names = self.state(|state| std::mem::take(&mut state.enabled));
        if names.is_empty() {
            return;
        }
        let left = names.join(",");
        let disable = move |link: &mut Link| names.iter().try_for_each(|name| set(link, "disable", name));
        if server.ask(disable).is_err() {
            eprintln!(
                "loadprint-collect: {}: InnoDB counters that --mysql-monitor enabled are still on; when the server is back: \
                 SET GLOBAL innodb_monitor_disable = '…' for each of {left}",
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
