//! Reads the output of sysbench 1.0.20 and 1.1 (formats of src/sysbench.c and src/db_driver.c), and
//! checks the figures for consistency: the exit status is 0 for runs that measured nothing.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use anyhow::bail;
use regex::Regex;
use serde_json::json;

use super::super::Job;
use super::super::child::Stream;
use super::super::outcome::ExternalOutcome;
use super::super::outcome::Latency;
use super::super::outcome::short;
use super::super::program::End;
use super::super::program::Mark;
use super::super::program::OutputReader;
use super::super::program::RunMonitor;
use super::arguments;
use super::installation::SysbenchInstallation;
use crate::options::Common;
use crate::options::Values;
use crate::output::Output;
use crate::series::reported;
use crate::suite::oltp::scripts::Group;
use crate::suite::oltp::scripts::INDEX_UPDATES;
use crate::suite::oltp::scripts::NON_INDEX_UPDATES;
use crate::suite::oltp::scripts::READS;
use crate::suite::oltp::scripts::Statements;
use crate::suite::oltp::scripts::WRITES;

/// Time in addition to the run: threads start, and the last event may wait for a lock.
const GRACE: Duration = Duration::from_secs(120);
/// The last bucket of the histogram, in milliseconds: it has all longer events (src/sb_histogram.c).
const LAST_BUCKET: f64 = 100_000.0;
/// Tolerance of statements per event.
const STATEMENTS: f64 = 0.01;
/// Tolerance between threads / rate and the mean latency in a closed loop (Little's law).
const LATENCY: f64 = 0.02;

/// The columns of an interval line, as groups of [`INTERVAL`].
const COLUMNS: [&str; 7] = [
    "events",
    "queries",
    "reads",
    "writes",
    "others",
    "errors",
    "reconnects",
];

/// An interval line; scripts without statements print `eps` and no queries.
static INTERVAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = concat!(
        r"^\[ (?<second>\d+)s \] thds: \d+ (?:tps|eps): (?<events>[\d.]+)",
        r"(?: qps: (?<queries>[\d.]+) \(r/w/o: (?<reads>[\d.]+)/(?<writes>[\d.]+)/(?<others>[\d.]+)\))?",
        r" lat \(ms,(?<rank>\d+)%\): (?<latency>[\d.]+)(?: err/s:? (?<errors>[\d.]+))?(?: reconn/s:? (?<reconnects>[\d.]+))?",
    );
    Regex::new(pattern).ok()
});

/// A block of totals: the first word after each name.
#[derive(Debug, Default)]
struct Block(HashMap<String, String>);

impl Block {
    fn parse_line(&mut self, line: &str) {
        if let Some((name, rest)) = line.split_once(':') {
            let value = rest.split_whitespace().next().unwrap_or_default();
            self.0.insert(name.trim().to_owned(), value.to_owned());
        }
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.parse().ok()
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.trim_end_matches('s').parse().ok()
    }

    /// The value of a bucket; infinite for the last one if events were longer: their time is not known.
    fn bucket(&self, value: f64) -> f64 {
        let has_longer = self.number("max").is_some_and(|max| max > LAST_BUCKET);
        if has_longer && value >= LAST_BUCKET {
            f64::INFINITY
        } else {
            value
        }
    }

    fn events(&self) -> Option<u64> {
        self.count("total number of events")
            .or_else(|| self.count("transactions"))
    }

    /// 1.0: since the start of the threads; 1.1: of the window.
    fn seconds(&self) -> Option<f64> {
        self.number("total time").or_else(|| self.number("time elapsed"))
    }
}

/// Expected figures, from the options.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    /// Client statements of an event, if they are fixed.
    statements: Option<f64>,
    threads: usize,
    /// True without --rate.
    closed_loop: bool,
    /// Length; `None` if a number of events ends the run.
    seconds: Option<u64>,
}

