//! Runs an external generator: reads the server's status, records the phases, writes the run
//! directory, returns the exit status.

use std::path::Path;

use anyhow::Result;
use anyhow::anyhow;
use serde_json::Value as Json;
use serde_json::json;

use super::ExternalGenerator;
use super::Job;
use super::outcome::ExternalOutcome;
use super::result;
use super::sockets::sockets;
use crate::driver::Driver;
use crate::driver::mysql::MysqlDriver;
use crate::output::Output;
use crate::recording::Recording;
use crate::recording::RunInfo;
use crate::series::reported::Timestamp;
use crate::server::Server;
use crate::server_clock;

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
    /// Runs, prints and records; returns the content of `result.json`, and the exit status or an
    /// error of one line.
    pub fn run(&self) -> (Option<Json>, Result<u8>) {
        let mut result = None;
        let status = self.try_run(&mut result);
        (result, status)
    }

    fn try_run(&self, result: &mut Option<Json>) -> Result<u8> {
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
        let mut monitor = RunMonitor {
            server,
            recording: None,
            output: job.output,
            window: <(Timestamp, Timestamp)>::default(),
        };
        let preflight = job
            .workload
            .preflight(job.values, job.threads, monitor.server.connection());
        preflight.map_err(place)?;
        let out = job.values.text("out")?.map(Path::new);
        let types = job.workload.descriptor().types;
        monitor.recording = out.map(|run| Recording::create(run, types)).transpose()?;
        job.output.line(&format!(
            "Running {} with {} on {}, {} threads",
            job.workload.descriptor().name,
            self.generator.name(),
            driver.account.describe(),
            job.threads
        ));
        server_clock::record(monitor.recording.as_mut(), "before", &mut monitor.server);
        let before = sockets();
        let outcome = self.generator.run(job, &mut monitor).map_err(place);
        let (mut outcome, error) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(error) => (ExternalOutcome::default(), Some(error)),
        };
        outcome.details.insert(
            "sockets".to_owned(),
            json!({"before": before, "after": sockets()}),
        );
        if error.is_none() && outcome.failure.is_none() && outcome.signal.is_none() {
            server_clock::record(monitor.recording.as_mut(), "after", &mut monitor.server);
        }
        self.conclude(&outcome, error, &monitor, result)
    }

    fn conclude(
        &self,
        outcome: &ExternalOutcome,
        error: Option<anyhow::Error>,
        monitor: &RunMonitor<'_>,
        result: &mut Option<Json>,
    ) -> Result<u8> {
        let interrupted = outcome
            .signal
            .map(|signal| format!("interrupted by signal {signal}"));
        let error_text = error.as_ref().map(|error| format!("{error:#}"));
        let reason = interrupted.or(error_text).or_else(|| outcome.failure.clone());
        for flag in &outcome.flags {
            self.job.output.line(&format!("Warning: {flag}"));
        }
        *result = self.write(outcome, monitor, reason.as_deref())?;
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

    fn write(
        &self,
        outcome: &ExternalOutcome,
        monitor: &RunMonitor<'_>,
        reason: Option<&str>,
    ) -> Result<Option<Json>> {
        let (job, name) = (self.job, self.generator.name());
        let descriptor = job.workload.descriptor();
        let options = job.values.to_json_with_seed(job.seed);
        let server = self.driver.account.describe();
        let context = result::ResultContext {
            point: self.point,
            workload: descriptor.name,
            generator: name,
            operation: outcome.operation.as_deref().unwrap_or(descriptor.operation),
            options: &options,
            threads: job.threads,
            seed: job.seed,
            server: &server,
        };
        let json = result::result_json(&context, outcome, reason);
        let Some(recording) = &monitor.recording else {
            return Ok(json);
        };
        recording.write_server(&monitor.server.to_json())?;
        if let Some(json) = &json {
            let kind = outcome.types.first().map_or(descriptor.name, |(name, ..)| name);
            let kind = if outcome.types.len() > 1 { "all" } else { kind };
            recording.write_external_result(json, &outcome.series, kind)?;
            if let Some(histogram) = result::histogram(&outcome.histogram) {
                let (begin, end) = monitor.window;
                recording.write_histogram(&histogram, kind, (begin.realtime_ns, end.realtime_ns))?;
            }
        }
        recording.finish(&RunInfo {
            generator: name,
            workload: descriptor.name,
            parameters: &options,
            seed: job.seed,
            operation: context.operation,
            server: monitor.server.version(),
            reason,
        })?;
        Ok(json)
    }
}

/// Records phases and reads the server's status when marks appear in the generator's output; the
/// generator does not wait for it.
pub struct RunMonitor<'a> {
    server: Server,
    recording: Option<Recording>,
    output: &'a Output,
    window: (Timestamp, Timestamp),
}

impl RunMonitor<'_> {
    /// Starts a phase, whose mark was just read.
    ///
    /// # Errors
    /// If the phase cannot be recorded or the server does not answer.
    pub fn start_phase(&mut self, phase: &str) -> Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.start_phase(phase)?;
        }
        if phase == "warmup" {
            self.output.line("Warming up (not counted)");
            return Ok(self.server.read_before_warmup()?);
        }
        self.window.0 = Timestamp::now();
        self.output.line("Measuring");
        Ok(self.server.read_before_measure()?)
    }

    /// Ends a phase.
    ///
    /// # Errors
    /// If the phase cannot be recorded.
    pub fn end_phase(&mut self, phase: &str) -> Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.end_phase(phase)?;
        }
        if phase == "measure" {
            self.window.1 = Timestamp::now();
            self.server.read_after_measure();
        }
        Ok(())
    }

    /// Prints a line.
    pub fn line(&self, text: &str) {
        self.output.line(text);
    }

    /// Start and end of `measure` so far.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        self.window
    }

    /// Seconds between the marks of `measure`, by the clock of this process.
    pub fn measured_seconds(&self) -> f64 {
        self.window.1.since(self.window.0)
    }

    /// Growth of a status counter in `measure`.
    pub fn growth(&self, name: &str) -> Option<u64> {
        self.server.growth(name)
    }
}
