//! One run of the verb `run`: engine, lines, run directory and exit status together.

use std::path::Path;

use anyhow::Result;
use anyhow::anyhow;
use serde_json::Value as Json;
use serde_json::json;

use super::budget;
use super::budget::Needs;
use super::explain;
use super::options_json;
use crate::driver::Driver;
use crate::driver::mysql::MysqlDriver;
use crate::engine;
use crate::engine::Interval;
use crate::engine::Measured;
use crate::engine::Observer;
use crate::engine::Outcome;
use crate::engine::Place;
use crate::engine::Plan;
use crate::engine::ThreadFailure;
use crate::engine::interrupts::Interrupts;
use crate::options::Values;
use crate::output::Output;
use crate::recording::About;
use crate::recording::Recording;
use crate::report;
use crate::result;
use crate::server::Server;
use crate::stats::Counter;
use crate::stats::Totals;
use crate::workload::Load;
use crate::workload::Moment;
use crate::workload::Workload;

/// Everything one run was asked for.
pub struct Invocation<'a> {
    /// Its name among several; empty if it is the only one.
    pub point: &'a str,
    pub workload: &'a dyn Workload,
    pub values: &'a Values,
    pub driver: &'a MysqlDriver,
    pub seed: u64,
    pub plan: Plan,
    pub output: &'a Output,
    pub interrupts: &'a Interrupts,
}

/// How a run ended.
pub struct Ended {
    /// The content of `result.json`, also of a run that failed in `measure`.
    pub result: Option<Json>,
    /// The exit status, or one line.
    pub status: Result<u8>,
}

