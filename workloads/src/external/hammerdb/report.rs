//! Reads the output of HammerDB 4.9 to 6: marks of the monitor, the transaction counter, the result,
//! times per type. Its exit status is always 0.

use std::process::ExitStatus;

use anyhow::Result;
use anyhow::bail;
use serde_json::Value as Json;
use serde_json::json;

use super::super::child::Stream;
use super::super::outcome::ExternalOutcome;
use super::super::outcome::Latency;
use super::super::outcome::short;
use super::super::program::End;
use super::super::program::Mark;
use super::super::program::OutputReader;
use super::super::program::RunMonitor;
use super::script;
use crate::output::Output;
use crate::series::reported;
use crate::suite::tproc_c::TYPES;
use crate::verb::Verb;

/// Delay between the starts of two virtual users (`vuset delay`).
const DELAY_S: f64 = 0.5;

/// The output of HammerDB and what it depends on.
#[derive(Debug, Default)]
pub struct Report {
    is_cleanup: bool,
    /// Number of virtual users.
    users: usize,
    /// Ramp-up in minutes.
    pub rampup: u64,
    /// Length of the window in minutes.
    pub duration: u64,
    /// How to fix a failed start.
    hint: &'static str,
    /// `v6.0`.
    version: Option<String>,
    /// New orders and transactions per minute.
    result: Option<(u64, u64)>,
    /// Number of active virtual users.
    active: Option<usize>,
    /// The first error or failed virtual user.
    failed: Option<String>,
    /// `ALL VIRTUAL USERS COMPLETE` was printed.
    complete: bool,
    /// The JSON of the times per type.
    timing: String,
    in_timing: bool,
    /// The last line that is neither empty nor a setting with the password.
    last: String,
}

/// Calls of a transaction type by all virtual users, including ramp-up.
#[derive(Debug)]
struct Timing {
    kind: &'static str,
    calls: u64,
    total_ms: f64,
    latency: Latency,
}

impl Report {
    /// Reads the output of a verb with this number of virtual users; `hint` fixes a failed start.
    pub fn new(verb: Verb, users: usize, hint: &'static str) -> Self {
        Self {
            is_cleanup: verb == Verb::Cleanup,
            users,
            hint,
            ..Self::default()
        }
    }

    /// Seconds until all virtual users have started.
    pub fn starting(&self) -> f64 {
        self.users as f64 * DELAY_S
    }

    /// What a line marks, and whether it is printed: a setting may contain the password.
    fn mark(&mut self, line: &str) -> (Option<Mark>, bool) {
        // HammerDB prints a carriage return before each line.
        let line = line.trim_matches('\r');
        if let Some(version) = line.strip_prefix("HammerDB CLI ") {
            self.version = Some(version.trim().to_owned());
        }
        match line {
            script::TIMING => self.in_timing = true,
            script::END => self.in_timing = false,
            _ if self.in_timing => {
                self.timing.push_str(line);
                self.timing.push('\n');
            }
            _ => return self.message(line),
        }
        (None, false)
    }

    fn message(&mut self, line: &str) -> (Option<Mark>, bool) {
        let rate = line.strip_suffix(" tpm").and_then(|text| text.split(' ').next());
        if let Some(rate) = rate.and_then(|text| text.parse::<u64>().ok()) {
            let commits = ("commits", rate as f64 / 60.0);
            return (Some(Mark::Rates(vec![commits], None)), true);
        }
        if line == "ALL VIRTUAL USERS COMPLETE" {
            self.complete = true;
            return (None, true);
        }
        let failures = ["FINISHED FAILED", "Error in Virtual User", "can't find package"];
        let failed = failures.iter().any(|part| line.contains(part));
        if failed || line.starts_with("Error") || line.starts_with("Package ") {
            self.failed.get_or_insert_with(|| short(line));
            return (None, true);
        }
        let Some((_, message)) = line.strip_prefix("Vuser ").and_then(|rest| rest.split_once(':')) else {
            return (None, false);
        };
        if let Some(count) = message.strip_suffix(" Active Virtual Users configured") {
            self.active = count.parse().ok();
        }
        self.result = parse_result(message).or(self.result);
        let marks = [
            ("Beginning rampup time", Mark::Phase("warmup")),
            ("Timing test period of", Mark::Phase("measure")),
            ("Test complete, Taking end Transaction Count", Mark::End),
        ];
        let marked = marks.into_iter().find(|(start, _)| message.starts_with(start));
        (marked.map(|(_, mark)| mark), true)
    }

