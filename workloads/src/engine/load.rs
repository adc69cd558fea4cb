//! What the engine runs: a load, and the session of each thread.

use serde_json::Map;
use serde_json::Value as Json;

use super::client::Client;
use crate::driver::Connection;
use crate::driver::DbError;

/// A workload with its options fixed: shared by all threads of a run.
pub trait Load: Sync {
    /// The state of one thread; connects nothing, prepares its statements on `client`.
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError>;

    /// What one event is, where the options decide it; else what the descriptor says.
    fn operation(&self) -> Option<&'static str> {
        None
    }

    /// Connections, each with a thread of its own, for so many `--threads`: more where a client of the workload has several.
    fn connections(&self, threads: usize) -> usize {
        threads
    }

    /// Operations of one event on average: `--rate` counts operations.
    fn operations_per_event(&self) -> f64 {
        1.0
    }

    /// Totals of `result.json` that the client cannot see, such as rows that stored procedures write: null there.
    fn unseen(&self) -> &'static [&'static str] {
        &[]
    }

    /// True if the work is finite: running out of it before the time is a proper end.
    fn ends(&self) -> bool {
        false
    }

    /// Statements that one connection prepares, for the budget of the server.
    fn handles(&self) -> usize {
        0
    }

    /// True if queued work is finished after the time is over; the phase then lasts until it is.
    fn drains(&self) -> bool {
        false
    }

    /// A phase begins, all threads waiting; `events` bounds the work of a load that drains.
    fn begin(&self, _events: Option<u64>) {}

    /// No further work for this phase.
    fn stop(&self) {}

    /// Reads what the workload counts on the server itself; before and after `measure`, nothing moving.
    fn at_rest(&self, _moment: Moment, _connection: &mut dyn Connection) -> Result<(), DbError> {
        Ok(())
    }

    /// Facts about the phase that ended and lasted so long, for `result.json` and the summary.
    fn details(&self, _seconds: f64) -> Map<String, Json> {
        Map::new()
    }
}

/// When a load may look at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// `measure` is about to begin.
    Before,
    /// `measure` has ended.
    After,
}

/// What one event achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many operations; none if the transaction counts as no operation of its own.
    Done(u64),
    /// There is no work left.
    Exhausted,
}

/// One thread's part of a load.
pub trait Session {
    /// Runs one event. After an ignorable error it is called again.
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError>;

    /// After all phases: sends what the session still holds back. Nothing of it is counted.
    fn finish(&mut self, _client: &mut Client<'_>) -> Result<(), DbError> {
        Ok(())
    }
}
