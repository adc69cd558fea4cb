//! Guests: other load generators that run in place of the native one, as their users run them, and give the same run directory.
//! A guest's figures come from its own output; whether they can stand is judged by what they say, never by an exit status.

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
pub use command::AnyCommand;
pub use options::options_of;
pub use outcome::Judged;
pub use run::Run;
use run::Watch;

/// All guests.
static GUESTS: &[&dyn Guest] = &[&sysbench::Sysbench, &hammerdb::HammerDb, &AnyCommand];

/// What a guest is asked to do.
pub struct Job<'a> {
    /// The workload, as the native generator declares it.
    pub workload: &'a dyn Workload,
    /// The options.
    pub values: &'a Values,
    /// Where the server is; the database is set.
    pub account: &'a Account,
    /// Threads, connections or virtual users.
    pub threads: usize,
    /// The master seed, where the guest takes one.
    pub seed: u64,
    /// Where lines for people go.
    pub output: &'a Output,
}

/// Another load generator.
pub trait Guest: Sync {
    /// As `--generator` calls it.
    fn name(&self) -> &'static str;

    /// True if it has this workload.
    fn knows(&self, workload: &str) -> bool;

    /// True if the database must be there before it prepares its tables.
    fn wants_database(&self) -> bool {
        false
    }

    /// Carries out `prepare`, `warmup` or `cleanup`.
    ///
    /// # Errors
    /// One line: what the guest said, or what it cannot do.
    fn operate(&self, verb: Verb, job: &Job<'_>) -> Result<()>;

    /// The seed that it can take in place of this one.
    ///
    /// # Errors
    /// When a seed was given that it cannot take.
    fn seed(&self, _values: &Values, seed: u64) -> Result<u64> {
        Ok(seed)
    }

    /// Runs the load and tells `watch` of its phases as they come; refuses options that it lacks before it starts anything.
    ///
    /// # Errors
    /// When it could not be started. How a run that was started ended is in what is returned.
    fn run(&self, job: &Job<'_>, watch: &mut Watch<'_>) -> Result<Judged>;
}

/// The generators that know a workload, the native one first.
pub fn generators(workload: &str) -> Vec<&'static str> {
    let guests = GUESTS.iter().filter(|guest| guest.knows(workload));
    let native = (workload != "command").then_some("native");
    native
        .into_iter()
        .chain(guests.map(|guest| guest.name()))
        .collect()
}

/// The guest that `--generator` names; none for the native generator.
///
/// # Errors
/// When it does not know the workload.
pub fn chosen(workload: &str, values: &Values) -> Result<Option<&'static dyn Guest>> {
    if !values.declares("generator") {
        return Ok(None);
    }
    let name = values.text("generator")?.unwrap_or("native");
    if name == "native" {
        return Ok(None);
    }
    let guest = GUESTS.iter().copied().find(|guest| guest.name() == name);
    match guest.filter(|guest| guest.knows(workload)) {
        Some(guest) => Ok(Some(guest)),
        None => bail!(
            "--generator={name}: it has no {workload}: {} has",
            generators(workload).join(", ")
        ),
    }
}