    /// Times per type, if HammerDB printed them.
    fn timings(&self, (nopm, _): (u64, u64)) -> Vec<Timing> {
        let Ok(json) = serde_json::from_str::<Json>(&self.timing) else {
            return Vec::new();
        };
        // All values are strings.
        let number = |kind: &str, name: &str| json.get(kind)?.get(name)?.as_str()?.parse::<f64>().ok();
        // 4.9 prints the mean over its virtual users, 6.0 their sum: the number of new orders shows
        // which.
        let orders = nopm as f64 * (self.rampup + self.duration) as f64;
        let calls = number("NEWORD", "calls").unwrap_or(0.0);
        let off = |factor: f64| (calls * factor / orders - 1.0).abs();
        let users = self.users as f64;
        let factor = if off(users) < off(1.0) { users } else { 1.0 };
        let timing = |&kind: &&'static str| {
            let value = |name: &str| number(&kind.to_uppercase(), name);
            Some(Timing {
                kind,
                calls: (value("calls")? * factor).round() as u64,
                total_ms: value("total_ms")? * factor,
                latency: Latency {
                    min: value("min_ms"),
                    mean: value("avg_ms"),
                    p50: value("p50_ms"),
                    p95: value("p95_ms"),
                    p99: value("p99_ms"),
                    p999: None,
                    max: value("max_ms"),
                },
            })
        };
        TYPES.iter().filter_map(timing).collect()
    }

    /// The figures of a run with a result.
    fn figures(&self, result: (u64, u64), monitor: &mut RunMonitor<'_>) -> ExternalOutcome {
        let (nopm, tpm) = result;
        let events = nopm * self.duration;
        let mut series = std::mem::take(&mut monitor.series);
        // The counter includes all transactions; the share of new orders is that of the whole window.
        reported::derive_column(&mut series, "commits", "events", nopm as f64 / tpm.max(1) as f64);
        reported::reconcile(&mut series, monitor.window, &[("events", events)]);
        let timings = self.timings(result);
        let calls: u64 = timings.iter().map(|timing| timing.calls).sum();
        let spent: f64 = timings.iter().map(|timing| timing.total_ms).sum();
        let latencies = || timings.iter().map(|timing| timing.latency);
        let latency = Latency {
            min: latencies().filter_map(|latency| latency.min).reduce(f64::min),
            mean: (calls > 0).then(|| spent / calls as f64),
            max: latencies().filter_map(|latency| latency.max).reduce(f64::max),
            ..Latency::default()
        };
        let types = timings.iter();
        ExternalOutcome {
            seconds: Some(self.duration as f64 * 60.0),
            totals: json!({
                "events": events,
                "commits": monitor.server.growth("Com_commit"),
                "rollbacks": monitor.server.growth("Com_rollback"),
            }),
            latency,
            types: types
                .map(|timing| (timing.kind.to_owned(), timing.calls, timing.latency))
                .collect(),
            series,
            details: json!({"nopm": nopm, "tpm": tpm}),
            failure: self.failure(events),
            flags: self.late_start().into_iter().collect(),
            ..ExternalOutcome::default()
        }
    }

    /// A run is valid if no virtual user failed and all were active.
    fn failure(&self, events: u64) -> Option<String> {
        let users = self.users;
        match (&self.failed, self.active) {
            (Some(failed), _) => Some(format!("HammerDB: {failed}")),
            (None, Some(active)) if active != users => Some(format!(
                "only {active} of {users} virtual users of HammerDB were active"
            )),
            _ => (events == 0).then(|| "HammerDB counted no new orders".to_owned()),
        }
    }

    fn late_start(&self) -> Option<String> {
        let (users, rampup, starting) = (self.users, self.rampup, self.starting());
        (starting > rampup as f64 * 60.0 + 3.0).then(|| {
            format!(
                "the start of {users} virtual users takes {starting:.0} s, longer than the warm-up of {rampup} min: give --warmup-time={}",
                ((starting / 60.0).ceil() + 1.0) * 60.0
            )
        })
    }
}