/// The output of sysbench and what it depends on.
#[derive(Debug, Default)]
pub struct Report {
    /// The verb on its command line.
    pub verb: &'static str,
    /// When it is killed.
    pub limit: Option<Duration>,
    expected: Expected,
    /// Length of the warm-up in seconds.
    warmup: u64,
    script: &'static str,
    version: String,
    /// True for 1.1, which prints when its warm-up starts, but not when it ends.
    warms_up: bool,
    report_every: u64,
    after_checkpoint: bool,
    /// The block before the window: 1.0 resets its counters at a checkpoint.
    checkpoint: Option<Block>,
    /// The block of the window.
    last: Option<Block>,
    /// Milliseconds and counts.
    histogram: Vec<(f64, u64)>,
    /// The first FATAL or ALERT line.
    fatal: Option<String>,
    last_line: String,
}

impl Report {
    /// Reads the output of a verb.
    pub fn new(verb: &'static str) -> Self {
        Self {
            verb,
            ..Self::default()
        }
    }

    /// Reads the options of a run.
    ///
    /// # Errors
    /// If a time is not in whole seconds.
    pub fn read_options(&mut self, installation: &SysbenchInstallation, job: &Job<'_>) -> Result<()> {
        let (values, script) = (job.values, job.workload.descriptor().name);
        let given: Common = values.read()?;
        let length = Some(arguments::time(values)?).filter(|time| *time > 0);
        self.warmup = arguments::warmup(&given)?;
        self.limit = length.map(|length| Duration::from_secs(self.warmup + length) + GRACE);
        self.expected = Expected {
            statements: statements(script, values)?,
            threads: job.threads,
            closed_loop: arguments::rate(&given)? == 0,
            seconds: length,
        };
        self.script = script;
        self.version.clone_from(&installation.version);
        self.warms_up = installation.warms_up;
        self.report_every = u64::from(given.report_interval);
        Ok(())
    }

    /// What a line marks, and whether it is printed.
    fn mark(&mut self, line: &str) -> (Option<Mark>, bool) {
        // Output of several threads may be mixed in one line.
        if let Some(at) = line.find("FATAL: ").or_else(|| line.find("ALERT: ")) {
            self.fatal.get_or_insert_with(|| short(&line[at..]));
        } else if line == "Threads started!" {
            let phase = if self.warmup == 0 { "measure" } else { "warmup" };
            let marked = self.warmup == 0 || !self.warms_up;
            return (marked.then_some(Mark::Phase(phase)), false);
        } else if line.starts_with("Warming up for ") {
            return (Some(Mark::WarmUp(Duration::from_secs(self.warmup))), false);
        } else if line.starts_with("[ ") {
            if line.ends_with("Checkpoint report:") {
                self.after_checkpoint = true;
                return (Some(Mark::Phase("measure")), false);
            }
            return self.interval(line).unwrap_or((None, self.last.is_some()));
        } else if line.starts_with("Latency histogram") {
            return (Some(Mark::End), true);
        } else if line == "SQL statistics:" {
            if std::mem::take(&mut self.after_checkpoint) {
                self.checkpoint = Some(Block::default());
            } else {
                let first = self.last.is_none() && self.histogram.is_empty();
                self.last = Some(Block::default());
                return (first.then_some(Mark::End), true);
            }
        } else if let Some(bucket) = bucket(line) {
            self.histogram.push(bucket);
        } else if let Some(block) = self.last.as_mut().or(self.checkpoint.as_mut()) {
            block.parse_line(line);
        }
        (None, self.last.is_some())
    }

