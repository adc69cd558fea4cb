//! Runs HammerDB for TPROC-C: its command line interface with a generated script. HAMMERDB_HOME is
//! its directory.

mod installation;
mod report;
mod script;

use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::json;

use super::ExternalGenerator;
use super::Job;
use super::child::Child;
use super::child::ChildEvent;
use super::outcome::ExternalOutcome;
use super::outcome::Latency;
use super::outcome::short;
use super::private_dir::PrivateDir;
use super::run::RunMonitor;
use crate::series::reported;
use crate::series::reported::ReportedInterval;
use crate::series::reported::Timestamp;
use crate::verb::Verb;
use installation::HammerDbInstallation;
use report::Mark;
use report::Report;

/// Time in addition to ramp-up and duration: virtual users start, finish their transaction, and
/// times are summed.
const GRACE: Duration = Duration::from_secs(300);
/// Delay between the starts of two virtual users (`vuset delay`).
const DELAY_S: f64 = 0.5;

/// The generator.
pub struct HammerDb;

impl ExternalGenerator for HammerDb {
    fn name(&self) -> &'static str {
        "hammerdb"
    }

    fn supports(&self, workload: &str) -> bool {
        workload == "tproc_c"
    }

    fn run_verb(&self, verb: Verb, job: &Job<'_>) -> Result<()> {
        let installation = HammerDbInstallation::find()?;
        script::refuse_unsupported(job.values)?;
        let account = script::account(job.account)?;
        let script = match verb {
            Verb::Prepare => script::prepare(&account, job.values, job.threads)?,
            Verb::Cleanup => script::cleanup(&account, job.values)?,
            _ => bail!("HammerDB has no warmup: omit the verb, or use --generator=native"),
        };
        let mut run = HammerDbRun::default();
        let secret = PrivateDir::create()?;
        let child =
            Child::start(installation.command(&secret, &script)?).with_context(|| installation.hint())?;
        match run.follow(child, None, None, job)? {
            HammerDbEnd::Signal(signal) => bail!("interrupted by signal {signal}"),
            HammerDbEnd::TimedOut | HammerDbEnd::Exited => {}
        }
        let report = run.report;
        match report.failed.first() {
            Some(failure) => bail!("HammerDB: {failure}"),
            // HammerDB may delete the schema without a message of a virtual user.
            None if report.complete || (verb == Verb::Cleanup && report.version.is_some()) => Ok(()),
            None => bail!(
                "HammerDB ended before it had finished: {}: {}",
                short(&run.last),
                installation.hint()
            ),
        }
    }

    fn run(&self, job: &Job<'_>, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome> {
        let installation = HammerDbInstallation::find()?;
        script::refuse_unsupported(job.values)?;
        let rampup = script::minutes(job.values, "warmup-time")?;
        let duration = script::minutes(job.values, "time")?;
        let account = script::account(job.account)?;
        let script = script::run(&account, job.values, job.threads, rampup, duration)?;
        let starting = Duration::from_secs_f64(job.threads as f64 * DELAY_S);
        let limit = Duration::from_secs(60 * (rampup + duration)) + starting + GRACE;
        let secret = PrivateDir::create()?;
        let child =
            Child::start(installation.command(&secret, &script)?).with_context(|| installation.hint())?;
        let mut run = HammerDbRun::default();
        let ended = run.follow(child, Some(monitor), Some(limit), job)?;
        let commits = [monitor.growth("Com_commit"), monitor.growth("Com_rollback")];
        let window = monitor.window();
        let mut outcome = run.into_outcome(&ended, job.threads, (rampup, duration), window, &installation);
        for (name, growth) in ["commits", "rollbacks"].into_iter().zip(commits) {
            outcome.totals.insert(name.to_owned(), json!(growth));
        }
        Ok(outcome)
    }
}

/// How HammerDB ended.
enum HammerDbEnd {
    Exited,
    Signal(i32),
    TimedOut,
}

/// A running HammerDB.
#[derive(Default)]
struct HammerDbRun {
    report: Report,
    series: Vec<ReportedInterval>,
    phase: Option<&'static str>,
    last: String,
}

impl HammerDbRun {
    fn follow(
        &mut self,
        mut child: Child,
        mut monitor: Option<&mut RunMonitor<'_>>,
        limit: Option<Duration>,
        job: &Job<'_>,
    ) -> Result<HammerDbEnd> {
        let due = limit.map(|limit| Instant::now() + limit);
        loop {
            let line = match child.next(due)? {
                ChildEvent::Line(_, line) => line,
                ChildEvent::Signal(signal) => return Ok(HammerDbEnd::Signal(signal)),
                ChildEvent::Due => return Ok(HammerDbEnd::TimedOut),
                ChildEvent::Ended(_) => return Ok(HammerDbEnd::Exited),
            };
            let mark = self.report.parse_line(&line);
            if !line.trim().is_empty() && !line.contains("mysql_pass") && !line.starts_with("LOADPRINT") {
                self.last.clone_from(&line);
            }
            if mark != Mark::Other {
                job.output.line(&short(&line));
            }
            if let Some(monitor) = monitor.as_deref_mut() {
                self.mark(mark, monitor)?;
            }
        }
    }

