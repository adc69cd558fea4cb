//! Follows a running command: finds its measured window by marks or by time, reads its lines, and
//! checks its figures.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::time::Duration;
use std::time::Instant;

use anyhow::Result;
use regex::Regex;
use serde_json::json;

use super::super::child::Child;
use super::super::child::ChildEvent;
use super::super::child::Stream;
use super::super::outcome::ExternalOutcome;
use super::super::outcome::Latency;
use super::super::outcome::short;
use super::super::run::RunMonitor;
use super::operations;
use super::operations::Operations;
use crate::options::Values;
use crate::series::reported;
use crate::series::reported::ReportedInterval;
use crate::series::reported::Timestamp;

/// Number of lines of standard error that are kept.
const TAIL: usize = 20;

/// How a command ended.
pub enum CommandEnd {
    /// It exited.
    Exited(ExitStatus),
    /// It was ended after its window, because the server counts its operations.
    AfterWindow,
    /// This process was interrupted.
    Signal(i32),
    /// It did not end in time and was ended.
    TimedOut(Duration),
}

/// A running command.
pub struct CommandRun {
    operations: Operations,
    begin_regex: Option<Regex>,
    end_regex: Option<Regex>,
    interval_regex: Option<Regex>,
    /// True if no line after the window is needed.
    by_counters: bool,
    series: Vec<ReportedInterval>,
    /// Time of the last interval line, in any phase.
    reported: Option<Timestamp>,
    phase: Option<&'static str>,
    over: bool,
    tail: VecDeque<String>,
}

impl CommandRun {
    /// Reads the options.
    ///
    /// # Errors
    /// An invalid pattern.
    pub fn new(values: &Values, operations: Operations) -> Result<Self> {
        Ok(Self {
            operations,
            begin_regex: operations::regex(values, "measure-begin-regex")?,
            end_regex: operations::regex(values, "measure-end-regex")?,
            interval_regex: operations::regex(values, "interval-regex")?,
            by_counters: values.text("operations-from")? != Some("output"),
            series: Vec::new(),
            reported: None,
            phase: None,
            over: false,
            tail: VecDeque::new(),
        })
    }

    /// Follows it to its end. The durations are warm-up, window (zero: until it exits) and grace.
    ///
    /// # Errors
    /// If phases cannot be recorded or the server does not answer.
    pub fn follow(
        &mut self,
        mut child: Child,
        monitor: &mut RunMonitor<'_>,
        spans: [Duration; 3],
    ) -> Result<CommandEnd> {
        let [warmup, time, grace] = spans;
        let began = Instant::now();
        let limit = (!time.is_zero()).then(|| began + warmup + time + grace);
        let mut window_at = (self.begin_regex.is_none() && !warmup.is_zero()).then(|| began + warmup);
        let mut end_at = None;
        if self.begin_regex.is_some() || window_at.is_some() {
            self.enter("warmup", monitor)?;
        } else {
            self.enter("measure", monitor)?;
        }
        loop {
            if self.phase == Some("measure")
                && end_at.is_none()
                && self.end_regex.is_none()
                && !time.is_zero()
            {
                end_at = Some(Instant::now() + time);
            }
            let due = window_at
                .into_iter()
                .chain(end_at.filter(|_| !self.over))
                .chain(limit)
                .min();
            match child.next(due)? {
                ChildEvent::Line(stream, line) => self.line(stream, &line, monitor)?,
                ChildEvent::Signal(signal) => return Ok(CommandEnd::Signal(signal)),
                ChildEvent::Ended(status) => {
                    self.leave(monitor)?;
                    return Ok(CommandEnd::Exited(status));
                }
                ChildEvent::Due if limit.is_some_and(|limit| limit <= Instant::now()) => {
                    self.leave(monitor)?;
                    return Ok(CommandEnd::TimedOut(warmup + time + grace));
                }
                ChildEvent::Due if window_at.is_some_and(|at| at <= Instant::now()) => {
                    window_at = None;
                    self.enter("measure", monitor)?;
                }
                ChildEvent::Due => self.leave(monitor)?,
            }
            if self.over && self.by_counters {
                return Ok(CommandEnd::AfterWindow);
            }
        }
    }

    fn enter(&mut self, phase: &'static str, monitor: &mut RunMonitor<'_>) -> Result<()> {
        if let Some(before) = self.phase.take() {
            monitor.end_phase(before)?;
        }
        monitor.start_phase(phase)?;
        self.phase = Some(phase);
        Ok(())
    }

