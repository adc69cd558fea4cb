//! Guests: other load generators that run in place of the native one, as their users run them, and give the same run directory.
//! A generator's figures come from its own output; whether they can stand is outcome by what they say, never by an exit status.

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

/// All external.
static GENERATORS: &[&dyn ExternalGenerator] = &[&sysbench::Sysbench, &hammerdb::HammerDb, &CommandWorkload];

/// What a generator is asked to do.
pub struct Job<'a> {
    /// The workload, as the native generator declares it.
    pub workload: &'a dyn Workload,
    /// The options.
    pub values: &'a Values,
    /// Where the server is; the database is set.
    pub account: &'a Account,
    /// Threads, connections or virtual users.
    pub threads: usize,
    /// The master seed, where the generator takes one.
    pub seed: u64,
    /// Where lines for people go.
    pub output: &'a Output,
}

/// Another load generator.
pub trait ExternalGenerator: Sync {
    /// As `--generator` calls it.
    fn name(&self) -> &'static str;

    /// True if it has this workload.
    fn supports(&self, workload: &str) -> bool;

    /// True if the database must be there before it prepares its tables.
    fn needs_database(&self) -> bool {
        false
    }

    /// Carries out `prepare`, `warmup` or `cleanup`.
    ///
    /// # Errors
    /// One line: what the generator said, or what it cannot do.
    fn operate(&self, verb: Verb, job: &Job<'_>) -> Result<()>;

    /// The seed that it can take in place of this one.
    ///
    /// # Errors
    /// When a seed was given that it cannot take.
    fn seed(&self, _values: &Values, seed: u64) -> Result<u64> {
        Ok(seed)
    }

    /// Runs the load and tells `monitor` of its phases as they come; refuses options that it lacks before it starts anything.
    ///
    /// # Errors
    /// When it could not be started. How a run that was started ended is in what is returned.
    fn run(&self, job: &Job<'_>, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome>;
}

/// The generators that know a workload, the native one first.
pub fn generators(workload: &str) -> Vec<&'static str> {
    let external = GENERATORS.iter().filter(|generator| generator.supports(workload));
    let native = (workload != "command").then_some("native");
    native
        .into_iter()
        .chain(external.map(|generator| generator.name()))
        .collect()
}

/// The generator that `--generator` names; none for the native generator.
///
/// # Errors
/// When it does not know the workload.
pub fn chosen(workload: &str, values: &Values) -> Result<Option<&'static dyn ExternalGenerator>> {
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
            "--generator={name}: it has no {workload}: {} has",
            generators(workload).join(", ")
        ),
    }
}
