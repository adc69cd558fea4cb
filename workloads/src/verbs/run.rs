//! Runs the native generator once: checks, engine, printed report, run directory, exit status.

use anyhow::Result;
use anyhow::anyhow;
use loadprint_recording::FORMAT_VERSION;
use serde_json::Value as Json;
use serde_json::json;

use super::limits;
use crate::driver::Driver;
use crate::driver::mysql::MysqlDriver;
use crate::engine;
use crate::engine::FailurePlace;
use crate::engine::Interval;
use crate::engine::Measured;
use crate::engine::Observer;
use crate::engine::Outcome;
use crate::engine::Plan;
use crate::engine::ThreadFailure;
use crate::engine::interrupts::Interrupts;
use crate::engine::load::Load;
use crate::engine::load::Moment;
use crate::options::Common;
use crate::options::Values;
use crate::output::Output;
use crate::recording::Recording;
use crate::recording::RunInfo;
use crate::report;
use crate::result;
use crate::server::Server;
use crate::stats::Counter;
use crate::stats::Totals;
use crate::workload::Workload;

/// The settings of one run.
pub struct NativeRun<'a> {
    /// Its name; empty if the command has one run.
    pub point: &'a str,
    pub workload: &'a dyn Workload,
    pub values: &'a Values,
    pub driver: &'a MysqlDriver,
    pub seed: u64,
    pub plan: Plan,
    pub output: &'a Output,
    pub interrupts: &'a Interrupts,
}

