//! Parses the output of HammerDB 4.9 to 6: marks of the monitor, the transaction counter, the
//! result, times per type.

use serde_json::Value as Json;

use super::super::outcome::Latency;
use super::super::outcome::short;
use super::script;

/// Meaning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Virtual users start and ramp up.
    RampUp,
    /// The window starts.
    Begin,
    /// The window has ended.
    End,
    /// Transactions per minute in the last seconds.
    Rate(u64),
    /// A line to print.
    Progress,
    /// A setting, which may contain the password, or any other line.
    Other,
}

/// Parses the output line by line.
#[derive(Debug, Default)]
pub struct Report {
    /// `v6.0`.
    pub version: Option<String>,
    /// New orders and transactions per minute.
    pub result: Option<(u64, u64)>,
    /// Number of active virtual users.
    pub active: Option<usize>,
    /// The first errors and failed virtual users.
    pub failed: Vec<String>,
    /// Number of virtual users that succeeded.
    pub succeeded: usize,
    /// `ALL VIRTUAL USERS COMPLETE` was printed.
    pub complete: bool,
    timing: Option<String>,
    in_timing: bool,
}

/// Times of a transaction type.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Name of the type in the native workload.
    pub kind: &'static str,
    /// Calls of all virtual users, including ramp-up.
    pub calls: u64,
    /// Sum in milliseconds.
    pub total_ms: f64,
    /// Latency of a call.
    pub latency: Latency,
}

const KINDS: [(&str, &str); 5] = [
    ("NEWORD", "neword"),
    ("PAYMENT", "payment"),
    ("DELIVERY", "delivery"),
    ("SLEV", "slev"),
    ("OSTAT", "ostat"),
];

impl Report {
    /// Parses the next line.
    pub fn parse_line(&mut self, line: &str) -> Mark {
        // HammerDB prints a carriage return before each line.
        let line = line.trim_matches('\r');
        if let Some(version) = line.strip_prefix("HammerDB CLI ") {
            self.version = Some(version.trim().to_owned());
        }
        match line {
            script::TIMING => {
                self.in_timing = true;
                self.timing = Some(String::new());
            }
            script::END => self.in_timing = false,
            _ if self.in_timing => {
                let text = self.timing.get_or_insert_default();
                text.push_str(line);
                text.push('\n');
            }
            _ => return self.mark(line),
        }
        Mark::Other
    }

    fn mark(&mut self, line: &str) -> Mark {
        if let Some(rate) = line
            .strip_suffix(" tpm")
            .and_then(|text| text.split(' ').next()?.parse().ok())
        {
            return Mark::Rate(rate);
        }
        if line == "ALL VIRTUAL USERS COMPLETE" {
            self.complete = true;
            return Mark::Progress;
        }
        let failed = line.contains("FINISHED FAILED")
            || line.starts_with("Error")
            || line.contains("Error in Virtual User");
        if failed || line.contains("can't find package") || line.starts_with("Package ") {
            if self.failed.len() < 8 {
                self.failed.push(short(line));
            }
            return Mark::Progress;
        }
        let Some((_, message)) = line.strip_prefix("Vuser ").and_then(|rest| rest.split_once(':')) else {
            return Mark::Other;
        };
        if message == "FINISHED SUCCESS" {
            self.succeeded += 1;
            return Mark::Progress;
        }
        if message.starts_with("Beginning rampup time") {
            return Mark::RampUp;
        }
        if message.starts_with("Timing test period of") {
            return Mark::Begin;
        }
        if message.starts_with("Test complete, Taking end Transaction Count") {
            return Mark::End;
        }
        if let Some(count) = message.strip_suffix(" Active Virtual Users configured") {
            self.active = count.parse().ok();
        }
        self.result = parse_result(message).or(self.result);
        Mark::Progress
    }

    /// Times per type, if HammerDB printed them; `users` virtual users ran, and about `orders` new
    /// orders including ramp-up.
    pub fn timings(&self, users: usize, orders: f64) -> Vec<Timing> {
        let Some(json) = self
            .timing
            .as_deref()
            .and_then(|text| serde_json::from_str::<Json>(text).ok())
        else {
            return Vec::new();
        };
        // All values are strings.
        let number = |kind: &str, name: &str| json.get(kind)?.get(name)?.as_str()?.parse::<f64>().ok();
        // 4.9 prints the mean over its virtual users, 6.0 their sum: the number of new orders shows
        // which.
        let calls = number("NEWORD", "calls").unwrap_or(0.0);
        let off = |factor: f64| (calls * factor / orders - 1.0).abs();
        let factor = if off(users as f64) < off(1.0) {
            users as f64
        } else {
            1.0
        };
        let timing = |(theirs, kind): &(&str, &'static str)| {
            let value = |name: &str| number(theirs, name);
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
        KINDS.iter().filter_map(timing).collect()
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

    const V49: &str = include_str!("../../../../tests/fixtures/external/hammerdb-4.9-run.txt");
    const V60: &str = include_str!("../../../../tests/fixtures/external/hammerdb-6.0-run.txt");

    fn read(text: &str) -> (Report, Vec<Mark>) {
        let mut report = Report::default();
        let marks = text.lines().map(|line| report.parse_line(line)).collect();
        (report, marks)
    }

    #[test]
    fn both_versions_give_marks_rates_and_the_result_in_order() {
        for (text, version, result) in [(V49, "v4.9", (18390, 42468)), (V60, "v6.0", (13965, 32383))] {
            let (report, marks) = read(text);
            assert_eq!(report.version.as_deref(), Some(version));
            assert_eq!(
                (report.result, report.active, report.succeeded),
                (Some(result), Some(2), 3)
            );
            assert!(report.complete && report.failed.is_empty(), "{:?}", report.failed);
            let place = |wanted: Mark| marks.iter().position(|mark| *mark == wanted).unwrap();
            assert!(place(Mark::RampUp) < place(Mark::Begin) && place(Mark::Begin) < place(Mark::End));
            assert_eq!(
                marks.iter().filter(|mark| matches!(mark, Mark::Rate(_))).count(),
                7
            );
        }
    }

    #[test]
    fn calls_are_those_of_all_users_in_both_versions() {
        for (text, orders) in [(V49, 18390.0), (V60, 13965.0)] {
            let timings = read(text).0.timings(2, orders);
            let kinds: Vec<&str> = timings.iter().map(|timing| timing.kind).collect();
            assert_eq!(kinds, ["neword", "payment", "delivery", "slev", "ostat"]);
            // 1 % is rolled back, and the users run some seconds longer than the minute.
            let ratio = timings[0].calls as f64 / orders;
            assert!((1.0..1.1).contains(&ratio), "{ratio}");
            let mean = timings[0].total_ms / timings[0].calls as f64;
            assert!(
                (mean / timings[0].latency.mean.unwrap() - 1.0).abs() < 0.01,
                "{mean}"
            );
        }
    }

    #[test]
    fn settings_are_never_printed_and_failures_are_kept() {
        let mut report = Report::default();
        assert_eq!(
            report.parse_line("Changed tpcc:mysql_pass from mysql to word for MySQL"),
            Mark::Other
        );
        report.parse_line("Vuser 2:FINISHED FAILED");
        report.parse_line("Error in Virtual User 2: mysqlexec/db server: Deadlock found");
        assert_eq!(report.failed.len(), 2);
        assert_eq!(
            parse_result("TEST RESULT : System achieved 5 MySQL TPM at 2 NOPM"),
            Some((2, 5))
        );
    }
}
