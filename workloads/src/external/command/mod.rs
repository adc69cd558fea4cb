//! Runs any program as a load. Its operations are counted by its own output or by the server.

mod follow;
mod operations;
mod options;
mod program;

use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::ExternalGenerator;
use super::Job;
use super::child::Child;
use super::child::ChildEvent;
use super::outcome::ExternalOutcome;
use super::outcome::short;
use super::private_dir::PrivateDir;
use super::run::RunMonitor;
use crate::engine::load::Load;
use crate::options::Values;
use crate::verb::Verb;
use crate::workload::Descriptor;
use crate::workload::Setup;
use crate::workload::Workload;
use follow::CommandRun;
use operations::Operations;

/// The generator, and its only workload.
pub struct CommandWorkload;

static DESCRIPTOR: Descriptor = Descriptor {
    name: "command",
    summary: "any program; it gets the account in a file, and its operations are read from its output or from the server",
    operation: "operation of the command",
    types: &["command"],
    options: &[options::OPTIONS],
    database: "sbtest",
};

impl Workload for CommandWorkload {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn prepare(&self, _setup: &Setup<'_>) -> Result<()> {
        bail!("a command has no native prepare: use --prepare-command")
    }

    fn warmup(&self, _setup: &Setup<'_>) -> Result<()> {
        bail!("a command has no native warmup: use --warmup-command")
    }

    fn cleanup(&self, _setup: &Setup<'_>) -> Result<()> {
        bail!("a command has no native cleanup: use --cleanup-command")
    }

    fn load(&self, _values: &Values, _threads: usize, _seed: u64) -> Result<Box<dyn Load>> {
        bail!("a command has no native load: use --generator=command")
    }
}

impl ExternalGenerator for CommandWorkload {
    fn name(&self) -> &'static str {
        "command"
    }

    fn supports(&self, workload: &str) -> bool {
        workload == "command"
    }

    fn run_verb(&self, verb: Verb, job: &Job<'_>) -> Result<()> {
        let option = match verb {
            Verb::Prepare => "prepare-command",
            Verb::Warmup => "warmup-command",
            _ => "cleanup-command",
        };
        let secret = PrivateDir::create()?;
        let Some(command) = program::program(job, option, &secret)? else {
            job.output
                .line(&format!("Nothing to do: --{option} is not given"));
            return Ok(());
        };
        let mut child = Child::start(command).with_context(|| format!("--{option}"))?;
        let mut last = String::new();
        loop {
            match child.next(None)? {
                ChildEvent::Line(_, line) => {
                    job.output.line(&line);
                    last = line;
                }
                ChildEvent::Signal(signal) => bail!("interrupted by signal {signal}"),
                ChildEvent::Due => {}
                ChildEvent::Ended(status) if status.success() => return Ok(()),
                ChildEvent::Ended(status) => bail!("--{option} ended with {status}: {}", short(&last)),
            }
        }
    }

    fn run(&self, job: &Job<'_>, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome> {
        let values = job.values;
        let operations = Operations::from_options(values)?;
        let secret = PrivateDir::create()?;
        let Some(command) = program::program(job, "command", &secret)? else {
            bail!("--command is missing: give the program and its arguments");
        };
        let mut run = CommandRun::new(values, operations)?;
        let child = Child::start(command).context("--command")?;
        let span =
            |name: &str| -> Result<Duration> { Ok(Duration::from_secs_f64(values.number(name)?.min(1e9))) };
        let ended = run.follow(
            child,
            monitor,
            [span("warmup-time")?, span("time")?, span("grace")?],
        )?;
        run.into_outcome(ended, monitor, values)
    }
}
