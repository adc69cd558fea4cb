//! Reads the output of a command: finds its measured window by marks or by time, and checks its
//! figures.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use anyhow::bail;
use regex::Regex;
use serde_json::json;

use super::super::child::Stream;
use super::super::outcome::ExternalOutcome;
use super::super::outcome::Latency;
use super::super::outcome::short;
use super::super::program::End;
use super::super::program::Mark;
use super::super::program::OutputReader;
use super::super::program::RunMonitor;
use super::super::program::Schedule;
use super::operations;
use super::operations::Operations;
use super::operations::regex;
use super::options::Options;
use super::options::Source;
use crate::options::Common;
use crate::output::Output;
use crate::series::reported;

/// Number of lines of standard error that are kept.
const TAIL: usize = 20;

/// The output of a command and what it depends on.
#[derive(Debug, Default)]
pub struct Report {
    /// The option with the command.
    option: &'static str,
    operations: Operations,
    begin_regex: Option<Regex>,
    end_regex: Option<Regex>,
    interval_regex: Option<Regex>,
    source: Source,
    operation: Option<String>,
    /// When it is killed.
    limit: Duration,
    /// The last line of standard output or error.
    last: String,
    /// The last lines of standard error.
    tail: VecDeque<String>,
}

impl Report {
    /// Reads the command of this option.
    pub fn new(option: &'static str) -> Self {
        Self {
            option,
            ..Self::default()
        }
    }

    /// Reads a run with these options.
    ///
    /// # Errors
    /// No command, an invalid pattern, or no source of operations.
    pub fn of_run(options: &Options) -> Result<Self> {
        if options.command.is_none() {
            bail!("--command is missing: give the program and its arguments");
        }
        Ok(Self {
            operations: Operations::from_options(options)?,
            begin_regex: regex(options.measure_begin_regex.as_ref(), "measure-begin-regex")?,
            end_regex: regex(options.measure_end_regex.as_ref(), "measure-end-regex")?,
            interval_regex: regex(options.interval_regex.as_ref(), "interval-regex")?,
            source: options.operations_from,
            operation: options.operation.clone(),
            ..Self::new("command")
        })
    }

    /// The phases of a run, which is killed `grace` seconds after its end.
    pub fn schedule(&mut self, grace: f64, common: &Common) -> Schedule {
        let [warmup, time, grace] = [common.warmup_time, common.time, grace].map(Duration::from_secs_f64);
        self.limit = warmup + time + grace;
        let by_clock = self.begin_regex.is_none();
        let warms_up = !by_clock || !warmup.is_zero();
        Schedule {
            limit: Some(self.limit).filter(|_| !time.is_zero()),
            first: Some(if warms_up { "warmup" } else { "measure" }),
            measure_at: Some(warmup).filter(|_| by_clock && warms_up),
            measure_for: Some(time).filter(|_| self.end_regex.is_none() && !time.is_zero()),
            ends_with_program: true,
            // No line after the window is needed.
            stop_after_window: self.source != Source::Output,
        }
    }

    fn failure(&self, end: &End, over: bool, events: Option<u64>) -> Option<String> {
        let text = match end {
            End::Signal(_) => return None,
            End::TimedOut => {
                return Some(format!(
                    "the command had not ended {:.0} s after its start and was killed: pass it the length of the run ({{seconds}}), or raise --grace",
                    self.limit.as_secs_f64()
                ));
            }
            End::Exited(status) if !status.success() => {
                let cause = self.tail.back().map(String::as_str);
                return Some(format!(
                    "the command ended with {status}: {}",
                    cause.unwrap_or("no message on standard error")
                ));
            }
            _ if !over => "the command ended before the measured window started",
            _ if events.is_none() => {
                "no line of the command's output contained a number of operations: check --operations-regex or --operations-json"
            }
            _ if events == Some(0) => "the command counted no operations",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl OutputReader for Report {
    fn read(&mut self, stream: Stream, line: &str, phase: Option<&str>, out: &Output) -> Vec<Mark> {
        out.line(line);
        line.clone_into(&mut self.last);
        if stream == Stream::Error {
            self.tail.push_back(short(line));
            if self.tail.len() > TAIL {
                self.tail.pop_front();
            }
        }
        self.operations.parse_line(line);
        let matches = |regex: &Option<Regex>| regex.as_ref().is_some_and(|regex| regex.is_match(line));
        let mut marks = Vec::new();
        if phase == Some("warmup") && matches(&self.begin_regex) {
            marks.push(Mark::Phase("measure"));
        } else if phase == Some("measure") && matches(&self.end_regex) {
            marks.push(Mark::End);
        }
        let interval = self.interval_regex.as_ref();
        let captures = interval.and_then(|regex| regex.captures(line));
        marks.extend(
            captures
                .and_then(|captures| operations::number(&captures))
                .map(Mark::Count),
        );
        marks
    }

    fn finish(&self, status: ExitStatus) -> Result<()> {
        if !status.success() {
            bail!("--{} ended with {status}: {}", self.option, short(&self.last));
        }
        Ok(())
    }

    fn outcome(&mut self, end: &End, monitor: &mut RunMonitor<'_>) -> ExternalOutcome {
        let (printed, printed_seconds) = self.operations.totals();
        let mut series = std::mem::take(&mut monitor.series);
        let events = match self.source {
            Source::Questions => monitor.server.growth("Questions"),
            Source::Commits => monitor.server.growth("Com_commit"),
            Source::Intervals => Some(series.iter().filter_map(|second| second.get("events")).sum()),
            Source::Output => printed
                .filter(|count| *count >= 0.0)
                .map(|count| count.round() as u64),
        };
        // Only a total of the program includes what its interval lines omit.
        if let Some(events) = events.filter(|_| !series.is_empty() && self.source == Source::Output) {
            reported::reconcile(&mut series, monitor.window, &[("events", events)]);
        }
        let measured = monitor.measured_seconds();
        let status = match end {
            End::Exited(status) => Some(status.to_string()),
            _ => None,
        };
        let one_type = events.map(|events| ("command".to_owned(), events, Latency::default()));
        ExternalOutcome {
            seconds: Some(printed_seconds.unwrap_or(measured)).filter(|_| monitor.over),
            totals: json!({"events": events}),
            types: one_type.into_iter().collect(),
            series,
            details: json!({"exit_status": status, "stderr_tail": self.tail, "window_seconds": measured}),
            operation: self.operation.clone(),
            failure: self.failure(end, monitor.over, events),
            signal: match end {
                End::Signal(signal) => Some(*signal),
                _ => None,
            },
            ..ExternalOutcome::default()
        }
    }
}