impl NativeRun<'_> {
    /// Runs, prints and records; returns the exit status, and the content of `result.json` in
    /// `result`, also of a run that failed in `measure`.
    ///
    /// # Errors
    /// One line.
    pub fn run(&self, result: &mut Option<Json>) -> Result<u8> {
        let values = self.values;
        let threads = self.plan.threads;
        let load = self.workload.load(values, threads, self.seed)?;
        // Before the run directory is created: a server that does not answer, or tables that do not
        // match, leave no files.
        let server = self.driver.connect().and_then(Server::read);
        let mut server = server.map_err(|error| self.driver.explain(error.into()))?;
        let preflight = self.workload.preflight(values, threads, server.connection());
        preflight.map_err(|error| self.driver.explain(error))?;
        limits::raise_file_limit(threads)?;
        // The limits of the first server are used for all, among which the connections are divided.
        let connections = threads.div_ceil(self.driver.account.endpoints.len());
        let handles = load.handles(&self.driver.mode);
        let within_limits = limits::check_server(connections, handles, server.connection());
        within_limits.map_err(|error| self.driver.explain(error))?;
        let types = self.workload.descriptor().types;
        let options: Common = values.read()?;
        let mut observer = RunObserver {
            load: load.as_ref(),
            server,
            recording: options
                .out
                .map(|run| Recording::create(&run, types))
                .transpose()?,
            output: self.output,
            threads,
            report_every: options.report_interval,
            percentile: options.percentile,
            pending: Totals::default(),
            pending_ns: 0,
        };
        self.output.line(&format!(
            "Running {} on {} with {threads} threads, seed {}",
            self.workload.descriptor().name,
            self.driver.account.describe(),
            self.seed
        ));
        let mut plan = self.plan.clone();
        if let Some(rate) = &mut plan.rate {
            rate.per_second /= load.operations_per_event();
        }
        let outcome = engine::run(
            load.as_ref(),
            self.driver,
            types.len(),
            &plan,
            self.interrupts,
            &mut observer,
        );
        self.conclude(outcome, load.as_ref(), &mut observer, result)
    }

    fn conclude(
        &self,
        mut outcome: Outcome,
        load: &dyn Load,
        observer: &mut RunObserver<'_>,
        result: &mut Option<Json>,
    ) -> Result<u8> {
        let error = outcome.error.take();
        let failure = outcome.failure.as_ref().map(|failure| self.describe(failure));
        let early_end = outcome.early_end.clone().map(|reason| anyhow!(reason));
        let signal = outcome.signal.or_else(|| self.interrupts.ended_calls());
        // Threads that did not end their event after a signal.
        let cut_off = signal.is_some() && early_end.is_some();
        // The first error of a thread has precedence over its consequences; a closed connection has
        // precedence over both.
        let error = early_end
            .or(failure)
            .or_else(|| error.map(|error| self.driver.explain(error)))
            .filter(|_| !(self.interrupts.ended_calls().is_some() || cut_off));
        // After a failure the connection may hang.
        if error.is_none()
            && self.interrupts.ended_calls().is_none()
            && let Some(recording) = &mut observer.recording
        {
            recording.record_clock("after", &mut observer.server);
        }
        // Nothing else ends a run without a limit.
        let endless = self.plan.time.is_none() && self.plan.events.is_none();
        let signal = signal.filter(|_| !endless || cut_off || outcome.measured.is_none());
        let interrupted = signal.map(|signal| anyhow!("interrupted by signal {signal}"));
        let reason = error
            .as_ref()
            .or(interrupted.as_ref())
            .map(|error| format!("{error:#}"));
        self.write(&outcome, load, observer, reason.as_deref(), result)?;
        match (error, signal) {
            (Some(error), _) => Err(error),
            (None, Some(signal)) => {
                eprintln!(
                    "loadprint-load: interrupted by signal {signal}: the results contain the part of the run before it"
                );
                Ok(u8::try_from(128 + signal).unwrap_or(2))
            }
            (None, None) => Ok(0),
        }
    }

    /// Prints the traffic per event, if --protocol is given.
    fn print_traffic(&self, measured: &Measured, observer: &RunObserver<'_>) -> Result<()> {
        let account = &self.driver.account;
        let protocol = self.values.read::<Common>()?.protocol;
        if protocol == "auto" {
            return Ok(());
        }
        let events = Totals::sum(&measured.totals).get(Counter::Events);
        if account.endpoints.len() > 1 {
            let (all, first) = (account.endpoints.len(), account.endpoint(0).describe());
            self.output.line(&format!(
                "Server counters are those of {first}, the first of {all} addresses"
            ));
        } else if let Some(lines) = observer.server.traffic(&protocol, events) {
            self.output.line(&lines);
        }
        Ok(())
    }

    /// Adds thread, place and hint to the first error of a thread.
    fn describe(&self, failure: &ThreadFailure) -> anyhow::Error {
        let types = self.workload.descriptor().types;
        let place = match &failure.place {
            FailurePlace::Connecting(ready) => format!("connecting ({ready} threads were ready)"),
            FailurePlace::Preparing => "preparing its session".to_owned(),
            FailurePlace::Event(kind, statement) => {
                let kind = types.get(*kind).copied().unwrap_or_default();
                match statement {
                    Some(statement) => format!("{kind}, `{statement}`"),
                    None => kind.to_owned(),
                }
            }
        };
        let error = anyhow::Error::from(failure.error.clone());
        self.driver
            .explain(error.context(format!("thread {}, {place}", failure.thread)))
    }

    /// Prints before it writes: a full disk does not lose the figures.
    fn write(
        &self,
        outcome: &Outcome,
        load: &dyn Load,
        observer: &mut RunObserver<'_>,
        reason: Option<&str>,
        result: &mut Option<Json>,
    ) -> Result<()> {
        let descriptor = self.workload.descriptor();
        let options = self.values.to_json_with_seed(self.seed);
        if let Some(measured) = &outcome.measured {
            let account = &self.driver.account;
            let about = json!({
                "format_version": FORMAT_VERSION,
                "workload": descriptor.name,
                "generator": "native",
                "point": Some(self.point).filter(|name| !name.is_empty()),
                "operation": descriptor.operation,
                "options": options,
                "threads": self.plan.threads,
                "seed": self.seed,
                "server": account.describe(),
                "servers": account.addresses(),
                "tls": {"mode": account.login.tls.mode.word(), "cipher": observer.server.cipher()},
                "compression": account.compression,
                "protocol": self.driver.mode.protocol,
                "status": if reason.is_none() { "complete" } else { "failed" },
                "reason": reason,
            });
            let (rate, percentile) = (self.plan.rate, observer.percentile);
            let mut json = result::result_json(about, descriptor.types, rate, percentile, outcome, measured);
            let details = load.details(measured.seconds, observer.server.restarted);
            json.insert("details".to_owned(), Json::Object(details));
            for name in load.unseen() {
                json.insert((*name).to_owned(), Json::Null);
            }
            let json = Json::Object(json);
            self.output.line("");
            if self.values.read::<Common>()?.histogram {
                let latency = Totals::sum(&measured.totals).latency;
                self.output.line(&report::histogram(&latency));
            }
            self.output.line(&report::summary(&json, percentile));
            self.print_traffic(measured, observer)?;
            *result = Some(json);
        }
        let Some(recording) = &mut observer.recording else {
            return Ok(());
        };
        recording.write_server(&observer.server.to_json())?;
        if let Some(json) = result {
            recording.write_result(json)?;
        }
        recording.finish(&RunInfo {
            generator: "native",
            workload: descriptor.name,
            parameters: &options,
            seed: self.seed,
            operation: descriptor.operation,
            server: observer.server.version(),
            reason,
        })
    }
}

