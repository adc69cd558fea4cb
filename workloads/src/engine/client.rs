//! A session's door to the database: runs statements and counts their effects, so that no workload can miscount.

use std::thread;
use std::time::Duration;

use loadprint_recording::clock::monotonic_ns;

use super::Place;
use super::Undo;
use super::control::Control;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::Effect;
use crate::driver::Failure;
use crate::driver::ParamType;
use crate::driver::Reconnects;
use crate::driver::Row;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::driver::protocol::Calls;
use crate::stats::Counter;
use crate::stats::ThreadStats;

/// Between two attempts to reach a server that does not answer.
const RETRY_NS: i64 = 50_000_000;

/// One thread's connection with its counters.
pub struct Client<'a> {
    connection: Box<dyn Connection>,
    stats: &'a ThreadStats,
    control: &'a Control,
    kind: usize,
    /// When the event was due, in an open loop.
    due_ns: Option<i64>,
    began_ns: i64,
    waited_ns: i64,
    /// The statement that met an error.
    failed: Option<String>,
    rows: u64,
    commits: u64,
    rollbacks: u64,
    /// What of the connection's calls has been counted.
    calls: Calls,
    reconnects: Reconnects,
    /// Events since the connection was opened.
    since: u64,
}

impl<'a> Client<'a> {
    /// Counts into `stats`, and sleeps no longer than `control` lets it.
    pub fn new(connection: Box<dyn Connection>, stats: &'a ThreadStats, control: &'a Control) -> Self {
        Self {
            reconnects: connection.reconnects(),
            since: 0,
            connection,
            stats,
            control,
            kind: 0,
            due_ns: None,
            began_ns: 0,
            waited_ns: 0,
            failed: None,
            rows: 0,
            commits: 0,
            rollbacks: 0,
            calls: Calls::default(),
        }
    }

