//! The real HammerDB as a guest for TPROC-C: its command line on a script of ours. HAMMERDB_HOME says where it is.

mod installation;
mod report;
mod script;

use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use serde_json::json;

use super::Guest;
use super::Job;
use super::account;
use super::child::Child;
use super::child::Said;
use super::outcome::Judged;
use super::outcome::Latency;
use super::outcome::short;
use super::private_dir::PrivateDir;
use super::run::Watch;
use crate::series::reported;
use crate::series::reported::Second;
use crate::series::reported::Stamp;
use crate::verb::Verb;
use installation::Home;
use report::Mark;
use report::Report;

/// Beyond ramp-up and duration: virtual users start, finish their transaction, and times are added up.
const GRACE: Duration = Duration::from_secs(300);
/// Virtual users start so long after each other (`vuset delay`).
const DELAY_S: f64 = 0.5;

/// The guest.
pub struct HammerDb;

impl Guest for HammerDb {
    fn name(&self) -> &'static str {
        "hammerdb"
    }

    fn knows(&self, workload: &str) -> bool {
        workload == "tproc_c"
    }

    fn operate(&self, verb: Verb, job: &Job<'_>) -> Result<()> {
        let home = Home::find()?;
        script::refuse_others(job.values)?;
        let account = account::resolve(job.account)?;
        let script = match verb {
            Verb::Prepare => script::prepare(&account, job.values, job.threads)?,
            Verb::Cleanup => script::cleanup(&account, job.values)?,
            _ => bail!(
                "HammerDB reads nothing into memory beforehand: leave the verb warmup out, or use --generator=native"
            ),
        };
        let mut following = Following::default();
        let secret = PrivateDir::create()?;
        let child = Child::start(home.command(&secret, &script)?).with_context(|| home.mend())?;
        match following.follow(child, None, None, job)? {
            Ended::Signal(signal) => bail!("interrupted by signal {signal}"),
            Ended::Late | Ended::Itself => {}
        }
        let report = following.report;
        match report.failed.first() {
            Some(failure) => bail!("HammerDB: {failure}"),
            // Deleting may be done without a virtual user that says so.
            None if report.complete || (verb == Verb::Cleanup && report.version.is_some()) => Ok(()),
            None => bail!(
                "HammerDB ended before it was done: {}: {}",
                short(&following.last),
                home.mend()
            ),
        }
    }

    fn run(&self, job: &Job<'_>, watch: &mut Watch<'_>) -> Result<Judged> {
        let home = Home::find()?;
        script::refuse_others(job.values)?;
        let rampup = script::minutes(job.values, "warmup-time")?;
        let duration = script::minutes(job.values, "time")?;
        let account = account::resolve(job.account)?;
        let script = script::run(&account, job.values, job.threads, rampup, duration)?;
        let starting = Duration::from_secs_f64(job.threads as f64 * DELAY_S);
        let limit = Duration::from_secs(60 * (rampup + duration)) + starting + GRACE;
        let secret = PrivateDir::create()?;
        let child = Child::start(home.command(&secret, &script)?).with_context(|| home.mend())?;
        let mut following = Following::default();
        let ended = following.follow(child, Some(watch), Some(limit), job)?;
        let commits = [watch.growth("Com_commit"), watch.growth("Com_rollback")];
        let window = watch.window();
        let mut judged = following.judge(&ended, job.threads, (rampup, duration), window, &home);
        for (name, growth) in ["commits", "rollbacks"].into_iter().zip(commits) {
            judged.totals.insert(name.to_owned(), json!(growth));
        }
        Ok(judged)
    }
}

/// How its process ended.
enum Ended {
    Itself,
    Signal(i32),
    Late,
}

/// A HammerDB that is being followed.
#[derive(Default)]
struct Following {
    report: Report,
    series: Vec<Second>,
    phase: Option<&'static str>,
    last: String,
}

