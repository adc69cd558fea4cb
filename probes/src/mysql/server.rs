//! Manages the connection that all MySQL probes share: reconnects with growing pauses, and counts
//! its statements and bytes.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::mpsc::RecvTimeoutError;
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
    link: Mutex<Link>,
    login: OnceLock<Login>,
}

/// The result of the login at the start.
#[derive(Clone, Debug)]
enum Login {
    Done,
    Refused(String),
    /// The server does not run yet, or hangs.
    NoAnswer(String),
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
    pub by_kind: [u64; Kind::ALL.len()],
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
    /// All kinds, in the order of [`RecorderCounts::by_kind`].
    pub const ALL: [Self; 5] = [
        Self::Select,
        Self::ShowStatus,
        Self::ShowVariables,
        Self::ShowEngineStatus,
        Self::SetOption,
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
    pub fn new(account: Account) -> &'static Self {
        let link = Link {
            client: None,
            retry: None,
            recorder_counts: RecorderCounts::default(),
        };
        Box::leak(Box::new(Self {
            account,
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
        let first = || {
            let connect = |link: &mut Link| {
                Client::connect(&self.account).map(|client| {
                    link.recorder_counts.connections += 1;
                    link.client = Some(client);
                })
            };
            let server = self.account.describe();
            match self.on_thread(connect) {
                Some(Ok(())) => Login::Done,
                Some(Err(failure)) if failure.is_refusal() => {
                    Login::Refused(format!("{server}: {failure}; {}", failure.fix()))
                }
                Some(Err(failure)) => Login::NoAnswer(format!("{server}: {failure}")),
                None => Login::NoAnswer(format!("{server}: no answer within {} s", TIMEOUT.as_secs())),
            }
        };
        match self.login.get_or_init(first) {
            Login::Refused(reason) => Err(NotRunning::Unavailable(reason.clone())),
            Login::Done | Login::NoAnswer(_) => Ok(()),
        }
    }

    /// Runs a query at the start or the end, after [`Server::log_in`].
    ///
    /// # Errors
    /// When the server does not answer or returns an error.
    pub fn query_once<T: Send + 'static>(
        &'static self,
        query: impl FnOnce(&mut Link) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, QueryError> {
        if let Some(Login::NoAnswer(reason) | Login::Refused(reason)) = self.login.get() {
            return Err(QueryError::NoAnswer(reason.clone()));
        }
        match self.on_thread(query) {
            Some(answer) => answer.map_err(QueryError::Refused),
            None => Err(QueryError::NoAnswer(format!(
                "{}: no answer within {} s",
                self.account.describe(),
                TIMEOUT.as_secs()
            ))),
        }
    }

    /// Runs `work` on a thread; returns `None` if it takes too long.
    fn on_thread<T: Send + 'static>(
        &'static self,
        work: impl FnOnce(&mut Link) -> T + Send + 'static,
    ) -> Option<T> {
        let (results, received) = sync_channel(1);
        let thread = thread::spawn(move || {
            // Fails if the receiver has timed out.
            drop(results.send(work(&mut self.lock())));
        });
        match received.recv_timeout(TIMEOUT) {
            Ok(answer) => {
                // The thread only detaches from the library and exits.
                drop(thread.join());
                Some(answer)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Closes the connection, unless a read is in progress.
    pub fn close(&self) {
        if let Ok(mut link) = self.link.try_lock() {
            link.client = None;
        }
    }
}

/// The error of a query at the start or the end.
#[derive(Debug)]
pub enum QueryError {
    /// The server does not answer; the text names it.
    NoAnswer(String),
    /// The error of the server.
    Refused(Failure),
}

impl Link {
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
        match Client::connect(account) {
            Ok(client) => {
                self.client = Some(client);
                self.retry = None;
                self.recorder_counts.connections += 1;
                Ok(())
            }
            Err(failure) => {
                let reason = format!("{}: {failure}", account.describe());
                let next = (2 * pause).min(LONGEST_PAUSE);
                self.retry = Some((Instant::now() + pause, next, reason.clone()));
                Err(reason)
            }
        }
    }

    /// True if the server is MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.client.as_ref().is_some_and(Client::is_mariadb)
    }

    /// The server's version as a number, 50722 for 5.7.22; 0 without a connection.
    pub fn version(&self) -> u64 {
        self.client.as_ref().map_or(0, Client::version)
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
