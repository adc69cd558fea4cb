//! Runs other load generators in place of the native one; they give the same run directory.
//! Their figures come from their own output, which is checked; an exit status alone is not trusted.

mod account;
mod child;
mod command;
mod hammerdb;
mod options;
mod outcome;
mod private_dir;
mod result;
mod run;
mod sockets;
mod sysbench;

use anyhow::Result;
use anyhow::bail;

use crate::driver::connect::Account;
use crate::options::Values;
use crate::output::Output;
use crate::verb::Verb;
use crate::workload::Workload;
pub use command::CommandWorkload;
pub use options::options_of;
pub use outcome::ExternalOutcome;
pub use run::ExternalRun;
use run::RunMonitor;

/// All external generators.
static GENERATORS: &[&dyn ExternalGenerator] = &[&sysbench::Sysbench, &hammerdb::HammerDb, &CommandWorkload];

/// A task for an external generator.
pub struct Job<'a> {
    /// The workload, as the native generator declares it.
    pub workload: &'a dyn Workload,
    /// The options.
    pub values: &'a Values,
    /// Server and account; the database is set.
    pub account: &'a Account,
    /// Threads, connections or virtual users.
    pub threads: usize,
    /// Random seed.
    pub seed: u64,
    /// Destination of printed lines.
    pub output: &'a Output,
}

/// An external load generator.
pub trait ExternalGenerator: Sync {
    /// Name in `--generator`.
    fn name(&self) -> &'static str;

    /// True if it has this workload.
    fn supports(&self, workload: &str) -> bool;

    /// True if the database must exist before it prepares its tables.
    fn needs_database(&self) -> bool {
        false
    }

    /// Runs `prepare`, `warmup` or `cleanup`.
    ///
    /// # Errors
    /// One line: the generator's error, or an unsupported verb or option.
    fn run_verb(&self, verb: Verb, job: &Job<'_>) -> Result<()>;

    /// The seed to use in place of this one.
    ///
    /// # Errors
    /// If a given seed is not supported.
    fn seed(&self, _values: &Values, seed: u64) -> Result<u64> {
        Ok(seed)
    }

    /// Runs the load and reports its phases to `monitor`. Refuses unsupported options before it
    /// starts the program.
    ///
    /// # Errors
    /// If it could not be started. Errors of a started run are in the outcome.
    fn run(&self, job: &Job<'_>, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome>;
}

/// The generators of a workload, the native one first.
pub fn generators(workload: &str) -> Vec<&'static str> {
    let external = GENERATORS.iter().filter(|generator| generator.supports(workload));
    let native = (workload != "command").then_some("native");
    native
        .into_iter()
        .chain(external.map(|generator| generator.name()))
        .collect()
}

/// The external generator in `--generator`; `None` for the native one.
///
/// # Errors
/// If it does not have the workload.
pub fn selected(workload: &str, values: &Values) -> Result<Option<&'static dyn ExternalGenerator>> {
    if !values.declares("generator") {
        return Ok(None);
    }
    let name = values.text("generator")?.unwrap_or("native");
    if name == "native" {
        return Ok(None);
    }
    let generator = GENERATORS
        .iter()
        .copied()
        .find(|generator| generator.name() == name);
    match generator.filter(|generator| generator.supports(workload)) {
        Some(generator) => Ok(Some(generator)),
        None => bail!(
            "--generator={name} does not support {workload}: use {}",
            generators(workload).join(", ")
        ),
    }
}