impl Following {
    fn follow(
        &mut self,
        mut child: Child,
        mut watch: Option<&mut Watch<'_>>,
        limit: Option<Duration>,
        job: &Job<'_>,
    ) -> Result<Ended> {
        let due = limit.map(|limit| Instant::now() + limit);
        loop {
            let line = match child.next(due)? {
                Said::Line(_, line) => line,
                Said::Signal(signal) => return Ok(Ended::Signal(signal)),
                Said::Due => return Ok(Ended::Late),
                Said::Ended(_) => return Ok(Ended::Itself),
            };
            let mark = self.report.take(&line);
            if !line.trim().is_empty() && !line.contains("mysql_pass") && !line.starts_with("LOADPRINT") {
                self.last.clone_from(&line);
            }
            if mark != Mark::Other {
                job.output.line(&short(&line));
            }
            if let Some(watch) = watch.as_deref_mut() {
                self.mark(mark, watch)?;
            }
        }
    }

    fn mark(&mut self, mark: Mark, watch: &mut Watch<'_>) -> Result<()> {
        let next = match mark {
            Mark::RampUp => Some("warmup"),
            Mark::Begin => Some("measure"),
            Mark::End => None,
            Mark::Rate(rate) => {
                if self.phase == Some("measure") {
                    let (begin, _) = watch.window();
                    let rates = [("commits", rate as f64 / 60.0)];
                    let row = Second::at_rates(&self.series, begin, Stamp::now(), &rates, None);
                    self.series.push(row);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(phase) = self.phase.take() {
            watch.ended(phase)?;
        }
        if let Some(next) = next {
            watch.begins(next)?;
            self.phase = Some(next);
        }
        Ok(())
    }

    /// The rules: a result, nobody failed, everybody took part. Its exit status is 0 in every case.
    fn judge(
        self,
        ended: &Ended,
        users: usize,
        minutes: (u64, u64),
        window: (Stamp, Stamp),
        home: &Home,
    ) -> Judged {
        let report = &self.report;
        let version = report
            .version
            .as_ref()
            .map(|version| format!("HammerDB {version}"));
        let mut judged = match (ended, report.result) {
            (Ended::Signal(signal), _) => Judged {
                signal: Some(*signal),
                ..Judged::default()
            },
            (Ended::Late, _) => {
                Judged::failed("HammerDB had not ended five minutes after its time and was ended".to_owned())
            }
            (Ended::Itself, None) => {
                let why = report
                    .failed
                    .first()
                    .map_or_else(|| short(&self.last), Clone::clone);
                Judged::failed(format!("HammerDB gave no TEST RESULT: {why}: {}", home.mend()))
            }
            (Ended::Itself, Some(result)) => {
                figures(report, (self.series.clone(), window), users, minutes, result)
            }
        };
        judged.version = version;
        judged
    }
}

fn figures(
    report: &Report,
    (mut series, window): (Vec<Second>, (Stamp, Stamp)),
    users: usize,
    (rampup, duration): (u64, u64),
    (nopm, tpm): (u64, u64),
) -> Judged {
    let events = nopm * duration;
    // The counter counts all transactions; the share of new orders in them is that of the whole window.
    reported::share(&mut series, "commits", "events", nopm as f64 / tpm.max(1) as f64);
    reported::close(&mut series, window, &[("events", events)]);
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
        (None, Some(active)) if active != users => {
            Some(format!("HammerDB had {active} active virtual users of {users}"))
        }
        _ if events == 0 => Some("HammerDB counted no new order".to_owned()),
        _ => None,
    };
    let mut flags = Vec::new();
    let starting = users as f64 * DELAY_S;
    if starting > rampup as f64 * 60.0 + 3.0 {
        flags.push(format!(
            "its {users} virtual users start within {starting:.0} s, longer than the warm-up of {rampup} min: give --warmup-time={}",
            ((starting / 60.0).ceil() + 1.0) * 60.0
        ));
    }
    let mut judged = Judged {
        seconds: Some(duration as f64 * 60.0),
        latency,
        types: timings
            .iter()
            .map(|timing| (timing.kind.to_owned(), timing.calls, timing.latency))
            .collect(),
        series,
        failure,
        flags,
        ..Judged::default()
    };
    judged.totals.insert("events".to_owned(), json!(events));
    judged.details.insert("nopm".to_owned(), json!(nopm));
    judged.details.insert("tpm".to_owned(), json!(tpm));
    judged
}