impl OutputReader for Report {
    fn read(&mut self, _stream: Stream, line: &str, _phase: Option<&str>, out: &Output) -> Vec<Mark> {
        let (mark, print) = self.mark(line);
        if !line.trim().is_empty() && !line.contains("mysql_pass") && !line.starts_with("LOADPRINT") {
            line.clone_into(&mut self.last);
        }
        if print {
            out.line(&short(line));
        }
        mark.into_iter().collect()
    }

    fn finish(&self, _status: ExitStatus) -> Result<()> {
        match &self.failed {
            Some(failure) => bail!("HammerDB: {failure}"),
            // HammerDB may delete the schema without a message of a virtual user.
            None if self.complete || (self.is_cleanup && self.version.is_some()) => Ok(()),
            None => bail!(
                "HammerDB ended before it had finished: {}: {}",
                short(&self.last),
                self.hint
            ),
        }
    }

    fn outcome(&mut self, end: &End, monitor: &mut RunMonitor<'_>) -> ExternalOutcome {
        let version = self.version.as_ref();
        let outcome = match (end, self.result) {
            (End::Signal(signal), _) => ExternalOutcome::interrupted(*signal),
            (End::Exited(_), Some(result)) => self.figures(result, monitor),
            (End::Exited(_), None) => ExternalOutcome::failed(format!(
                "HammerDB printed no TEST RESULT: {}: {}",
                self.failed.clone().unwrap_or_else(|| short(&self.last)),
                self.hint
            )),
            (End::TimedOut | End::AfterWindow, _) => ExternalOutcome::failed(
                "HammerDB had not ended five minutes after its time and was killed".to_owned(),
            ),
        };
        ExternalOutcome {
            version: version.map(|version| format!("HammerDB {version}")),
            ..outcome
        }
    }
}

/// `TEST RESULT : System achieved 25418 NOPM from 59301 MySQL TPM`, or `… achieved 59301 MySQL TPM
/// at 25418 NOPM`.
fn parse_result(message: &str) -> Option<(u64, u64)> {
    let achieved = message.strip_prefix("TEST RESULT : System achieved ")?;
    let number = |text: &str| text.split(' ').next()?.parse::<u64>().ok();
    if let Some((orders, rest)) = achieved.split_once(" NOPM from ") {
        return Some((number(orders)?, number(rest)?));
    }
    let (all, orders) = achieved.split_once(" TPM at ")?;
    Some((number(orders)?, number(all)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_marks_settings_are_not_printed_and_the_first_failure_is_kept() {
        let mut report = Report::default();
        let setting = "Changed tpcc:mysql_pass from mysql to word for MySQL";
        assert_eq!(report.mark(setting), (None, false));
        let rate = Mark::Rates(vec![("commits", 415.6)], None);
        assert_eq!(report.mark("\r24936 MySQL tpm"), (Some(rate), true));
        report.mark("Vuser 2:FINISHED FAILED");
        report.mark("Error in Virtual User 2: mysqlexec/db server: Deadlock found");
        assert_eq!(report.failed.as_deref(), Some("Vuser 2:FINISHED FAILED"));
        assert_eq!(
            parse_result("TEST RESULT : System achieved 5 MySQL TPM at 2 NOPM"),
            Some((2, 5))
        );
    }
}
