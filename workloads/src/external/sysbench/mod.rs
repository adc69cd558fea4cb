//! Runs sysbench 1.0.20 or 1.1.

mod arguments;
mod consistency;
mod installation;
mod report;

use std::path::PathBuf;
use std::process::Command;
use std::process::ExitStatus;
use std::time::Duration;
use std::time::Instant;

use anyhow::Result;
use anyhow::bail;
use serde_json::json;

use super::ExternalGenerator;
use super::Job;
use super::account;
use super::child::Child;
use super::child::ChildEvent;
use super::outcome::ExternalOutcome;
use super::outcome::Latency;
use super::outcome::short;
use super::private_dir::PrivateDir;
use super::run::RunMonitor;
use crate::options::Values;
use crate::series::reported;
use crate::series::reported::ReportedInterval;
use crate::series::reported::Timestamp;
use crate::verb::Verb;
use consistency::Expected;
use installation::SysbenchInstallation;
use report::Block;
use report::Interval;
use report::Mark;
use report::Report;

/// Lua scripts of sysbench that are also native workloads.
pub const SCRIPTS: &[&str] = &[
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_delete",
    "oltp_insert",
    "bulk_insert",
    "select_random_points",
    "select_random_ranges",
];

/// Time in addition to the run: threads start, and the last event may wait for a lock.
const GRACE: Duration = Duration::from_secs(120);

/// The generator.
pub struct Sysbench;

impl ExternalGenerator for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn supports(&self, workload: &str) -> bool {
        SCRIPTS.contains(&workload)
    }

    fn needs_database(&self) -> bool {
        true
    }

    fn seed(&self, values: &Values, seed: u64) -> Result<u64> {
        const MAX_SEED: u64 = i32::MAX as u64;
        if values.int("rand-seed")? == 0 {
            return Ok(seed & MAX_SEED | 1);
        }
        if seed > MAX_SEED {
            bail!("--rand-seed={seed}: sysbench supports seeds up to {MAX_SEED}");
        }
        Ok(seed)
    }

    fn run_verb(&self, verb: Verb, job: &Job<'_>) -> Result<()> {
        let start = Start::of(job)?;
        let verb = match verb {
            Verb::Prepare => "prepare",
            // The older name, which both versions have.
            Verb::Warmup => "prewarm",
            _ => "cleanup",
        };
        let (mut child, _secret) = start.child(verb, &[])?;
        let (mut report, mut last) = (Report::default(), String::new());
        loop {
            match child.next(None)? {
                ChildEvent::Line(_, line) => {
                    report.parse_line(&line);
                    job.output.line(&short(&line));
                    last = if line.is_empty() { last } else { short(&line) };
                }
                ChildEvent::Signal(signal) => bail!("interrupted by signal {signal}"),
                ChildEvent::Due => {}
                ChildEvent::Ended(status) => {
                    return match report.fatal.first() {
                        Some(fatal) => bail!("sysbench {verb}: {fatal}"),
                        None if !status.success() => bail!("sysbench {verb} ended with {status}: {last}"),
                        None => Ok(()),
                    };
                }
            }
        }
    }

    fn run(&self, job: &Job<'_>, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome> {
        let start = Start::of(job)?;
        let arguments = arguments::run(&start.installation, job.values, job.seed)?;
        let warmup = arguments::whole(job.values, "warmup-time")?;
        let (child, _secret) = start.child("run", &arguments)?;
        let mut run = SysbenchRun {
            monitor,
            report: Report::default(),
            series: Vec::new(),
            report_every: u64::try_from(job.values.int("report-interval")?)?,
            warmup,
            warms_up: start.installation.warms_up,
            phase: None,
            window_at: None,
        };
        let limited = job.values.int("events")? == 0 || job.values.given("time")?;
        let time = arguments::whole(job.values, "time")?;
        let seconds = (limited && time > 0).then_some(time);
        let limit = seconds.map(|seconds| Duration::from_secs(warmup + seconds) + GRACE);
        let ended = run.follow(child, limit)?;
        let expected = Expected {
            statements: consistency::statements(job.workload.descriptor().name, job.values)?,
            threads: job.threads,
            closed_loop: arguments::rate(job.values)? == 0,
            seconds: seconds.map(|seconds| seconds as f64),
        };
        let mut outcome = run.into_outcome(&ended, &expected, job.workload.descriptor().name);
        outcome.version = Some(format!("sysbench {}", start.installation.version));
        outcome
            .details
            .insert("sysbench".to_owned(), json!(start.installation.version));
        Ok(outcome)
    }
}

