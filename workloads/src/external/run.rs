//! Runs an external generator: connects to the server, follows the program, writes the run
//! directory, returns the exit status.

use std::time::Duration;

use anyhow::Result;
use anyhow::anyhow;
use anyhow::bail;
use serde_json::Value as Json;
use serde_json::json;

use super::ExternalGenerator;
use super::Job;
use super::outcome::ExternalOutcome;
use super::program::RunMonitor;
use super::sockets::sockets;
use super::turns;
use crate::driver::Driver;
use crate::driver::mysql::MysqlDriver;
use crate::options::Common;
use crate::recording::Recording;
use crate::recording::RunInfo;
use crate::server::Server;
use crate::verb::Verb;

/// A run of an external generator.
pub struct ExternalRun<'a> {
    /// Its name; empty if the command has one run.
    pub point: &'a str,
    /// The generator.
    pub generator: &'a dyn ExternalGenerator,
    /// Its task.
    pub job: &'a Job<'a>,
    /// Connects to the server.
    pub driver: &'a MysqlDriver,
}

impl ExternalRun<'_> {
    /// Runs, prints and records; returns the exit status, and the content of `result.json` in
    /// `result`.
    ///
    /// # Errors
    /// One line.
    pub fn run(&self, result: &mut Option<Json>) -> Result<u8> {
        let (job, driver) = (self.job, self.driver);
        let place = |error: anyhow::Error| driver.explain(error);
        // Before the program starts, as for a native run. A command may have no database.
        let connected = match self.generator.name() {
            "command" => driver.connect_without_database(),
            _ => driver.connect(),
        };
        let server = connected
            .and_then(Server::read)
            .map_err(|error| place(error.into()))?;
        let mut monitor = RunMonitor::new(server, job.output);
        let descriptor = job.workload.descriptor();
        let preflight = job
            .workload
            .preflight(job.values, job.threads, monitor.server.connection());
        preflight.map_err(place)?;
        let out = job.values.read::<Common>()?.out;
        monitor.recording = out
            .map(|run| Recording::create(&run, descriptor.types))
            .transpose()?;
        job.output.line(&format!(
            "Running {} with {} on {}, {} threads",
            descriptor.name,
            self.generator.name(),
            driver.account.describe(),
            job.threads
        ));
        if let Some(recording) = &mut monitor.recording {
            recording.record_clock("before", &mut monitor.server);
        }
        let before = sockets();
        let outcome = self.follow(&mut monitor).map_err(place);
        let (mut outcome, error) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(error) => (ExternalOutcome::default(), Some(error)),
        };
        outcome.details["sockets"] = json!({"before": before, "after": sockets()});
        if error.is_none()
            && outcome.failure.is_none()
            && outcome.signal.is_none()
            && let Some(recording) = &mut monitor.recording
        {
            recording.record_clock("after", &mut monitor.server);
        }
        let interrupted = outcome
            .signal
            .map(|signal| format!("interrupted by signal {signal}"));
        let error_text = error.as_ref().map(|error| format!("{error:#}"));
        let reason = interrupted.or(error_text).or_else(|| outcome.failure.clone());
        for flag in &outcome.flags {
            job.output.line(&format!("Warning: {flag}"));
        }
        *result = self.write(&outcome, &monitor, reason.as_deref())?;
        match (outcome.signal, reason) {
            (Some(signal), Some(reason)) => {
                eprintln!(
                    "loadprint-load: {reason}: {} prints its figures only at its end",
                    self.generator.name()
                );
                Ok(u8::try_from(128 + signal).unwrap_or(2))
            }
            (_, Some(reason)) => Err(anyhow!(reason)),
            (_, None) => Ok(0),
        }
    }

    fn follow(&self, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome> {
        let given: Common = self.job.values.read()?;
        if given.paused && (given.time > 0.0 || given.events > 0) {
            let name = self.generator.name();
            bail!(
                "--paused: {name} has pauses in --time and --events: give --time=0, and end it with SIGTERM"
            );
        }
        match self.generator.start(Verb::Run, self.job)? {
            Some(program) if given.paused => {
                let warmup = Duration::from_secs_f64(given.warmup_time);
                turns::run(program, monitor, warmup)
            }
            Some(program) => program.run(monitor),
            None => Ok(ExternalOutcome::default()),
        }
    }

    fn write(
        &self,
        outcome: &ExternalOutcome,
        monitor: &RunMonitor<'_>,
        reason: Option<&str>,
    ) -> Result<Option<Json>> {
        let (job, generator) = (self.job, self.generator.name());
        let descriptor = job.workload.descriptor();
        let options = job.values.to_json_with_seed(job.seed);
        let operation = outcome.operation.as_deref().unwrap_or(descriptor.operation);
        let about = json!({
            "workload": descriptor.name,
            "generator": generator,
            "point": Some(self.point).filter(|name| !name.is_empty()),
            "operation": operation,
            "options": options,
            "threads": job.threads,
            "seed": job.seed,
            "server": self.driver.account.describe(),
        });
        let json = outcome.to_json(&about, reason);
        let Some(recording) = &monitor.recording else {
            return Ok(json);
        };
        recording.write_server(&monitor.server.to_json())?;
        if let Some(json) = &json {
            let kind = match outcome.types.as_slice() {
                [] => descriptor.name,
                [(name, ..)] => name,
                _ => "all",
            };
            recording.write_external_result(json, &outcome.series, &outcome.buckets(), kind)?;
        }
        recording.finish(&RunInfo {
            generator,
            workload: descriptor.name,
            parameters: &options,
            seed: job.seed,
            operation,
            server: monitor.server.version(),
            reason,
        })?;
        Ok(json)
    }
}