/// Prints interval lines, records intervals and phases, reads the server at rest.
struct RunObserver<'a> {
    load: &'a dyn Load,
    server: Server,
    recording: Option<Recording>,
    output: &'a Output,
    threads: usize,
    report_every: u32,
    percentile: u8,
    /// Totals since the last printed line.
    pending: Totals,
    pending_ns: i64,
}

impl RunObserver<'_> {
    fn report(&mut self, interval: &Interval) {
        self.pending.merge(&Totals::sum(&interval.totals));
        self.pending_ns += interval.to_ns - interval.from_ns;
        let wanted = i64::from(self.report_every) * 1_000_000_000;
        // A last interval of some milliseconds gets no line; one of nearly full length gets one.
        if self.report_every == 0 || self.pending_ns < wanted * 9 / 10 {
            return;
        }
        let line = report::interval_line(
            interval.to_ns as f64 / 1e9,
            self.pending_ns as f64 / 1e9,
            self.threads,
            self.percentile,
            &self.pending,
        );
        self.output.line(&line);
        if let Some(backlog) = interval.backlog {
            let line = report::backlog_line(interval.to_ns as f64 / 1e9, backlog);
            self.output.line(&line);
        }
        self.pending = Totals::default();
        self.pending_ns = 0;
    }
}

impl Observer for RunObserver<'_> {
    fn waiting(&mut self, line: &str) -> Result<()> {
        self.output.line(line);
        Ok(())
    }

    fn ready(&mut self) -> Result<()> {
        if let Some(recording) = &mut self.recording {
            recording.record_clock("before", &mut self.server);
        }
        Ok(())
    }

    fn at_rest_before_warmup(&mut self) -> Result<()> {
        Ok(self.server.read_before_warmup()?)
    }

    fn phase_starts(&mut self, phase: &str) -> Result<()> {
        self.output.line(match phase {
            "ramp" => "Starting the threads one by one (not counted)",
            "warmup" => "Warming up (not counted)",
            _ => "Measuring",
        });
        self.pending = Totals::default();
        self.pending_ns = 0;
        self.recording
            .as_mut()
            .map_or(Ok(()), |recording| recording.start_phase(phase))
    }

    fn interval(&mut self, phase: &str, interval: Interval) -> Result<()> {
        self.report(&interval);
        if let (Some(recording), "measure") = (&mut self.recording, phase) {
            recording.keep(&interval)?;
        }
        Ok(())
    }

    fn turn(&mut self, event: &str, in_event: usize) -> Result<()> {
        self.recording
            .as_mut()
            .map_or(Ok(()), |recording| recording.write_turn(event, Some(in_event)))
    }

    fn phase_ended(&mut self, phase: &str) -> Result<()> {
        self.recording
            .as_mut()
            .map_or(Ok(()), |recording| recording.end_phase(phase))
    }

    fn at_rest_before(&mut self) -> Result<()> {
        self.load.at_rest(Moment::Before, self.server.connection())?;
        Ok(self.server.read_before_measure()?)
    }

    fn at_rest_after(&mut self) -> Result<()> {
        self.server.read_after_measure();
        Ok(self.load.at_rest(Moment::After, self.server.connection())?)
    }
}