/// The parts of a sysbench command line.
struct Start {
    installation: SysbenchInstallation,
    script: String,
    common: Vec<String>,
    password: String,
}

impl Start {
    fn of(job: &Job<'_>) -> Result<Self> {
        let name = job.workload.descriptor().name;
        let script = match job.values.text("sysbench-scripts")? {
            Some(dir) => format!("{dir}/{name}.lua"),
            None => name.to_owned(),
        };
        let program = job
            .values
            .text("sysbench-path")?
            .map_or_else(|| PathBuf::from("sysbench"), PathBuf::from);
        let installation = SysbenchInstallation::detect(&program, &script)?;
        let account = account::resolve(job.account)?;
        account.require_trusted_network("sysbench")?;
        Ok(Self {
            common: arguments::common(&installation, job.values, &account, job.threads)?,
            installation,
            script,
            password: account.password,
        })
    }

    /// Starts it. The returned directory contains the file with the password.
    fn child(&self, verb: &str, arguments: &[String]) -> Result<(Child, PrivateDir)> {
        let secret = PrivateDir::create()?;
        let file = secret.write("sysbench.cnf", &arguments::password_line(&self.password)?)?;
        let mut command = Command::new(&self.installation.program);
        command
            .arg(format!("--config-file={}", file.display()))
            .arg(&self.script);
        command.args(&self.common).args(arguments).arg(verb);
        Ok((Child::start(command)?, secret))
    }
}

/// How sysbench ended.
enum SysbenchEnd {
    Exited(ExitStatus),
    Signal(i32),
    TimedOut(Duration),
}

/// A running sysbench.
struct SysbenchRun<'a, 'b> {
    monitor: &'a mut RunMonitor<'b>,
    report: Report,
    series: Vec<ReportedInterval>,
    report_every: u64,
    warmup: u64,
    warms_up: bool,
    phase: Option<&'static str>,
    /// When the window starts, if no line marks it.
    window_at: Option<Instant>,
}

impl SysbenchRun<'_, '_> {
    fn follow(&mut self, mut child: Child, limit: Option<Duration>) -> Result<SysbenchEnd> {
        let began = Instant::now();
        let limit = limit.map(|limit| (began + limit, limit));
        loop {
            let due = self.window_at.into_iter().chain(limit.map(|(at, _)| at)).min();
            match child.next(due)? {
                ChildEvent::Line(_, line) => self.line(&line)?,
                ChildEvent::Signal(signal) => return Ok(SysbenchEnd::Signal(signal)),
                ChildEvent::Ended(status) => return Ok(SysbenchEnd::Exited(status)),
                ChildEvent::Due => {
                    if self.window_at.is_some_and(|at| at <= Instant::now()) {
                        self.window_at = None;
                        self.phase("measure")?;
                    }
                    if let Some((at, limit)) = limit
                        && at <= Instant::now()
                    {
                        return Ok(SysbenchEnd::TimedOut(limit));
                    }
                }
            }
        }
    }

