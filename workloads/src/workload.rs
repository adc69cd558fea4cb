//! Defines the interface of a workload: it declares its options, prepares data, and makes the load
//! that the engine runs. A workload neither reads a clock nor counts statements.

use anyhow::Result;

use crate::driver::Connection;
use crate::driver::Driver;
use crate::driver::protocol::Protocol;
use crate::engine::load::Load;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::output::Output;

/// Declaration of a workload.
#[derive(Debug)]
pub struct Descriptor {
    /// Name on the command line.
    pub name: &'static str,
    /// Help line.
    pub summary: &'static str,
    /// The operation: the denominator of every figure per operation.
    pub operation: &'static str,
    /// Transaction types, each with its own latency histogram.
    pub types: &'static [&'static str],
    /// Tables of its options; one of them has `--generator`.
    pub options: &'static [&'static [OptionSpec]],
    /// Default of `--mysql-db`.
    pub database: &'static str,
}

/// Context of `prepare`, `warmup`, `check` and `cleanup`.
pub struct Setup<'a> {
    /// Opens connections.
    pub driver: &'a dyn Driver,
    /// The options.
    pub values: &'a Values,
    /// Number of threads.
    pub threads: usize,
    /// Random seed.
    pub seed: u64,
    /// Destination of progress lines.
    pub output: &'a Output,
}

/// Result of `check` for one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// Where the rule is broken; `None` if it passes.
    pub broken: Option<String>,
}

/// One of several runs of a command, such as a step of a benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Point {
    /// Name of its run directory; empty if there is one run.
    pub name: String,
    /// Options of this run, which override the command line.
    pub options: Vec<(&'static str, String)>,
}

/// A workload.
pub trait Workload: Sync {
    /// Its declaration.
    fn descriptor(&self) -> &Descriptor;

    /// The protocol of `--protocol=auto` if `--db-ps-mode` is not given; `None`: server-side
    /// prepared statements, as in sysbench.
    fn protocol(&self) -> Option<Protocol> {
        None
    }

    /// Creates tables and rows; the database exists.
    fn prepare(&self, setup: &Setup<'_>) -> Result<()>;

    /// Reads the data into the buffer pool.
    fn warmup(&self, setup: &Setup<'_>) -> Result<()> {
        let name = self.descriptor().name;
        setup
            .output
            .line(&format!("{name} reads no data: nothing to warm up"));
        Ok(())
    }

    /// The runs of these options, in order; `--threads` has one number in `values`.
    fn points(&self, _values: &Values) -> Result<Vec<Point>> {
        Ok(vec![Point::default()])
    }

    /// Checks before a run that the tables match the options.
    fn preflight(&self, _values: &Values, _threads: usize, _connection: &mut dyn Connection) -> Result<()> {
        Ok(())
    }

    /// Checks the rules of the workload; one finding per rule.
    fn check(&self, _setup: &Setup<'_>) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Drops what `prepare` created.
    fn cleanup(&self, setup: &Setup<'_>) -> Result<()>;

    /// Makes the load for these options.
    fn load(&self, values: &Values, threads: usize, seed: u64) -> Result<Box<dyn Load>>;
}