    /// `None` for other lines in brackets.
    fn interval(&self, line: &str) -> Option<(Option<Mark>, bool)> {
        let groups = INTERVAL.as_ref()?.captures(line)?;
        let number = |name: &str| groups.name(name)?.as_str().parse().ok();
        let second: u64 = groups.name("second")?.as_str().parse().ok()?;
        let rates = COLUMNS.iter().filter_map(|name| Some((*name, number(name)?)));
        let p95 = number("latency").filter(|_| &groups["rank"] == "95");
        let mark = Mark::Rates(rates.collect(), p95);
        // 1.0 prints the line of the second that the checkpoint ended right after the checkpoint.
        let in_window = self.warms_up || second > self.warmup;
        let print = self.report_every > 0 && second.is_multiple_of(self.report_every);
        Some((in_window.then_some(mark), print))
    }

    /// The totals of the window.
    fn figures(&self, block: &Block, monitor: &mut RunMonitor<'_>) -> ExternalOutcome {
        let before = self.checkpoint.as_ref().and_then(Block::seconds);
        let seconds = block.seconds().map(|seconds| seconds - before.unwrap_or(0.0));
        let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) else {
            return ExternalOutcome::failed("the summary of sysbench contains no total time".to_owned());
        };
        let columns = [
            ("events", block.events()),
            ("queries", block.count("total")),
            ("reads", block.count("read")),
            ("writes", block.count("write")),
            ("others", block.count("other")),
            ("errors", block.count("ignored errors")),
            ("reconnects", block.count("reconnects")),
        ];
        let known = columns
            .iter()
            .filter_map(|(name, total)| Some((*name, (*total)?)));
        let mut series = std::mem::take(&mut monitor.series);
        reported::reconcile(&mut series, monitor.window, &known.collect::<Vec<_>>());
        for interval in &mut series {
            interval.p95 = interval.p95.map(|p95| block.bucket(p95));
        }
        let events = block.events().unwrap_or(0);
        let latency = self.latency(block, events);
        ExternalOutcome {
            seconds: Some(seconds),
            totals: columns.iter().copied().collect(),
            latency,
            types: vec![(self.script.to_owned(), events, latency)],
            histogram: self
                .histogram
                .iter()
                .map(|(value, count)| (block.bucket(*value), *count))
                .collect(),
            series,
            flags: self.flags(block, seconds),
            failure: (events == 0).then(|| "sysbench counted no events in the window".to_owned()),
            ..ExternalOutcome::default()
        }
    }

    /// Latency of the summary, with percentiles from the histogram if it was printed (its buckets
    /// are 1.8 % wide).
    fn latency(&self, block: &Block, events: u64) -> Latency {
        let if_any = |name: &str| block.number(name).filter(|_| events > 0);
        let total: u64 = self.histogram.iter().map(|(_, count)| count).sum();
        let quantile = |share: f64| -> Option<f64> {
            let wanted = (total as f64 * share).ceil() as u64;
            let mut seen = 0;
            let reaches = |(_, count): &&(f64, u64)| {
                seen += count;
                seen >= wanted
            };
            self.histogram.iter().find(reaches).map(|(value, _)| *value)
        };
        let percentile = |rank: f64| {
            let printed = block.number(&format!("{rank}th percentile"));
            let value = printed.or_else(|| quantile(rank / 100.0));
            value.map(|value| block.bucket(value))
        };
        // The mean has two decimals, too few for a point select; the sum has more.
        let mean = if_any("sum").map(|sum| sum / events as f64);
        Latency {
            min: if_any("min"),
            mean: mean.or_else(|| block.number("avg")),
            p50: percentile(50.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
            p999: percentile(99.9),
            max: if_any("max"),
        }
    }

    /// Warnings about statements per event, rate and latency; one line each.
    fn flags(&self, block: &Block, seconds: f64) -> Vec<String> {
        let expected = self.expected;
        let events = block.events().filter(|events| *events > 0);
        let (Some(events), Some(queries)) = (events, block.count("total")) else {
            return vec!["sysbench counted no events in the window".to_owned()];
        };
        let mut flags = Vec::new();
        let (count, queries) = (events as f64, queries as f64);
        if let Some(statements) = expected.statements
            && (queries / count / statements - 1.0).abs() > STATEMENTS
        {
            flags.push(format!(
                "{:.2} statements per event instead of {statements}: sysbench also counts statements of failed events \
                 ({} ignored errors)",
                queries / count,
                block.count("ignored errors").unwrap_or(0)
            ));
        }
        if let Some(sum) = block.number("sum").filter(|_| expected.closed_loop) {
            let (mean, by_rate) = (sum / count, expected.threads as f64 * 1000.0 * seconds / count);
            if (by_rate / mean - 1.0).abs() > LATENCY {
                flags.push(format!(
                    "mean latency {mean:.3} ms, but {} threads at {:.1} events/s imply {by_rate:.3} ms: threads were idle, \
                     or the run has too few events",
                    expected.threads,
                    count / seconds
                ));
            }
        }
        if let Some(wanted) = expected.seconds
            && seconds < wanted as f64 * 0.98
        {
            flags.push(format!(
                "the measurement took {seconds:.2} s instead of {wanted} s"
            ));
        }
        flags
    }
}