    /// Makes a statement; before the clock starts, not counted.
    pub fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        self.connection.prepare(sql, params)
    }

    /// Sets up the session, now and after each reconnect; not counted.
    pub fn on_connect(&mut self, sql: &str) -> Result<(), DbError> {
        self.connection.on_connect(sql)
    }

    /// Reads rows before the clock starts; not counted.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        self.connection.rows(sql)
    }

    /// Runs a statement and counts it.
    pub fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<(), DbError> {
        let effect = self.connection.execute(statement, values);
        let effect = effect.inspect_err(|_| self.failed = self.connection.text_of(statement))?;
        self.count(effect);
        Ok(())
    }

    /// As [`Client::execute`], and gives the rows, every value as text.
    pub fn fetch(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        let mut rows = Vec::new();
        let effect = self.connection.fetch(statement, values, &mut rows);
        let effect = effect.inspect_err(|_| self.failed = self.connection.text_of(statement))?;
        self.count(effect);
        Ok(rows)
    }

    /// Runs a text and counts it; for statements that are never prepared.
    pub fn query(&mut self, sql: &[u8]) -> Result<(), DbError> {
        let effect = self.connection.query(sql);
        // Its first word: the rest holds values.
        let word = sql.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let effect =
            effect.inspect_err(|_| self.failed = Some(String::from_utf8_lossy(word).into_owned()))?;
        self.count(effect);
        Ok(())
    }

    /// As [`Client::query`], for a text that gives rows; every value as text.
    pub fn query_rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        let rows = self.connection.rows(sql)?;
        self.count(Effect::Read);
        Ok(rows)
    }

    /// The event ended in a transaction that the workload itself rolled back.
    pub fn rolled_back(&mut self) {
        self.rollbacks += 1;
    }

    /// A commit that no statement of its own asked for, as inside a procedure.
    pub fn committed(&mut self) {
        self.commits += 1;
    }

    /// As [`Client::execute`], for the statement that commits.
    pub fn commit(&mut self, statement: StatementId) -> Result<(), DbError> {
        self.execute(statement, &[])?;
        self.commits += 1;
        Ok(())
    }

    /// A transaction of this type starts now; what the session did before was waiting for work. Without this call an event is of the first type.
    pub fn start(&mut self, kind: usize) {
        match self.due_ns {
            // It was due at that moment, whatever the session waited for since.
            Some(due_ns) => self.start_at(kind, due_ns),
            None => (self.kind, self.began_ns, self.waited_ns) = (kind, monotonic_ns(), 0),
        }
    }

    /// As [`Client::start`], for a transaction that was due at this moment of CLOCK_MONOTONIC: its latency counts from there.
    pub fn start_at(&mut self, kind: usize, intended_ns: i64) {
        self.kind = kind;
        self.began_ns = intended_ns;
        self.waited_ns = (monotonic_ns() - intended_ns).max(0);
    }

    /// An event begins that was due then, or that nobody asked for.
    pub(super) fn arrive(&mut self, due_ns: Option<i64>) {
        self.due_ns = due_ns;
        self.start(0);
    }

    /// The type of the transaction that runs.
    pub(super) fn kind(&self) -> usize {
        self.kind
    }

    /// Where the last error was met.
    pub(super) fn place(&self) -> Place {
        Place::Event(self.kind, self.failed.clone())
    }

    /// Sleeps until this moment of CLOCK_MONOTONIC, as a user who thinks or a schedule of the session's own;
    /// false, and at once, when the phase is over: the session then gives `Step::Exhausted`.
    pub fn pause_until(&mut self, moment_ns: i64) -> bool {
        self.control.sleep_until(moment_ns)
    }

    fn count(&mut self, effect: Effect) {
        let counter = match effect {
            Effect::Read => Counter::Reads,
            Effect::Write(rows) => {
                self.rows += rows;
                Counter::Writes
            }
            Effect::Other => Counter::Others,
        };
        self.stats.add(self.kind, counter, 1);
    }

    /// Brings the counters of what the connection sent up to date: before each wait, so that no event pays for it.
    pub(super) fn rest(&mut self) {
        let (now, before) = (self.connection.calls(), self.calls);
        self.stats
            .add(0, Counter::Prepares, now.prepares - before.prepares);
        self.stats
            .add(0, Counter::Executes, now.executes - before.executes);
        self.stats.add(0, Counter::Closes, now.closes - before.closes);
        self.calls = now;
    }

    /// The event is over: its latency, including retries and the new connection where it is time for one, and what it did count now.
    pub(super) fn succeed(&mut self, events: u64) -> Result<(), DbError> {
        self.since += 1;
        if self.since == self.reconnects.every {
            self.since = 0;
            self.reopen(Counter::Reopens)?;
        }
        let nanoseconds = monotonic_ns() - self.began_ns;
        self.stats
            .latency(self.kind, u64::try_from(nanoseconds).unwrap_or(0));
        let waited = u64::try_from(self.waited_ns).unwrap_or(0);
        self.stats.add(self.kind, Counter::WaitNs, waited);
        self.stats.add(self.kind, Counter::Events, events);
        self.stats.add(self.kind, Counter::Rows, self.rows);
        self.stats.add(self.kind, Counter::Commits, self.commits);
        self.stats.add(self.kind, Counter::Rollbacks, self.rollbacks);
        (self.rows, self.commits, self.rollbacks) = (0, 0, 0);
        Ok(())
    }

    /// Opens the connection again. Where no server answers, as while it starts, this is tried again for the time that the options allow.
    fn reopen(&mut self, cause: Counter) -> Result<(), DbError> {
        let deadline_ns = monotonic_ns() + self.reconnects.timeout_ns;
        loop {
            let error = match self.connection.reconnect() {
                Ok(()) => {
                    self.stats.add(self.kind, cause, 1);
                    return Ok(());
                }
                Err(error) if !error.no_server_yet() => return Err(error),
                Err(error) => error,
            };
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                return Err(gave_up(&error, self.reconnects.timeout_ns));
            }
            // Also an event that the end of the phase has caught waits for its connection; an abort ends the wait.
            if !self.control.sleep_until(now_ns + RETRY_NS) {
                if self.control.aborted() {
                    return Ok(());
                }
                thread::sleep(Duration::from_nanos(RETRY_NS.unsigned_abs()));
            }
        }
    }

    /// An ignorable error: undo what the event did, so that nothing of it is committed by the next BEGIN.
    pub(super) fn retry_after(&mut self, error: &DbError, undo: Undo) -> Result<(), DbError> {
        (self.rows, self.commits, self.rollbacks) = (0, 0, 0);
        self.stats.add(self.kind, Counter::Errors, 1);
        if error.connection_lost() {
            return self.reopen(Counter::Reconnects);
        }
        if undo == Undo::Rollback {
            match self.connection.query(b"ROLLBACK") {
                Ok(effect) => self.count(effect),
                // The event's first statement meets the same and decides.
                Err(lost) if lost.connection_lost() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The last error, and how long it was waited for.
fn gave_up(error: &DbError, timeout_ns: i64) -> DbError {
    let failure = error.failure();
    let seconds = timeout_ns as f64 / 1e9;
    DbError::Fatal(Failure {
        message: format!(
            "{}; no new connection within {seconds} s (--reconnect-timeout)",
            failure.message
        ),
        ..failure.clone()
    })
}