impl Invocation<'_> {
    /// Runs, prints, writes.
    pub fn run(&self) -> Ended {
        let mut result = None;
        let status = self.try_run(&mut result);
        Ended { result, status }
    }

    fn try_run(&self, result: &mut Option<Json>) -> Result<u8> {
        let values = self.values;
        let load = self.workload.load(values, self.plan.threads, self.seed)?;
        // Before the run directory is made: a server that does not answer, or tables that do not fit, leave nothing behind.
        let server = self.driver.connect().and_then(Server::read);
        let mut server = server.map_err(|error| explain(error.into(), self.driver))?;
        let fits = self
            .workload
            .preflight(values, self.plan.threads, server.connection());
        fits.map_err(|error| explain(error, self.driver))?;
        let connections = load.connections(self.plan.threads);
        budget::of_files(connections)?;
        // The numbers of the first server hold for the others, between which the connections are shared.
        let needs = Needs {
            connections: connections.div_ceil(self.driver.account.endpoints.len()),
            handles: self.driver.mode.handles(load.handles()),
        };
        let afforded = budget::of_server(needs, server.connection());
        afforded.map_err(|error| explain(error, self.driver))?;
        let types = self.workload.descriptor().types;
        let mut watch = Watch {
            load: load.as_ref(),
            server,
            recording: values
                .text("out")?
                .map(|run| Recording::create(Path::new(run), types))
                .transpose()?,
            output: self.output,
            threads: self.plan.threads,
            report_every: u32::try_from(values.int("report-interval")?)?,
            percentile: u8::try_from(values.int("percentile")?)?,
            pending: Totals::default(),
            pending_ns: 0,
        };
        self.output.line(&format!(
            "Running {} on {} with {} threads, seed {}",
            self.workload.descriptor().name,
            self.driver.account.describe(),
            self.plan.threads,
            self.seed
        ));
        let mut plan = self.plan.clone();
        plan.threads = connections;
        if let Some(rate) = &mut plan.rate {
            rate.per_second /= load.operations_per_event();
        }
        let outcome = engine::run(
            load.as_ref(),
            self.driver,
            types.len(),
            &plan,
            self.interrupts,
            &mut watch,
        );
        self.conclude(outcome, load.as_ref(), &mut watch, result)
    }

    fn conclude(
        &self,
        outcome: Result<Outcome>,
        load: &dyn Load,
        watch: &mut Watch<'_>,
        result: &mut Option<Json>,
    ) -> Result<u8> {
        let (outcome, error) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(error) => (Outcome::default(), Some(error)),
        };
        let failure = outcome.failure.as_ref().map(|failure| self.describe(failure));
        let short = outcome.short.clone().map(|reason| anyhow!(reason));
        let signal = outcome.signal.or_else(|| self.interrupts.ended_calls());
        // Threads that did not end their event after a signal.
        let cut_off = signal.is_some() && short.is_some();
        // What a thread met comes before what followed from it; one that was cut off met only that.
        let error = short
            .or(failure)
            .or_else(|| error.map(|error| explain(error, self.driver)))
            .filter(|_| !(self.interrupts.ended_calls().is_some() || cut_off));
        let interrupted = signal.map(|signal| anyhow!("interrupted by signal {signal}"));
        let reason = error
            .as_ref()
            .or(interrupted.as_ref())
            .map(|error| format!("{error:#}"));
        self.write(&outcome, load, watch, reason.as_deref(), result)?;
        match (error, signal) {
            (Some(error), _) => Err(error),
            (None, Some(signal)) => {
                eprintln!(
                    "loadprint-load: interrupted by signal {signal}: the results hold what was measured until then"
                );
                Ok(u8::try_from(128 + signal).unwrap_or(2))
            }
            (None, None) => Ok(0),
        }
    }

    /// For a protocol that was asked for: what an event cost on the wire.
    fn print_traffic(&self, measured: &Measured, watch: &Watch<'_>) -> Result<()> {
        let account = &self.driver.account;
        if self.values.text("protocol")? == Some("auto") {
            return Ok(());
        }
        let events = Totals::sum(&measured.totals).get(Counter::Events);
        let protocol = self.driver.mode.protocol.word();
        if account.endpoints.len() > 1 {
            let (all, first) = (account.endpoints.len(), account.endpoint(0).describe());
            self.output.line(&format!(
                "Counters of the server are those of {first}, the first of {all} addresses"
            ));
        } else if let Some(lines) = watch.server.traffic(protocol, events) {
            self.output.line(&lines);
        }
        Ok(())
    }

    /// The thread that failed first, where it was, and the mend.
    fn describe(&self, failure: &ThreadFailure) -> anyhow::Error {
        let types = self.workload.descriptor().types;
        let place = match &failure.place {
            Place::Connecting(ready) => format!("connecting ({ready} threads were ready)"),
            Place::Preparing => "setting up its session".to_owned(),
            Place::Event(kind, statement) => {
                let kind = types.get(*kind).copied().unwrap_or_default();
                match statement {
                    Some(statement) => format!("{kind}, `{statement}`"),
                    None => kind.to_owned(),
                }
            }
        };
        let error = anyhow::Error::from(failure.error.clone());
        explain(
            error.context(format!("thread {}, {place}", failure.thread)),
            self.driver,
        )
    }

    /// Prints first: a full disk does not cost the figures.
    fn write(
        &self,
        outcome: &Outcome,
        load: &dyn Load,
        watch: &mut Watch<'_>,
        reason: Option<&str>,
        result: &mut Option<Json>,
    ) -> Result<()> {
        let descriptor = self.workload.descriptor();
        let options = options_json(self.values, self.seed);
        if let Some(measured) = &outcome.measured {
            let invocation = result::Invocation {
                point: self.point,
                descriptor,
                operation: load.operation().unwrap_or(descriptor.operation),
                options: &options,
                threads: self.plan.threads,
                rate: self.plan.rate,
                percentile: watch.percentile,
                seed: self.seed,
                server: &self.driver.account.describe(),
                servers: &self.driver.account.addresses(),
                tls: json!({"mode": self.driver.account.tls.mode.word(), "cipher": watch.server.cipher()}),
                compression: self.driver.account.compression,
                protocol: self.driver.mode.protocol.word(),
                unseen: load.unseen(),
            };
            let details = load.details(measured.seconds);
            let json = result::result_json(&invocation, outcome, measured, details, reason)?;
            self.output.line("");
            if self.values.flag("histogram")? {
                let latency = Totals::sum(&measured.totals).latency;
                self.output.line(&report::histogram(&latency));
            }
            self.output.line(&report::summary(&json, watch.percentile));
            self.print_traffic(measured, watch)?;
            *result = Some(json);
        }
        let Some(recording) = &mut watch.recording else {
            return Ok(());
        };
        recording.write_server(&watch.server.to_json())?;
        if let Some(json) = result {
            recording.write_result(json)?;
        }
        recording.finish(&About {
            generator: "native",
            workload: descriptor.name,
            parameters: &options,
            seed: self.seed,
            operation: load.operation().unwrap_or(descriptor.operation),
            server: watch.server.version(),
            reason,
        })
    }
}

