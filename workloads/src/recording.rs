//! Writes the load's part of a run directory: `load/*`, and `run.json` and the manifest if no
//! orchestrator writes them.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::Result;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files;
use loadprint_recording::manifest;
use loadprint_recording::phases::PhaseLog;
use serde_json::Value as Json;
use serde_json::json;

use crate::engine::Interval;
use crate::series::Series;
use crate::series::latencies::LatencyTable;
use crate::series::reported;
use crate::series::reported::ReportedInterval;
use crate::server::Server;
use crate::server_clock::ClockReading;
use crate::stats::histogram::Sparse;

const LATENCIES: &str = "latency.parquet";

/// An open run directory.
pub struct Recording {
    run: PathBuf,
    load: PathBuf,
    phases: PhaseLog,
    /// `clock.jsonl` could not be written, and the failure was printed.
    lost_clock: bool,
    boot_id: String,
    started_ns: i64,
    /// Series of `measure`.
    series: Series,
}

impl Recording {
    /// Creates `RUN/load`, which contains no results: the command has looked for them.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(run: &Path, types: &'static [&'static str]) -> Result<Self> {
        let load = run.join("load");
        files::create_directory(&load).context("--out")?;
        let boot_id = clock::boot_id()?;
        Ok(Self {
            series: Series::new(types, LatencyTable::new(load.join(LATENCIES), &boot_id)),
            phases: PhaseLog::create(&load.join("phases.jsonl"), &boot_id)?,
            lost_clock: false,
            run: run.to_owned(),
            load,
            boot_id,
            started_ns: clock::realtime_ns(),
        })
    }

    /// Records the start of a phase.
    pub fn start_phase(&mut self, phase: &str) -> Result<()> {
        Ok(self.phases.begin(phase)?)
    }

    /// Records the end of a phase.
    pub fn end_phase(&mut self, phase: &str) -> Result<()> {
        Ok(self.phases.end(phase)?)
    }

    /// Measures the server's clock and appends a line to `clock.jsonl`; `at` is `before` or `after`. A failure is
    /// printed once and costs only this file: the figures of the run do not need it.
    pub fn record_clock(&mut self, at: &str, server: &mut Server) {
        if !self.lost_clock
            && let Err(error) =
                ClockReading::measure(server.connection()).and_then(|reading| self.write_clock(at, reading))
        {
            self.lost_clock = true;
            let text = format!("{error:#}");
            let line: Vec<&str> = text.split_whitespace().collect();
            eprintln!(
                "loadprint-load: warning: no clock.jsonl: the server's clock could not be recorded {at} the run: {}",
                line.join(" ")
            );
        }
    }

    /// Appends a line to `clock.jsonl`, which the one before the run creates.
    fn write_clock(&self, at: &str, reading: ClockReading) -> Result<()> {
        let file = self.load.join("clock.jsonl");
        let line = format!("{}\n", reading.to_json(at, &self.boot_id));
        let mut log = match at {
            "before" => files::create(&file)?,
            _ => files::append(&file)?,
        };
        log.write_all(line.as_bytes())
            .with_context(|| file.display().to_string())
    }

    /// Appends a line to `turns.jsonl`: what a signal asked for is done.
    pub fn write_turn(&self, event: &str, in_event: Option<usize>) -> Result<()> {
        let line = json!({
            "event": event,
            "in_event": in_event,
            "monotonic_ns": clock::monotonic_ns(),
        });
        let file = self.load.join("turns.jsonl");
        files::append(&file)?
            .write_all(format!("{line}\n").as_bytes())
            .with_context(|| file.display().to_string())
    }

    /// Adds an interval of `measure`.
    pub fn keep(&mut self, interval: &Interval) -> Result<()> {
        self.series.add(interval)
    }

    /// Writes `server.json`.
    pub fn write_server(&self, server: &Json) -> Result<()> {
        Ok(files::write_json(&self.load.join("server.json"), server)?)
    }

    /// Writes the series and the result.
    pub fn write_result(&mut self, result: &Json) -> Result<()> {
        let throughput = self.load.join("throughput.parquet");
        let unseen = |name: &str| result[name].is_null();
        self.series.finish(&throughput, &self.boot_id, unseen)?;
        Ok(files::write_json(&self.load.join("result.json"), result)?)
    }

    /// Writes the series and the result of an external generator; `kind` is the transaction type of
    /// both. The latencies are those of all intervals together, and end with the last one.
    pub fn write_external_result(
        &self,
        result: &Json,
        intervals: &[ReportedInterval],
        latency: &Sparse,
        kind: &str,
    ) -> Result<()> {
        let throughput = self.load.join("throughput.parquet");
        reported::write(&throughput, intervals, kind, &self.boot_id)?;
        if let Some(last) = intervals.last() {
            let mut latencies = LatencyTable::new(self.load.join(LATENCIES), &self.boot_id);
            latencies.add((0, last.end.monotonic_ns), kind, latency)?;
            latencies.finish()?;
        }
        Ok(files::write_json(&self.load.join("result.json"), result)?)
    }

    /// Writes `run.json` and the manifest, unless an orchestrator or a recorder has written
    /// `run.json`.
    pub fn finish(&self, info: &RunInfo<'_>) -> Result<()> {
        let file = self.run.join("run.json");
        if file.exists() {
            return Ok(());
        }
        let id = self
            .run
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        files::write_json(
            &file,
            &json!({
                "format_version": FORMAT_VERSION,
                "id": id,
                "campaign": null,
                "execution": null,
                "block": null,
                "side": null,
                "repeat": null,
                "generator": info.generator,
                "workload": info.workload,
                "parameters": info.parameters,
                "seed": info.seed,
                "operation": info.operation,
                "roles": {},
                "placement": null,
                "versions": {"loadprint-load": env!("CARGO_PKG_VERSION"), "server": info.server},
                "status": if info.reason.is_none() { "complete" } else { "failed" },
                "reason": info.reason,
                "started_realtime_ns": self.started_ns,
                "ended_realtime_ns": clock::realtime_ns(),
            }),
        )?;
        Ok(manifest::write(&self.run)?)
    }
}

/// Content of `run.json` for a run without an orchestrator.
pub struct RunInfo<'a> {
    /// The load generator.
    pub generator: &'a str,
    /// The workload.
    pub workload: &'a str,
    /// All options.
    pub parameters: &'a Json,
    /// Random seed.
    pub seed: u64,
    /// The operation.
    pub operation: &'a str,
    /// The server's version.
    pub server: &'a Json,
    /// Why the run failed.
    pub reason: Option<&'a str>,
}
