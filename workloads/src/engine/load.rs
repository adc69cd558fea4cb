//! Defines what the engine runs: a load, and the session of each thread.

use serde_json::Map;
use serde_json::Value as Json;

use super::client::Client;
use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::protocol::Mode;

/// A workload with its options; shared by all threads of a run.
pub trait Load: Sync {
    /// Makes the state of a thread and prepares its statements on `client`.
    fn session(&self, thread: usize, client: &mut Client<'_>) -> Result<Box<dyn Session>, DbError>;

    /// Mean number of operations per event: `--rate` counts operations.
    fn operations_per_event(&self) -> f64 {
        1.0
    }

    /// Totals of `result.json` that the client cannot count, such as rows that stored procedures
    /// write; null there.
    fn unseen(&self) -> &'static [&'static str] {
        &[]
    }

    /// Number of statements that a connection keeps open on the server, for the check of its limits.
    fn handles(&self, _: &Mode) -> usize {
        0
    }

    /// True if queued work is finished after the time is over; the phase lasts until then.
    fn drains(&self) -> bool {
        false
    }

    /// Starts a phase, while all threads wait; `events` limits the work of a load that drains.
    fn begin(&self, _events: Option<u64>) {}

    /// Adds no further work to this phase.
    fn stop(&self) {}

    /// Reads what the workload counts on the server, before and after `measure`, while all threads
    /// wait.
    fn at_rest(&self, _moment: Moment, _connection: &mut dyn Connection) -> Result<(), DbError> {
        Ok(())
    }

    /// Facts about the ended phase and its length, for `result.json` and the summary.
    fn details(&self, _seconds: f64, _restarted: bool) -> Map<String, Json> {
        Map::new()
    }
}

/// When a load may query the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before `measure`.
    Before,
    /// After `measure`.
    After,
}

/// The result of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The number of operations; zero if the transaction does not count as one.
    Done(u64),
    /// No work is left.
    Exhausted,
}

/// A thread's part of a load.
pub trait Session {
    /// Runs one event. The engine calls it again after an ignored error.
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError>;

    /// Sends what the session still has buffered, after all phases. Not counted.
    fn finish(&mut self, _client: &mut Client<'_>) -> Result<(), DbError> {
        Ok(())
    }
}