/// Prints lines, keeps intervals, stamps phases, reads the server at rest.
struct Watch<'a> {
    load: &'a dyn Load,
    server: Server,
    recording: Option<Recording>,
    output: &'a Output,
    threads: usize,
    report_every: u32,
    percentile: u8,
    /// Intervals since the last line.
    pending: Totals,
    pending_ns: i64,
}

impl Watch<'_> {
    fn report(&mut self, interval: &Interval) -> Result<()> {
        self.pending.merge(&Totals::sum(&interval.totals));
        self.pending_ns += interval.to_ns - interval.from_ns;
        let wanted = i64::from(self.report_every) * 1_000_000_000;
        // A last interval of some milliseconds gets no line, one of nearly the whole length does.
        if self.report_every == 0 || self.pending_ns < wanted * 9 / 10 {
            return Ok(());
        }
        let line = report::interval_line(
            interval.to_ns as f64 / 1e9,
            self.pending_ns as f64 / 1e9,
            self.threads,
            self.percentile,
            &self.pending,
        )?;
        self.output.line(&line);
        if let Some(backlog) = interval.backlog {
            let line = report::backlog_line(interval.to_ns as f64 / 1e9, backlog);
            self.output.line(&line);
        }
        self.pending = Totals::default();
        self.pending_ns = 0;
        Ok(())
    }
}

impl Observer for Watch<'_> {
    fn connecting(&mut self, ready: usize, of: usize) -> Result<()> {
        self.output.line(&format!("{ready} of {of} connections"));
        Ok(())
    }

    fn finishing(&mut self, seconds: u64, threads: usize) -> Result<()> {
        self.output.line(&format!(
            "The time is over since {seconds} s, {threads} threads are still in an event"
        ));
        Ok(())
    }

    fn begins(&mut self, phase: &str) -> Result<()> {
        self.output.line(match phase {
            "ramp" => "Starting the threads one by one (not counted)",
            "warmup" => "Warming up (not counted)",
            _ => "Measuring",
        });
        self.pending = Totals::default();
        self.pending_ns = 0;
        if phase != "measure" {
            self.server.warm_up()?;
        }
        self.recording
            .as_mut()
            .map_or(Ok(()), |recording| recording.begins(phase))
    }

    fn interval(&mut self, phase: &str, interval: Interval) -> Result<()> {
        self.report(&interval)?;
        if let (Some(recording), "measure") = (&mut self.recording, phase) {
            recording.keep(&interval)?;
        }
        Ok(())
    }

    fn ended(&mut self, phase: &str) -> Result<()> {
        self.recording
            .as_mut()
            .map_or(Ok(()), |recording| recording.ended(phase))
    }

    fn at_rest_before(&mut self) -> Result<()> {
        self.load.at_rest(Moment::Before, self.server.connection())?;
        Ok(self.server.begin()?)
    }

    fn at_rest_after(&mut self) -> Result<()> {
        self.server.end();
        Ok(self.load.at_rest(Moment::After, self.server.connection())?)
    }
}