impl OutputReader for Report {
    fn read(&mut self, _stream: Stream, line: &str, _phase: Option<&str>, out: &Output) -> Vec<Mark> {
        let (mark, print) = self.mark(line);
        if self.verb != "run" {
            out.line(&short(line));
            if !line.is_empty() {
                self.last_line = short(line);
            }
        } else if print {
            out.line(line);
        }
        mark.into_iter().collect()
    }

    fn finish(&self, status: ExitStatus) -> Result<()> {
        let verb = self.verb;
        match &self.fatal {
            Some(fatal) => bail!("sysbench {verb}: {fatal}"),
            None if !status.success() => bail!("sysbench {verb} ended with {status}: {}", self.last_line),
            None => Ok(()),
        }
    }

    fn outcome(&mut self, end: &End, monitor: &mut RunMonitor<'_>) -> ExternalOutcome {
        let mut outcome = match (&self.last, end) {
            (_, End::Signal(signal)) => return ExternalOutcome::interrupted(*signal),
            (Some(block), End::Exited(status)) => {
                let mut outcome = self.figures(block, monitor);
                if !status.success() {
                    outcome.failure = Some(format!("sysbench ended with {status}"));
                }
                outcome
            }
            (None, End::Exited(status)) => ExternalOutcome::failed(format!(
                "sysbench ended with {status} and printed no figures: {}",
                self.fatal.as_deref().unwrap_or("no summary")
            )),
            (_, End::TimedOut | End::AfterWindow) => ExternalOutcome::failed(format!(
                "sysbench had not ended {} s after its start and was killed",
                self.limit.unwrap_or_default().as_secs()
            )),
        };
        outcome.failure = outcome.failure.or_else(|| self.fatal.clone());
        outcome.version = Some(format!("sysbench {}", self.version));
        outcome.details = json!({"sysbench": self.version});
        outcome
    }
}

/// `       1.506 |****************                         1234`
fn bucket(line: &str) -> Option<(f64, u64)> {
    let (value, rest) = line.split_once(" |")?;
    let count = rest.split_whitespace().next_back()?.trim_start_matches('*');
    Some((value.trim().parse().ok()?, count.parse().ok()?))
}

