//! Enables the InnoDB counters of flushing and checkpoints (`--mysql-monitor`), and disables them
//! at the end.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
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
pub struct Monitor(Arc<Mutex<Vec<String>>>);

impl Monitor {
    fn enabled(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enables the counters that are disabled. Runs after each login, because a restart of the
    /// server disables them.
    ///
    /// # Errors
    /// The error of the server; further counters are then not enabled.
    pub fn enable(&self, link: &mut Link) -> Result<(), Failure> {
        let mut names = vec![];
        let mut read = |off: &str| {
            let select =
                format!("SELECT NAME FROM information_schema.INNODB_METRICS WHERE {off} AND {WANTED}");
            link.query(Kind::Select, &select, |cells| {
                names.push(String::from_utf8_lossy(cells.get(0).unwrap_or_default()).into_owned());
            })
        };
        match read("STATUS = 'disabled'") {
            // MariaDB 10.5 and later.
            Err(failure) if failure.is_unknown_column() => read("ENABLED = 0")?,
            read => read?,
        }
        names.into_iter().try_for_each(|name| {
            set(link, "enable", &name)?;
            // The list includes the counters that earlier logins enabled.
            self.enabled().push(name);
            Ok(())
        })
    }

    /// Disables the counters that were enabled; prints a warning if the server does not answer in
    /// time.
    pub fn restore(&self, server: &'static Server) {
        let names = std::mem::take(&mut *self.enabled());
        if names.is_empty() {
            return;
        }
        let list = names.join(",");
        let disable = move |link: &mut Link| names.iter().try_for_each(|name| set(link, "disable", name));
        if server.on_thread(disable).is_err() {
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
