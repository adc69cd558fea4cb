//! Runs any program as a load. Its operations are counted by its own output or by the server.

mod operations;
mod options;
mod report;
mod words;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::ExternalGenerator;
use super::Job;
use super::account::PrivateDir;
use super::child::Child;
use super::program::Program;
use super::program::Schedule;
use crate::engine::load::Load;
use crate::options::Common;
use crate::options::Values;
use crate::verb::Verb;
use crate::workload::Descriptor;
use crate::workload::Setup;
use crate::workload::Workload;
use options::Options;
use report::Report;

/// The generator, and its only workload.
pub struct CommandWorkload;

static DESCRIPTOR: Descriptor = Descriptor {
    name: "command",
    summary: "any program; it gets the account in a file, and its operations are read from its output or from the server",
    operation: "operation of the command",
    types: &["command"],
    options: &[options::OPTIONS, options::GENERATOR],
    database: "sbtest",
};

impl Workload for CommandWorkload {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn prepare(&self, _setup: &Setup<'_>) -> Result<()> {
        bail!("a command has no native prepare: use --prepare-command")
    }

    fn cleanup(&self, _setup: &Setup<'_>) -> Result<()> {
        bail!("a command has no native cleanup: use --cleanup-command")
    }

    fn load(&self, _values: &Values, _threads: usize, _seed: u64) -> Result<Box<dyn Load>> {
        bail!("a command has no native load: use --generator=command")
    }
}

fn refuse_events(values: &Values) -> Result<()> {
    let given: Common = values.read()?;
    if given.events > 0 {
        bail!("--events: a command ends by itself, or after --time; remove it");
    }
    Ok(())
}

impl ExternalGenerator for CommandWorkload {
    fn name(&self) -> &'static str {
        "command"
    }

    fn check(&self, values: &Values) -> Result<()> {
        let options: Options = values.read()?;
        if options.command.is_none() && options.prepare_command.is_some() {
            return Ok(()); // of a data set
        }
        refuse_events(values)?;
        Report::of_run(&options).map(drop)
    }

    fn start(&self, verb: Verb, job: &Job<'_>) -> Result<Option<Program>> {
        let options: Options = job.values.read()?;
        let (option, text) = match verb {
            Verb::Prepare => ("prepare-command", &options.prepare_command),
            Verb::Warmup => ("warmup-command", &options.warmup_command),
            Verb::Run => ("command", &options.command),
            _ => ("cleanup-command", &options.cleanup_command),
        };
        let mut report = Report::new(option);
        let mut schedule = Schedule::default();
        if verb == Verb::Run {
            refuse_events(job.values)?;
            report = Report::of_run(&options)?;
            schedule = report.schedule(options.grace, &job.values.read()?);
        }
        let Some(text) = text else {
            job.output
                .line(&format!("Nothing to do: --{option} is not given"));
            return Ok(None);
        };
        let private = PrivateDir::create()?;
        let command = words::command(job, (option, text), options.shell, &private)?;
        Ok(Some(Program {
            child: Child::start(command).with_context(|| format!("--{option}"))?,
            _private: private,
            schedule,
            reader: Box::new(report),
        }))
    }
}
