//! What a workload is, and the one list of them. A workload declares itself, prepares data, and gives each thread a session;
//! it never looks at a clock and counts nothing itself.

use anyhow::Result;
use serde_json::Map;
use serde_json::Value as Json;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::Driver;
use crate::driver::protocol::Protocol;
use crate::engine::client::Client;
use crate::guest::AnyCommand;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::output::Output;
use crate::suite::arm::ArmInsert;
use crate::suite::insert_benchmark::InsertBenchmark;
use crate::suite::lookup::Lookup;
use crate::suite::oltp::bulk_insert::BulkInsert;
use crate::suite::oltp::scripts;
use crate::suite::tproc_c::TprocC;

/// All workloads.
pub static WORKLOADS: &[&dyn Workload] = &[
    &scripts::READ_WRITE,
    &scripts::READ_ONLY,
    &scripts::WRITE_ONLY,
    &scripts::POINT_SELECT,
    &scripts::UPDATE_INDEX,
    &scripts::UPDATE_NON_INDEX,
    &scripts::DELETE,
    &scripts::INSERT,
    &BulkInsert,
    &scripts::RANDOM_POINTS,
    &scripts::RANDOM_RANGES,
    &Lookup,
    &ArmInsert,
    &InsertBenchmark,
    &TprocC,
    &AnyCommand,
];

/// What a workload says about itself.
#[derive(Debug)]
pub struct Descriptor {
    /// As it is called on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What one event is: the denominator of every figure per operation.
    pub operation: &'static str,
    /// Transaction types, each with its own latency histogram.
    pub types: &'static [&'static str],
    /// Tables of its own options.
    pub options: &'static [&'static [OptionSpec]],
    /// Database when `--mysql-db` is not given.
    pub database: &'static str,
}

/// What `prepare`, `warmup` and `cleanup` work with.
pub struct Setup<'a> {
    /// Opens connections.
    pub driver: &'a dyn Driver,
    /// The options.
    pub values: &'a Values,
    /// Threads to use.
    pub threads: usize,
    /// The master seed.
    pub seed: u64,
    /// Where progress goes.
    pub output: &'a Output,
}

/// What `check` found out about one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// Where it is broken, or nothing.
    pub broken: Option<String>,
}

/// One of several runs that a workload's options ask for, as the steps of a benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Point {
    /// Names its run directory; empty where the options ask for one run.
    pub name: String,
    /// Options of this run, over those of the command line.
    pub options: Vec<(&'static str, String)>,
}

/// A workload.
pub trait Workload: Sync {
    /// Its name, operation and options.
    fn descriptor(&self) -> &Descriptor;

    /// What `--protocol=auto` means where `--db-ps-mode` is not given; nothing: prepared at the start, as in sysbench.
    fn protocol(&self) -> Option<Protocol> {
        None
    }

    /// Makes tables and rows; the database exists.
    fn prepare(&self, setup: &Setup<'_>) -> Result<()>;

    /// Reads the data into the server's memory.
    fn warmup(&self, setup: &Setup<'_>) -> Result<()>;

    /// The runs that these options ask for, in their order; `--threads` has one number in `values` by then.
    fn points(&self, _values: &Values) -> Result<Vec<Point>> {
        Ok(vec![Point::default()])
    }

    /// Judges whether the tables are what the options say; before anything runs.
    fn preflight(&self, _values: &Values, _threads: usize, _connection: &mut dyn Connection) -> Result<()> {
        Ok(())
    }

    /// Checks the data by the rules of the workload, one finding a rule.
    fn check(&self, _setup: &Setup<'_>) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Removes what `prepare` made.
    fn cleanup(&self, setup: &Setup<'_>) -> Result<()>;

    /// What runs, by the options.
    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>>;
}

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

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS
        .iter()
        .copied()
        .find(|workload| workload.descriptor().name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_workload_declares_itself_fully_and_once() {
        let mut names = HashSet::new();
        for workload in WORKLOADS {
            let descriptor = workload.descriptor();
            assert!(
                names.insert(descriptor.name),
                "{} is listed twice",
                descriptor.name
            );
            assert!(!descriptor.types.is_empty() && !descriptor.operation.is_empty());
            let mut options = HashSet::new();
            let guests = crate::guest::options_of(descriptor.name);
            let tables = descriptor
                .options
                .iter()
                .copied()
                .chain([guests, crate::cli::COMMON]);
            for spec in tables.flatten() {
                assert!(
                    options.insert(spec.name),
                    "{}: --{} twice",
                    descriptor.name,
                    spec.name
                );
                assert!(
                    !spec.help.is_empty() && !spec.name.contains('_'),
                    "--{}",
                    spec.name
                );
                if let Some(default) = spec.default {
                    assert!(spec.parse(default).is_ok(), "--{}: default {default}", spec.name);
                }
            }
        }
    }
}
