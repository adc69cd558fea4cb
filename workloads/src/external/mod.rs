//! Runs other load generators in place of the native one; they give the same run directory.
//! Their figures come from their own output, which is checked; an exit status alone is not trusted.

mod account;
mod child;
mod command;
mod hammerdb;
mod outcome;
mod program;
mod run;
mod sockets;
mod sysbench;
#[cfg(test)]
mod transcripts;
mod turns;

use anyhow::Result;
use serde::Deserialize;

use crate::driver::connect::Account;
use crate::options::Kind;
use crate::options::OptionSpec;
use crate::options::Values;
use crate::output::Output;
use crate::verb::Verb;
use crate::workload::Descriptor;
use crate::workload::Workload;
pub use command::CommandWorkload;
pub use hammerdb::OPTIONS as HAMMERDB;
use program::Program;
pub use run::ExternalRun;
pub use sysbench::OPTIONS as SYSBENCH;

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

    /// True if the database must exist before it prepares its tables.
    fn needs_database(&self) -> bool {
        false
    }

    /// The seed to use in place of this one.
    ///
    /// # Errors
    /// If a given seed is not supported.
    fn seed(&self, _values: &Values, seed: u64) -> Result<u64> {
        Ok(seed)
    }

    /// Checks the options of a run, as far as that needs neither the program nor a server.
    ///
    /// # Errors
    /// One line: the first unusable option.
    fn check(&self, _values: &Values) -> Result<()> {
        Ok(())
    }

    /// Starts the program for a verb. Refuses unsupported options before. `None`, with a printed
    /// line, if nothing is to do.
    ///
    /// # Errors
    /// One line: an unsupported verb or option, or why the program cannot be started.
    fn start(&self, verb: Verb, job: &Job<'_>) -> Result<Option<Program>>;
}

/// The generators of a workload, the native one first.
pub fn generators(workload: &Descriptor) -> &'static [&'static str] {
    let mut options = workload.options.iter().copied().flatten();
    options
        .find_map(|option| match option.kind {
            Kind::Choice(names) if option.name == "generator" => Some(names),
            _ => None,
        })
        .unwrap_or_default()
}

#[derive(Deserialize)]
struct Selected {
    generator: String,
}

/// The external generator in `--generator`, whose values depend on the workload; `None` for the
/// native one.
///
/// # Errors
/// None for the options of a workload.
pub fn selected(values: &Values) -> Result<Option<&'static dyn ExternalGenerator>> {
    let Selected { generator: name } = values.read()?;
    let mut all = GENERATORS.iter().copied();
    Ok(all.find(|generator| generator.name() == name))
}

/// The option of a workload without external generators.
pub const NATIVE: &[OptionSpec] = &[OptionSpec::new("generator", Kind::Choice(&["native"]))
    .default("native")
    .help("native is the only generator of this workload")];
