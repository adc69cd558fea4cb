//! The one connection that all MySQL probes share: opened again with growing pauses when it is lost, and counted.

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

/// What the recorder's start and end wait for a server at most; a server that takes longer is asked again at every tick.
const PATIENCE: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A server and the connection to it. It lives as long as the program: a read that hangs may hold it for ever.
#[derive(Debug)]
pub struct Server {
    account: Account,
    link: Mutex<Link>,
    login: OnceLock<Login>,
}

/// How the login at the start went.
#[derive(Clone, Debug)]
enum Login {
    Done,
    Refused(String),
    /// It is not there yet, or hangs.
    Waiting(String),
}

/// What this program has asked of the server so far, as the server counts it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
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

/// Which `Com_` counter of the server a statement raises.
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
    /// All of them, in the order of [`Own::by_kind`].
    pub const ALL: [Self; 5] = [
        Self::Select,
        Self::ShowStatus,
        Self::ShowVariables,
        Self::ShowEngineStatus,
        Self::SetOption,
    ];
}

/// The connection, or when the next attempt is due.
#[derive(Debug)]
pub struct Link {
    client: Option<Client>,
    /// When to try again, how long the next pause is, and why the last attempt failed.
    retry: Option<(Instant, Duration, String)>,
    /// What was asked so far.
    pub own: Own,
}

impl Server {
    /// A server that has not been asked yet.
    #[must_use]
    pub fn new(account: Account) -> &'static Self {
        let link = Link {
            client: None,
            retry: None,
            own: Own::default(),
        };
        Box::leak(Box::new(Self {
            account,
            link: Mutex::new(link),
            login: OnceLock::new(),
        }))
    }

    /// Where it is and as whom.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for one read; waits for another probe's read.
    ///
    /// # Errors
    /// When there is none and none can be made.
    pub fn link(&self) -> Result<MutexGuard<'_, Link>, ProbeError> {
        let mut link = self.lock();
        link.connect(&self.account).map_err(ProbeError::Source)?;
        Ok(link)
    }

    /// Logs in once, so that a refusal is known at the start. A server that is not there yet is not a refusal.
    ///
    /// # Errors
    /// [`NotRunning::Unavailable`] with what the server said.
    pub fn log_in(&'static self) -> Result<(), NotRunning> {
        let first = || {
            let connect = |link: &mut Link| {
                Client::connect(&self.account).map(|client| {
                    link.own.connections += 1;
                    link.client = Some(client);
                })
            };
            let place = self.account.describe();
            match self.on_thread(connect) {
                Some(Ok(())) => Login::Done,
                Some(Err(failure)) if failure.is_refusal() => Login::Refused(format!(
                    "{place}: {failure}; check --mysql-user and --mysql-password-file, and the grants in docs/mysql-probe.md"
                )),
                Some(Err(failure)) => Login::Waiting(format!("{place}: {failure}")),
                None => Login::Waiting(format!("{place}: no answer within {} s", PATIENCE.as_secs())),
            }
        };
        match self.login.get_or_init(first) {
            Login::Refused(reason) => Err(NotRunning::Unavailable(reason.clone())),
            Login::Done | Login::Waiting(_) => Ok(()),
        }
    }

    /// Asks something at the start, after [`Server::log_in`].
    ///
    /// # Errors
    /// Why there is no answer: the server is not there, or what it said.
    pub fn ask<T: Send + 'static>(
        &'static self,
        question: impl FnOnce(&mut Link) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Silence> {
        if let Some(Login::Waiting(reason) | Login::Refused(reason)) = self.login.get() {
            return Err(Silence::NotThere(reason.clone()));
        }
        match self.on_thread(question) {
            Some(answer) => answer.map_err(Silence::Refused),
            None => Err(Silence::NotThere(format!(
                "{}: no answer within {} s",
                self.account.describe(),
                PATIENCE.as_secs()
            ))),
        }
    }

    /// Runs `work` on a thread that is left alone when it takes too long.
    fn on_thread<T: Send + 'static>(
        &'static self,
        work: impl FnOnce(&mut Link) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = sync_channel(1);
        let thread = thread::spawn(move || {
            // Nobody may be listening any more.
            drop(tell.send(work(&mut self.lock())));
        });
        match told.recv_timeout(PATIENCE) {
            Ok(answer) => {
                // It has nothing left to do but to leave the library.
                drop(thread.join());
                Some(answer)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Says goodbye, unless a read is under way.
    pub fn close(&self) {
        if let Ok(mut link) = self.link.try_lock() {
            link.client = None;
        }
    }
}

/// Why a question at the start has no answer.
#[derive(Debug)]
pub enum Silence {
    /// The server is not there; the text says where.
    NotThere(String),
    /// What it said.
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
                return Err(format!("{reason}; tried again in {left:.1} s"));
            }
            pause = *next;
        }
        match Client::connect(account) {
            Ok(client) => {
                self.client = Some(client);
                self.retry = None;
                self.own.connections += 1;
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

    /// True if the connection was lost within the read.
    pub fn is_lost(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_lost)
    }

    /// Runs a statement, counts it, and hands out its rows one by one.
    ///
    /// # Errors
    /// What the server answered in place of rows, or the loss of the connection.
    pub fn query(&mut self, kind: Kind, sql: &str, row: impl FnMut(&Cells<'_>)) -> Result<(), Failure> {
        let client = self.client.as_mut().ok_or_else(Failure::no_connection)?;
        let sizes = client.sizes();
        self.own.queries += 1;
        self.own.by_kind[kind as usize] += 1;
        self.own.bytes_received += sizes.query(sql);
        let before = client.answered();
        let answer = client.query(sql, row);
        self.own.bytes_sent += client.answered() - before;
        answer
    }
}