    fn phase(&mut self, next: &'static str) -> Result<()> {
        if let Some(phase) = self.phase.take() {
            self.monitor.end_phase(phase)?;
        }
        self.monitor.start_phase(next)?;
        self.phase = Some(next);
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<()> {
        match self.report.parse_line(line) {
            Mark::Started if self.warmup == 0 => self.phase("measure"),
            Mark::Started if !self.warms_up => self.phase("warmup"),
            Mark::WarmingUp => {
                self.window_at = Some(Instant::now() + Duration::from_secs(self.warmup));
                self.phase("warmup")
            }
            Mark::Checkpoint => self.phase("measure"),
            Mark::Interval(interval) => {
                self.interval(&interval, line);
                Ok(())
            }
            Mark::Final => {
                self.monitor.line(line);
                self.phase
                    .take()
                    .map_or(Ok(()), |phase| self.monitor.end_phase(phase))
            }
            Mark::Other if self.report.last.is_some() => {
                self.monitor.line(line);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn interval(&mut self, interval: &Interval, line: &str) {
        if self.report_every > 0 && interval.second.is_multiple_of(self.report_every) {
            self.monitor.line(line);
        }
        // 1.0 prints the line of the second that the checkpoint ended right after the checkpoint.
        let warm = !self.warms_up && interval.second <= self.warmup;
        if self.phase != Some("measure") || warm {
            return;
        }
        let mut rates = vec![("events", interval.events)];
        if let Some([queries, reads, writes, others]) = interval.queries {
            rates.extend([
                ("queries", queries),
                ("reads", reads),
                ("writes", writes),
                ("others", others),
            ]);
        }
        rates.extend(interval.errors.map(|rate| ("errors", rate)));
        rates.extend(interval.reconnects.map(|rate| ("reconnects", rate)));
        let (begin, _) = self.monitor.window();
        let row = ReportedInterval::from_rates(
            &self.series,
            begin,
            Timestamp::now(),
            &rates,
            Some(interval.percentile),
        );
        self.series.push(row);
    }

    fn into_outcome(self, ended: &SysbenchEnd, expected: &Expected, script: &str) -> ExternalOutcome {
        let first = self.report.fatal.first().cloned();
        let mut outcome = match (&self.report.last, ended) {
            (_, SysbenchEnd::Signal(signal)) => ExternalOutcome {
                signal: Some(*signal),
                ..ExternalOutcome::default()
            },
            (_, SysbenchEnd::TimedOut(limit)) => ExternalOutcome::failed(format!(
                "sysbench had not ended {} s after its start and was killed",
                limit.as_secs()
            )),
            (None, SysbenchEnd::Exited(status)) => {
                let why = first.clone().unwrap_or_else(|| "no summary".to_owned());
                ExternalOutcome::failed(format!(
                    "sysbench ended with {status} and printed no figures: {why}"
                ))
            }
            (Some(block), SysbenchEnd::Exited(status)) => {
                let checkpoint = self
                    .report
                    .checkpoint
                    .as_ref()
                    .and_then(|block| block.seconds)
                    .unwrap_or(0.0);
                let mut outcome = figures(
                    block,
                    checkpoint,
                    script,
                    &self.report.histogram,
                    (self.series, self.monitor.window()),
                    expected,
                );
                if !status.success() {
                    outcome.failure = Some(format!("sysbench ended with {status}"));
                }
                outcome
            }
        };
        if outcome.failure.is_none() && outcome.signal.is_none() {
            outcome.failure = first;
        }
        outcome
    }
}

/// The totals of the window; `checkpoint` is the time that 1.0 had run when it reset its counters.
fn figures(
    block: &Block,
    checkpoint: f64,
    script: &str,
    histogram: &[(f64, u64)],
    (mut series, window): (Vec<ReportedInterval>, (Timestamp, Timestamp)),
    expected: &Expected,
) -> ExternalOutcome {
    let Some(seconds) = block
        .seconds
        .map(|seconds| seconds - checkpoint)
        .filter(|seconds| *seconds > 0.0)
    else {
        return ExternalOutcome::failed("the summary of sysbench contains no total time".to_owned());
    };
    let events = block.events.unwrap_or(0);
    let columns = [
        ("events", block.events),
        ("queries", block.queries),
        ("reads", block.reads),
        ("writes", block.writes),
        ("others", block.others),
        ("errors", block.errors),
        ("reconnects", block.reconnects),
    ];
    let totals = columns.map(|(name, total)| (name.to_owned(), json!(total)));
    let known: Vec<_> = columns
        .iter()
        .filter_map(|(name, total)| Some((*name, (*total)?)))
        .collect();
    reported::reconcile(&mut series, window, &known);
    let latency = latency(block, histogram);
    let failure = (events == 0).then(|| "sysbench counted no events in the window".to_owned());
    ExternalOutcome {
        seconds: Some(seconds),
        totals: totals.into_iter().collect(),
        latency,
        types: vec![(script.to_owned(), events, latency)],
        histogram: histogram.to_vec(),
        series,
        flags: consistency::flags(block, seconds, expected),
        failure,
        ..ExternalOutcome::default()
    }
}

/// Latency of the summary, with percentiles from the histogram if it was printed (its buckets are
/// 1.8 % wide).
fn latency(block: &Block, histogram: &[(f64, u64)]) -> Latency {
    let some = block.events.filter(|events| *events > 0);
    let printed = |rank: u32| {
        block
            .percentile
            .filter(|(of, _)| *of == rank)
            .map(|(_, value)| value)
    };
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    let quantile = |share: f64| -> Option<f64> {
        let wanted = (total as f64 * share).ceil() as u64;
        let mut seen = 0;
        let reaches = |(_, count): &&(f64, u64)| {
            seen += count;
            seen >= wanted
        };
        histogram.iter().find(reaches).map(|(value, _)| *value)
    };
    Latency {
        min: some.and(block.min),
        // The mean has two decimals, too few for a point select; the sum has more.
        mean: some
            .and_then(|events| block.sum.map(|sum| sum / events as f64))
            .or(block.avg),
        p50: printed(50).or_else(|| quantile(0.5)),
        p95: printed(95).or_else(|| quantile(0.95)),
        p99: printed(99).or_else(|| quantile(0.99)),
        p999: quantile(0.999),
        max: some.and(block.max),
    }
}