/// Client statements of one event of a script; none if most events send no statement.
fn statements(script: &str, values: &Values) -> Result<Option<f64>> {
    let (groups, in_transaction): (&[&[Group]], bool) = match script {
        "bulk_insert" => return Ok(None),
        "oltp_read_write" => (&[READS, WRITES], true),
        "oltp_read_only" => (&[READS], true),
        "oltp_write_only" => (&[WRITES], true),
        "oltp_update_index" => (&[&[INDEX_UPDATES]], false),
        "oltp_update_non_index" => (&[&[NON_INDEX_UPDATES]], false),
        _ => return Ok(Some(1.0)),
    };
    let given: Statements = values.read()?;
    let transaction = if in_transaction && !given.skip_trx { 2 } else { 0 };
    Ok(Some((transaction + given.count(&groups.concat())) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            expected: Expected {
                statements: Some(20.0),
                threads: 2,
                closed_loop: true,
                seconds: Some(2),
            },
            ..Report::default()
        }
    }

    fn flags(lines: &[&str], report: &Report) -> String {
        let mut block = Block::default();
        lines.iter().for_each(|line| block.parse_line(line));
        report.flags(&block, 2.0).join("\n")
    }

    #[test]
    fn each_rule_of_consistency_has_its_flag() {
        let (events, queries, sum) = ("transactions: 1000", "total: 20000", "sum: 3998.0");
        assert_eq!(flags(&[events, queries, sum], &report()), "");
        let more = flags(&[events, "total: 20300", sum], &report());
        assert!(more.starts_with("20.30 statements per event"), "{more}");
        let idle = [events, queries, "sum: 3800.0"];
        assert!(flags(&idle, &report()).starts_with("mean latency 3.800 ms, but 2 threads"));
        let mut open = report();
        open.expected.closed_loop = false;
        assert_eq!(flags(&idle, &open), "");
        open.expected.seconds = Some(10);
        assert_eq!(flags(&idle, &open), "the measurement took 2.00 s instead of 10 s");
        assert!(flags(&["transactions: 0", queries], &report()).contains("no events"));
    }

    #[test]
    fn a_percentile_in_the_last_bucket_is_not_known() {
        let mut block = Block::default();
        for line in ["max: 140000.50", "95th percentile: 100000.00", "sum: 520000.00"] {
            block.parse_line(line);
        }
        let report = Report {
            histogram: vec![(2.0, 90), (100_000.0, 10)],
            ..report()
        };
        let latency = report.latency(&block, 100);
        let infinite = Some(f64::INFINITY);
        assert_eq!(
            (latency.p50, latency.p95, latency.p999),
            (Some(2.0), infinite, infinite)
        );
        block.parse_line("max: 100000.00");
        assert_eq!(report.latency(&block, 100).p95, Some(100_000.0));
    }

    #[test]
    fn an_interval_has_its_rates_by_column() {
        let line = "[ 3s ] thds: 2 tps: 843.87 qps: 16888.98 (r/w/o: 11823.45/3377.13/1688.40) lat (ms,95%): 6.32 \
                    err/s: 0.50 reconn/s: 0.00";
        let rates = [843.87, 16888.98, 11823.45, 3377.13, 1688.40, 0.5, 0.0];
        let mark = Mark::Rates(COLUMNS.into_iter().zip(rates).collect(), Some(6.32));
        assert_eq!(report().mark(line), (Some(mark), false));
        let Some(Mark::Rates(_, p95)) = report().mark(&line.replace("95%", "99%")).0 else {
            unreachable!()
        };
        assert_eq!(p95, None, "the series has the 95th percentile only");
        let warm = Report {
            warmup: 3,
            report_every: 3,
            ..report()
        };
        assert_eq!(warm.interval(line), Some((None, true)));
    }

    #[test]
    fn other_lines_in_brackets_and_errors_in_mid_line() {
        let mut report = report();
        let queue = "[ 2s ] queue length: 0, concurrency: 0";
        assert_eq!(report.mark(queue), (None, false));
        report.mark("(419,419),(420,4FATAL: `thread_run' function failed: bulk_insert.lua:38");
        assert_eq!(
            report.fatal.as_deref(),
            Some("FATAL: `thread_run' function failed: bulk_insert.lua:38")
        );
        let plain = Mark::Rates(vec![("events", 99.5)], Some(1.25));
        let line = "[ 1s ] thds: 4 eps: 99.50 lat (ms,95%): 1.25";
        assert_eq!(report.mark(line).0, Some(plain));
    }
}