    fn mark(&mut self, mark: Mark, monitor: &mut RunMonitor<'_>) -> Result<()> {
        let next = match mark {
            Mark::RampUp => Some("warmup"),
            Mark::Begin => Some("measure"),
            Mark::End => None,
            Mark::Rate(rate) => {
                if self.phase == Some("measure") {
                    let (begin, _) = monitor.window();
                    let rates = [("commits", rate as f64 / 60.0)];
                    let row =
                        ReportedInterval::from_rates(&self.series, begin, Timestamp::now(), &rates, None);
                    self.series.push(row);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(phase) = self.phase.take() {
            monitor.end_phase(phase)?;
        }
        if let Some(next) = next {
            monitor.start_phase(next)?;
            self.phase = Some(next);
        }
        Ok(())
    }

    /// Checks the run: there is a result, no virtual user failed, all were active. The exit status
    /// is always 0.
    fn into_outcome(
        self,
        ended: &HammerDbEnd,
        users: usize,
        minutes: (u64, u64),
        window: (Timestamp, Timestamp),
        installation: &HammerDbInstallation,
    ) -> ExternalOutcome {
        let report = &self.report;
        let version = report
            .version
            .as_ref()
            .map(|version| format!("HammerDB {version}"));
        let mut outcome = match (ended, report.result) {
            (HammerDbEnd::Signal(signal), _) => ExternalOutcome {
                signal: Some(*signal),
                ..ExternalOutcome::default()
            },
            (HammerDbEnd::TimedOut, _) => ExternalOutcome::failed(
                "HammerDB had not ended five minutes after its time and was killed".to_owned(),
            ),
            (HammerDbEnd::Exited, None) => {
                let why = report
                    .failed
                    .first()
                    .map_or_else(|| short(&self.last), Clone::clone);
                ExternalOutcome::failed(format!(
                    "HammerDB printed no TEST RESULT: {why}: {}",
                    installation.hint()
                ))
            }
            (HammerDbEnd::Exited, Some(result)) => {
                figures(report, (self.series.clone(), window), users, minutes, result)
            }
        };
        outcome.version = version;
        outcome
    }
}

fn figures(
    report: &Report,
    (mut series, window): (Vec<ReportedInterval>, (Timestamp, Timestamp)),
    users: usize,
    (rampup, duration): (u64, u64),
    (nopm, tpm): (u64, u64),
) -> ExternalOutcome {
    let events = nopm * duration;
    // The counter includes all transactions; the share of new orders is that of the whole window.
    reported::derive_column(&mut series, "commits", "events", nopm as f64 / tpm.max(1) as f64);
    reported::reconcile(&mut series, window, &[("events", events)]);
    let orders = nopm as f64 * (rampup + duration) as f64;
    let timings = report.timings(users, orders);
    let calls: u64 = timings.iter().map(|timing| timing.calls).sum();
    let spent: f64 = timings.iter().map(|timing| timing.total_ms).sum();
    let ends = |of: fn(&Latency) -> Option<f64>, pick: fn(f64, f64) -> f64| {
        timings
            .iter()
            .filter_map(|timing| of(&timing.latency))
            .reduce(pick)
    };
    let latency = Latency {
        min: ends(|latency| latency.min, f64::min),
        mean: (calls > 0).then(|| spent / calls as f64),
        max: ends(|latency| latency.max, f64::max),
        ..Latency::default()
    };
    let failure = match (report.failed.first(), report.active) {
        (Some(failed), _) => Some(format!("HammerDB: {failed}")),
        (None, Some(active)) if active != users => Some(format!(
            "only {active} of {users} virtual users of HammerDB were active"
        )),
        _ if events == 0 => Some("HammerDB counted no new orders".to_owned()),
        _ => None,
    };
    let mut flags = Vec::new();
    let starting = users as f64 * DELAY_S;
    if starting > rampup as f64 * 60.0 + 3.0 {
        flags.push(format!(
            "the start of {users} virtual users takes {starting:.0} s, longer than the warm-up of {rampup} min: give --warmup-time={}",
            ((starting / 60.0).ceil() + 1.0) * 60.0
        ));
    }
    let mut outcome = ExternalOutcome {
        seconds: Some(duration as f64 * 60.0),
        latency,
        types: timings
            .iter()
            .map(|timing| (timing.kind.to_owned(), timing.calls, timing.latency))
            .collect(),
        series,
        failure,
        flags,
        ..ExternalOutcome::default()
    };
    outcome.totals.insert("events".to_owned(), json!(events));
    outcome.details.insert("nopm".to_owned(), json!(nopm));
    outcome.details.insert("tpm".to_owned(), json!(tpm));
    outcome
}