    fn leave(&mut self, monitor: &mut RunMonitor<'_>) -> Result<()> {
        if let Some(phase) = self.phase.take() {
            self.over = phase == "measure";
            monitor.end_phase(phase)?;
        }
        Ok(())
    }

    fn line(&mut self, stream: Stream, line: &str, monitor: &mut RunMonitor<'_>) -> Result<()> {
        monitor.line(line);
        if stream == Stream::Error {
            self.tail.push_back(short(line));
            if self.tail.len() > TAIL {
                self.tail.pop_front();
            }
        }
        self.operations.parse_line(line);
        let matches = |regex: &Option<Regex>| regex.as_ref().is_some_and(|regex| regex.is_match(line));
        if self.phase == Some("warmup") && matches(&self.begin_regex) {
            self.enter("measure", monitor)?;
        } else if self.phase == Some("measure") && matches(&self.end_regex) {
            self.leave(monitor)?;
        }
        let captures = self
            .interval_regex
            .as_ref()
            .and_then(|regex| regex.captures(line));
        if let Some(count) = captures.and_then(|captures| operations::number(&captures)) {
            let end = Timestamp::now();
            let before = self.reported.replace(end);
            if self.phase == Some("measure") {
                let inside = self.inside(before, monitor.window().0, end);
                self.series.push(ReportedInterval {
                    end,
                    counts: vec![("events", (count * inside).round() as u64)],
                    p95: None,
                });
            }
        }
        Ok(())
    }

    /// The share of an interval that is in the window. If the window starts by time, its first
    /// interval started before it; a program that marks its window starts to count there.
    fn inside(&self, before: Option<Timestamp>, begin: Timestamp, end: Timestamp) -> f64 {
        match before {
            Some(before) if self.begin_regex.is_none() && before.monotonic_ns < begin.monotonic_ns => {
                end.since(begin) / end.since(before)
            }
            _ => 1.0,
        }
    }

    /// The figures of the run.
    ///
    /// # Errors
    /// None for the options of this workload.
    pub fn into_outcome(
        self,
        ended: CommandEnd,
        monitor: &RunMonitor<'_>,
        values: &Values,
    ) -> Result<ExternalOutcome> {
        let (printed, printed_seconds) = self.operations.totals();
        let events = match values.text("operations-from")? {
            Some("questions") => monitor.growth("Questions"),
            Some("commits") => monitor.growth("Com_commit"),
            Some("intervals") => Some(self.series.iter().filter_map(|second| second.get("events")).sum()),
            _ => printed
                .filter(|count| *count >= 0.0)
                .map(|count| count.round() as u64),
        };
        let mut outcome = ExternalOutcome {
            seconds: Some(printed_seconds.unwrap_or_else(|| monitor.measured_seconds()))
                .filter(|_| self.over),
            operation: values.text("operation")?.map(str::to_owned),
            types: events
                .map(|events| ("command".to_owned(), events, Latency::default()))
                .into_iter()
                .collect(),
            series: self.series,
            ..ExternalOutcome::default()
        };
        let status = match &ended {
            CommandEnd::Exited(status) => Some(status.to_string()),
            _ => None,
        };
        outcome.failure = match ended {
            CommandEnd::Signal(signal) => {
                outcome.signal = Some(signal);
                None
            }
            CommandEnd::TimedOut(limit) => Some(format!(
                "the command had not ended {:.0} s after its start and was killed: pass it the length of the run ({{seconds}}), or raise --grace",
                limit.as_secs_f64()
            )),
            CommandEnd::Exited(status) if !status.success() => Some(format!(
                "the command ended with {status}: {}",
                self.tail
                    .back()
                    .map_or("no message on standard error", String::as_str)
            )),
            _ if !self.over => Some("the command ended before the measured window started".to_owned()),
            _ if events.is_none() => {
                Some("no line of the command's output contained a number of operations: check --operations-regex or --operations-json".to_owned())
            }
            _ if events == Some(0) => Some("the command counted no operations".to_owned()),
            _ => None,
        };
        if let Some(events) = events {
            outcome.totals.insert("events".to_owned(), json!(events));
            // Only a total of the program includes what its interval lines omit.
            if !outcome.series.is_empty() && values.text("operations-from")? == Some("output") {
                reported::reconcile(&mut outcome.series, monitor.window(), &[("events", events)]);
            }
        }
        outcome.details.insert("exit_status".to_owned(), json!(status));
        outcome.details.insert("stderr_tail".to_owned(), json!(self.tail));
        outcome
            .details
            .insert("window_seconds".to_owned(), json!(monitor.measured_seconds()));
        Ok(outcome)
    }
}
