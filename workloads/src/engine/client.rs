//! Runs a session's statements and counts their effects, so that a workload cannot miscount.

use std::thread;
use std::time::Duration;

use loadprint_recording::clock::monotonic_ns;

use super::FailurePlace;
use super::Reconnects;
use super::Undo;
use super::control::Control;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::Effect;
use crate::driver::Failure;
use crate::driver::ParamType;
use crate::driver::Row;
use crate::driver::StatementId;
use crate::driver::Value;
use crate::driver::protocol::ProtocolCalls;
use crate::stats::Counter;
use crate::stats::ThreadStats;

/// Time between two attempts to reconnect.
const RETRY_NS: i64 = 50_000_000;

/// A thread's connection with its counters.
pub struct Client<'a> {
    connection: Box<dyn Connection>,
    stats: &'a ThreadStats,
    control: &'a Control,
    kind: usize,
    /// When the event was due, in an open loop.
    due_ns: Option<i64>,
    began_ns: i64,
    waited_ns: i64,
    /// The statement that failed.
    failed: Option<String>,
    rows: u64,
    commits: u64,
    rollbacks: u64,
    /// Calls of the connection that are counted already.
    calls: ProtocolCalls,
    reconnects: Reconnects,
    /// Events since the connection was opened.
    events_since_connect: u64,
}

impl<'a> Client<'a> {
    /// Counts in `stats`; `control` ends its sleeps.
    pub fn new(
        connection: Box<dyn Connection>,
        stats: &'a ThreadStats,
        control: &'a Control,
        reconnects: Reconnects,
    ) -> Self {
        Self {
            reconnects,
            events_since_connect: 0,
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
            calls: ProtocolCalls::default(),
        }
    }

    /// Makes a statement. Not counted.
    pub fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<StatementId, DbError> {
        self.connection.prepare(sql, params)
    }

    /// Sets up the session, now and after each reconnect. Not counted.
    pub fn on_connect(&mut self, sql: &str) -> Result<(), DbError> {
        self.connection.on_connect(sql)
    }

    /// Reads rows. Not counted.
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

    /// Runs a text and counts it, for statements that are never prepared.
    pub fn query(&mut self, sql: &[u8]) -> Result<(), DbError> {
        let effect = self.connection.query(sql);
        let effect = effect.inspect_err(|_| self.failed = Some(first_word(sql)))?;
        self.count(effect);
        Ok(())
    }

    /// As [`Client::query`], and returns the rows, every value as text.
    pub fn query_rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        let rows = self.connection.rows(sql);
        let rows = rows.inspect_err(|_| self.failed = Some(first_word(sql.as_bytes())))?;
        self.count(Effect::Read);
        Ok(rows)
    }

    /// Counts a rollback that the workload itself made.
    pub fn rolled_back(&mut self) {
        self.rollbacks += 1;
    }

    /// Counts a commit without a COMMIT statement, as in a procedure.
    pub fn committed(&mut self) {
        self.commits += 1;
    }

    /// Runs the statement that commits, and counts the commit.
    pub fn commit(&mut self, statement: StatementId) -> Result<(), DbError> {
        self.execute(statement, &[])?;
        self.commits += 1;
        Ok(())
    }

    /// Starts a transaction of this type; earlier time of the session is waiting time. Without this
    /// call an event is of the first type.
    pub fn start(&mut self, kind: usize) {
        let now = monotonic_ns();
        self.kind = kind;
        // In an open loop it was due at that time, regardless of what the session waited for.
        self.began_ns = self.due_ns.unwrap_or(now);
        self.waited_ns = (now - self.began_ns).max(0);
    }

    /// Starts an event, which was due at this time in an open loop.
    pub(super) fn begin_event(&mut self, due_ns: Option<i64>) {
        self.due_ns = due_ns;
        self.start(0);
    }

    /// The type of the current transaction.
    pub(super) fn kind(&self) -> usize {
        self.kind
    }

    /// The place of the last error.
    pub(super) fn place(&self) -> FailurePlace {
        FailurePlace::Event(self.kind, self.failed.clone())
    }

    /// Sleeps for this time, as a user who thinks. Returns false at once when the phase is over;
    /// the session then returns `Step::Exhausted`.
    pub fn think(&mut self, nanoseconds: i64) -> bool {
        self.control
            .sleep_until(self.control.now_ns() + nanoseconds)
            .is_some()
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

    /// Adds the connection's new calls to the counters. Done before each wait, so that no event
    /// pays for it.
    pub(super) fn flush_call_counts(&mut self) {
        let (now, before) = (self.connection.calls(), self.calls);
        self.stats
            .add(0, Counter::Prepares, now.prepares - before.prepares);
        self.stats
            .add(0, Counter::Executes, now.executes - before.executes);
        self.stats.add(0, Counter::Closes, now.closes - before.closes);
        self.calls = now;
    }

    /// Counts an event that succeeded, and its latency: retries and a reconnect by `--reconnect`
    /// included.
    pub(super) fn complete_event(&mut self, events: u64) -> Result<(), DbError> {
        self.events_since_connect += 1;
        if self.events_since_connect == self.reconnects.every {
            self.events_since_connect = 0;
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

    /// Reopens the connection. While no server answers, as during its start, it retries for the
    /// time of `--reconnect-timeout`.
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
                return Err(reconnect_timeout(&error, self.reconnects.timeout_ns));
            }
            // An event also waits for its connection after the end of the phase; an abort ends the
            // wait.
            if self
                .control
                .sleep_until(self.control.now_ns() + RETRY_NS)
                .is_none()
            {
                if self.control.aborted() {
                    return Ok(());
                }
                thread::sleep(Duration::from_nanos(RETRY_NS.unsigned_abs()));
            }
        }
    }

    /// Undoes an event after an ignored error, so that the next BEGIN commits nothing of it.
    pub(super) fn retry_after(&mut self, error: &DbError, undo: Undo) -> Result<(), DbError> {
        (self.rows, self.commits, self.rollbacks) = (0, 0, 0);
        self.stats.add(self.kind, Counter::Errors, 1);
        if error.connection_lost() {
            return self.reopen(Counter::Reconnects);
        }
        if undo == Undo::Rollback {
            match self.connection.query(b"ROLLBACK") {
                Ok(effect) => self.count(effect),
                // The first statement of the event meets the same error, which is handled there.
                Err(lost) if lost.connection_lost() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The verb of a statement, whose other words contain values.
fn first_word(sql: &[u8]) -> String {
    let word = sql.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    String::from_utf8_lossy(word).into_owned()
}

/// The last error with the timeout.
fn reconnect_timeout(error: &DbError, timeout_ns: i64) -> DbError {
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
