//! The verb `run` with a guest: the server's status, the phases, the run directory and the exit status around its process.

use std::path::Path;

use anyhow::Result;
use anyhow::anyhow;
use serde_json::Value as Json;
use serde_json::json;

use super::Guest;
use super::Job;
use super::outcome::Judged;
use super::result;
use super::sockets::sockets;
use crate::driver::Driver;
use crate::driver::mysql::MysqlDriver;
use crate::output::Output;
use crate::recording::About;
use crate::recording::Recording;
use crate::series::reported::Stamp;
use crate::server::Server;

/// A guest's run.
pub struct Run<'a> {
    /// Its name among several; empty if it is the only one.
    pub point: &'a str,
    /// Who runs.
    pub guest: &'a dyn Guest,
    /// What it is asked for.
    pub job: &'a Job<'a>,
    /// Our own way to the server.
    pub driver: &'a MysqlDriver,
}

impl Run<'_> {
    /// Runs, prints, writes: the content of `result.json`, and the exit status or one line.
    pub fn run(&self) -> (Option<Json>, Result<u8>) {
        let mut result = None;
        let status = self.try_run(&mut result);
        (result, status)
    }

    fn try_run(&self, result: &mut Option<Json>) -> Result<u8> {
        let (job, driver) = (self.job, self.driver);
        let place = |error: anyhow::Error| driver.explain(error);
        // Before anything is started, as for a native run. A command may have no database.
        let connected = match self.guest.name() {
            "command" => driver.connect_without_database(),
            _ => driver.connect(),
        };
        let server = connected
            .and_then(Server::read)
            .map_err(|error| place(error.into()))?;
        let mut watch = Watch {
            server,
            recording: None,
            output: job.output,
            window: <(Stamp, Stamp)>::default(),
        };
        let fits = job
            .workload
            .preflight(job.values, job.threads, watch.server.connection());
        fits.map_err(place)?;
        let out = job.values.text("out")?.map(Path::new);
        let types = job.workload.descriptor().types;
        watch.recording = out.map(|run| Recording::create(run, types)).transpose()?;
        job.output.line(&format!(
            "Running {} with {} on {}, {} threads",
            job.workload.descriptor().name,
            self.guest.name(),
            driver.account.describe(),
            job.threads
        ));
        let before = sockets();
        let judged = self.guest.run(job, &mut watch).map_err(place);
        let (mut judged, error) = match judged {
            Ok(judged) => (judged, None),
            Err(error) => (Judged::default(), Some(error)),
        };
        judged.details.insert(
            "sockets".to_owned(),
            json!({"before": before, "after": sockets()}),
        );
        self.conclude(&judged, error, &watch, result)
    }

    fn conclude(
        &self,
        judged: &Judged,
        error: Option<anyhow::Error>,
        watch: &Watch<'_>,
        result: &mut Option<Json>,
    ) -> Result<u8> {
        let interrupted = judged
            .signal
            .map(|signal| format!("interrupted by signal {signal}"));
        let said = error.as_ref().map(|error| format!("{error:#}"));
        let reason = interrupted.or(said).or_else(|| judged.failure.clone());
        for flag in &judged.flags {
            self.job.output.line(&format!("Flagged: {flag}"));
        }
        *result = self.write(judged, watch, reason.as_deref())?;
        match (judged.signal, reason) {
            (Some(signal), Some(reason)) => {
                eprintln!(
                    "loadprint-load: {reason}: {} gives no figures before its end",
                    self.guest.name()
                );
                Ok(u8::try_from(128 + signal).unwrap_or(2))
            }
            (_, Some(reason)) => Err(anyhow!(reason)),
            (_, None) => Ok(0),
        }
    }

    fn write(&self, judged: &Judged, watch: &Watch<'_>, reason: Option<&str>) -> Result<Option<Json>> {
        let (job, name) = (self.job, self.guest.name());
        let descriptor = job.workload.descriptor();
        let options = job.values.to_json_with_seed(job.seed);
        let server = self.driver.account.describe();
        let about = result::About {
            point: self.point,
            workload: descriptor.name,
            generator: name,
            operation: judged.operation.as_deref().unwrap_or(descriptor.operation),
            options: &options,
            threads: job.threads,
            seed: job.seed,
            server: &server,
        };
        let json = result::result_json(&about, judged, reason);
        let Some(recording) = &watch.recording else {
            return Ok(json);
        };
        recording.write_server(&watch.server.to_json())?;
        if let Some(json) = &json {
            let kind = judged.types.first().map_or(descriptor.name, |(name, ..)| name);
            let kind = if judged.types.len() > 1 { "all" } else { kind };
            recording.write_guest_result(json, &judged.series, kind)?;
            if let Some(histogram) = result::histogram(&judged.histogram) {
                let (begin, end) = watch.window;
                recording.write_histogram(&histogram, kind, (begin.realtime_ns, end.realtime_ns))?;
            }
        }
        recording.finish(&About {
            generator: name,
            workload: descriptor.name,
            parameters: &options,
            seed: job.seed,
            operation: about.operation,
            server: watch.server.version(),
            reason,
        })?;
        Ok(json)
    }
}

/// Stamps phases and reads the server's status at the marks in a guest's output; the guest does not wait for it.
pub struct Watch<'a> {
    server: Server,
    recording: Option<Recording>,
    output: &'a Output,
    window: (Stamp, Stamp),
}

impl Watch<'_> {
    /// A phase has begun: its mark has just been read.
    ///
    /// # Errors
    /// When the stamp cannot be written or the server does not answer.
    pub fn begins(&mut self, phase: &str) -> Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.begins(phase)?;
        }
        if phase == "warmup" {
            self.output.line("Warming up (not counted)");
            return Ok(self.server.warm_up()?);
        }
        self.window.0 = Stamp::now();
        self.output.line("Measuring");
        Ok(self.server.begin()?)
    }

    /// A phase has ended.
    ///
    /// # Errors
    /// When the stamp cannot be written.
    pub fn ended(&mut self, phase: &str) -> Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.ended(phase)?;
        }
        if phase == "measure" {
            self.window.1 = Stamp::now();
            self.server.end();
        }
        Ok(())
    }

    /// A line for people.
    pub fn line(&self, text: &str) {
        self.output.line(text);
    }

    /// Begin and end of `measure`, as far as it came.
    pub fn window(&self) -> (Stamp, Stamp) {
        self.window
    }

    /// Seconds between the marks of `measure`, by our own clock.
    pub fn measured_seconds(&self) -> f64 {
        self.window.1.since(self.window.0)
    }

    /// By how much a status counter of the server grew in `measure`.
    pub fn growth(&self, name: &str) -> Option<u64> {
        self.server.growth(name)
    }
}
