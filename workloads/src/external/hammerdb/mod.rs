//! Runs HammerDB for TPROC-C: its command line interface with a generated script. HAMMERDB_HOME is
//! its directory.

mod installation;
mod report;
mod script;

use std::env;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::ExternalGenerator;
use super::Job;
use super::account::PrivateDir;
use super::child::Child;
use super::program::Program;
use super::program::Schedule;
use crate::options::Common;
use crate::options::Values;
use crate::options::options;
use crate::verb::Verb;
use installation::HammerDbInstallation;
use report::Report;

options! {
    /// Options of the workload.
    pub OPTIONS, Options;
    #[expect(dead_code, reason = "external::selected reads it")]
    generator: String = Choice(&["native", "hammerdb"])
        .default("native")
        .help("native, or HammerDB 4.9 to 6 in the directory HAMMERDB_HOME"),
    hammerdb_timeprofile: bool = Flag
        .default("on")
        .help("hammerdb: time its transactions, for latencies per type"),
}

/// Time in addition to ramp-up and duration: virtual users start, finish their transaction, and
/// times are summed.
const GRACE: Duration = Duration::from_secs(300);

/// Minutes of a run that is ended by a signal.
const ENDLESS: u64 = 7 * 24 * 60;

/// The generator.
pub struct HammerDb;

impl ExternalGenerator for HammerDb {
    fn name(&self) -> &'static str {
        "hammerdb"
    }

    fn check(&self, values: &Values) -> Result<()> {
        script::refuse_unsupported(values)
    }

    fn start(&self, verb: Verb, job: &Job<'_>) -> Result<Option<Program>> {
        start(env::var_os("HAMMERDB_HOME"), verb, job)
    }
}

/// Starts the installation in `home`, the value of HAMMERDB_HOME.
///
/// # Errors
/// As [`ExternalGenerator::start`].
pub fn start(home: Option<OsString>, verb: Verb, job: &Job<'_>) -> Result<Option<Program>> {
    let installation = HammerDbInstallation::at(home)?;
    script::refuse_unsupported(job.values)?;
    let mut report = Report::new(verb, job.threads, installation.hint());
    let mut schedule = Schedule::default();
    if verb == Verb::Run {
        let common: Common = job.values.read()?;
        (report.rampup, report.duration) = if common.paused {
            (0, ENDLESS)
        } else {
            (
                script::minutes(common.warmup_time, "warmup-time")?,
                script::minutes(common.time, "time")?,
            )
        };
        let timed = Duration::from_secs(60 * (report.rampup + report.duration));
        schedule.limit = Some(timed + Duration::from_secs_f64(report.starting()) + GRACE);
    }
    let account = script::account(job.account)?;
    let script = match verb {
        Verb::Prepare => script::prepare(&account, job.values, job.threads)?,
        Verb::Cleanup => script::cleanup(&account, job.values)?,
        Verb::Run => script::run(&account, job.values, job.threads, report.rampup, report.duration)?,
        _ => bail!("HammerDB has no warmup: omit the verb, or use --generator=native"),
    };
    let private = PrivateDir::create()?;
    let command = installation.command(&private, &script)?;
    Ok(Some(Program {
        child: Child::start(command).with_context(|| installation.hint())?,
        _private: private,
        schedule,
        reader: Box::new(report),
    }))
}
