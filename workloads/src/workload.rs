//! What a workload is: it declares itself, prepares data, and gives each thread a session;
//! it never looks at a clock and counts nothing itself.

use anyhow::Result;

use crate::driver::Connection;
use crate::driver::Driver;
use crate::driver::protocol::Protocol;
use crate::engine::load::Load;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::output::Output;

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
