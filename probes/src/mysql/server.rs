//! Manages the connection that all MySQL probes share: reconnects with growing pauses, and counts
//! its statements and bytes.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::account::Account;
use super::client::Cells;
use super::client::Client;
use super::client::Failure;
use crate::NotRunning;
use crate::ProbeError;

/// Timeout of a query at the start and the end of the recorder. A login that takes longer is tried
/// again at later ticks.
const TIMEOUT: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A server and the connection to it. It is never freed: a read that hangs can hold it forever.
#[derive(Debug)]
pub struct Server {
    account: Account,
    /// Enable the InnoDB counters that are read, and disable them at the end.
    pub(super) monitor: bool,
    link: Mutex<Link>,
    /// The result of the login at the start.
    login: OnceLock<Result<(), QueryError>>,
}

/// The statements and bytes of this program, as the server counts them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecorderCounts {
    /// Logins.
    pub connections: u64,
    /// Statements: `Questions` and `Queries`.
    pub queries: u64,
    /// `Bytes_received`, without logins.
    pub bytes_received: u64,
    /// `Bytes_sent`, without logins.
    pub bytes_sent: u64,
    /// Statements by [`Kind`].
    pub by_kind: [u64; Kind::NAMES.len()],
}

/// The `Com_` counter of the server that counts a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the server's")]
pub enum Kind {
    Select,
    ShowStatus,
    ShowVariables,
    ShowEngineStatus,
    SetOption,
}

impl Kind {
    /// The names of the counters.
    pub const NAMES: [&str; 5] = [
        "com_select",
        "com_show_status",
        "com_show_variables",
        "com_show_engine_status",
        "com_set_option",
    ];
}

/// The connection, or the time of the next attempt.
#[derive(Debug)]
pub struct Link {
    client: Option<Client>,
    /// The time of the next attempt, the next pause, and the error of the last attempt.
    retry: Option<(Instant, Duration, String)>,
    /// Statements and bytes of the recorder.
    pub recorder_counts: RecorderCounts,
}

impl Server {
    /// A server without a connection.
    #[must_use]
    pub fn new(account: Account, monitor: bool) -> &'static Self {
        let link = Link {
            client: None,
            retry: None,
            recorder_counts: RecorderCounts::default(),
        };
        Box::leak(Box::new(Self {
            account,
            monitor,
            link: Mutex::new(link),
            login: OnceLock::new(),
        }))
    }

    /// The address and the account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for one read; waits for the read of another probe.
    ///
    /// # Errors
    /// When the server cannot be connected.
    pub fn link(&self) -> Result<MutexGuard<'_, Link>, ProbeError> {
        let mut link = self.lock();
        link.connect(&self.account).map_err(ProbeError::Source)?;
        Ok(link)
    }

    /// Logs in once, so that a refused login is reported at the start. A server that does not run
    /// yet is not an error.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] with the error of the server.
    pub fn log_in(&'static self) -> Result<(), NotRunning> {
        let first = || self.on_thread(|link| link.log_in(&self.account));
        match self.login.get_or_init(first) {
            Err(QueryError::Refused(failure)) if failure.is_refusal() => Err(NotRunning::Unavailable(
                format!("{}: {failure}; {}", self.account.describe(), failure.fix()),
            )),
            _ => Ok(()),
        }
    }

    /// The error of a read.
    pub fn error(&self, failure: &Failure) -> ProbeError {
        ProbeError::Source(format!("{}: {failure}", self.account.describe()))
    }

    /// Runs a query at the start or the end, after [`Server::log_in`].
    ///
    /// # Errors
    /// When the server does not answer or returns an error.
    pub fn query_once<T: Send + 'static>(
        &'static self,
        query: impl FnOnce(&mut Link) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, QueryError> {
        match self.login.get() {
            Some(Err(QueryError::Refused(failure))) => {
                Err(QueryError::NoAnswer(self.error(failure).to_string()))
            }
            Some(Err(no_answer)) => Err(no_answer.clone()),
            _ => self.on_thread(query),
        }
    }

    /// Runs `work` on a thread, for as long as a query may take.
    pub(super) fn on_thread<T: Send + 'static>(
        &'static self,
        work: impl FnOnce(&mut Link) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, QueryError> {
        let (results, received) = sync_channel(1);
        let thread = thread::spawn(move || {
            // Fails if the receiver has timed out.
            drop(results.send(work(&mut self.lock())));
        });
        let Ok(answer) = received.recv_timeout(TIMEOUT) else {
            let server = self.account.describe();
            let reason = format!("{server}: no answer within {} s", TIMEOUT.as_secs());
            return Err(QueryError::NoAnswer(reason));
        };
        // The thread only detaches from the library and exits.
        drop(thread.join());
        answer.map_err(QueryError::Refused)
    }

    /// Closes the connection, unless a read is in progress.
    pub fn close(&self) {
        if let Ok(mut link) = self.link.try_lock() {
            link.client = None;
        }
    }
}

/// The error of a query at the start or the end.
#[derive(Clone, Debug)]
pub enum QueryError {
    /// The server does not answer; the text names it.
    NoAnswer(String),
    /// The error of the server.
    Refused(Failure),
}

impl Link {
    fn log_in(&mut self, account: &Account) -> Result<(), Failure> {
        self.client = Some(Client::connect(account)?);
        self.recorder_counts.connections += 1;
        Ok(())
    }

    fn connect(&mut self, account: &Account) -> Result<(), String> {
        if self.client.as_ref().is_some_and(Client::is_lost) {
            self.client = None;
        }
        if self.client.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        let mut pause = FIRST_PAUSE;
        if let Some((due, next, reason)) = &self.retry {
            if now < *due {
                let left = (*due - now).as_secs_f64();
                return Err(format!("{reason}; next attempt in {left:.1} s"));
            }
            pause = *next;
        }
        self.retry = None;
        self.log_in(account).map_err(|failure| {
            let reason = format!("{}: {failure}", account.describe());
            let next = (2 * pause).min(LONGEST_PAUSE);
            self.retry = Some((Instant::now() + pause, next, reason.clone()));
            reason
        })
    }

    /// The version in the greeting; empty without a connection.
    pub fn version(&self) -> String {
        self.client.as_ref().map(Client::version).unwrap_or_default()
    }

    /// True if the connection is lost.
    pub fn is_lost(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_lost)
    }

    /// Runs and counts a statement and calls `row` with each row.
    ///
    /// # Errors
    /// The error of the server, or the loss of the connection.
    pub fn query(&mut self, kind: Kind, sql: &str, row: impl FnMut(&Cells<'_>)) -> Result<(), Failure> {
        let client = self.client.as_mut().ok_or_else(Failure::no_connection)?;
        let sizes = client.sizes();
        self.recorder_counts.queries += 1;
        self.recorder_counts.by_kind[kind as usize] += 1;
        self.recorder_counts.bytes_received += sizes.query(sql);
        let before = client.received_bytes();
        let answer = client.query(sql, row);
        self.recorder_counts.bytes_sent += client.received_bytes() - before;
        answer
    }
}
