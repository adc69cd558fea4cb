//! Runs the program of a generator: its output marks the phases and reports the intervals. The
//! server's status is read when a mark appears; the program does not wait for it.

use std::process::ExitStatus;
use std::time::Duration;
use std::time::Instant;

use anyhow::Result;
use anyhow::bail;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;

use super::account::PrivateDir;
use super::child::Child;
use super::child::ChildEvent;
use super::child::Stream;
use super::outcome::ExternalOutcome;
use crate::output::Output;
use crate::recording::Recording;
use crate::series::reported::ReportedInterval;
use crate::series::reported::Timestamp;
use crate::server::Server;

/// A started program.
pub struct Program {
    /// Its process.
    pub child: Child,
    /// Contains the password; removed after the process has ended.
    pub _private: PrivateDir,
    /// Times of its phases.
    pub schedule: Schedule,
    /// Reads its output.
    pub reader: Box<dyn OutputReader>,
}

/// When phases start and end that no line of the output marks. Times count from the start of the
/// program.
#[derive(Debug, Default)]
pub struct Schedule {
    /// The program is killed after this time.
    pub limit: Option<Duration>,
    /// The phase that starts with the program.
    pub first: Option<&'static str>,
    /// When `measure` starts.
    pub measure_at: Option<Duration>,
    /// Length of `measure`.
    pub measure_for: Option<Duration>,
    /// True if the last phase ends with the program.
    pub ends_with_program: bool,
    /// True if the program is ended after `measure`.
    pub stop_after_window: bool,
}

/// What a line of output means.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A phase starts.
    Phase(&'static str),
    /// `warmup` starts, and `measure` after this time.
    WarmUp(Duration),
    /// The phase ends.
    End,
    /// An interval ends: rates per second by column, and the 95th percentile in milliseconds.
    Rates(Vec<(&'static str, f64)>, Option<f64>),
    /// An interval ends: its number of events.
    Count(f64),
}

/// Reads the output of a program.
pub trait OutputReader {
    /// Reads a line in a phase, and prints it if it is for users.
    fn read(&mut self, stream: Stream, line: &str, phase: Option<&str>, out: &Output) -> Vec<Mark>;

    /// Checks `prepare`, `warmup` or `cleanup` after the end of the program.
    ///
    /// # Errors
    /// One line: the program's error.
    fn finish(&self, status: ExitStatus) -> Result<()>;

    /// The figures of a run, checked; the series is in `monitor`.
    fn outcome(&mut self, end: &End, monitor: &mut RunMonitor<'_>) -> ExternalOutcome;
}

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// It exited.
    Exited(ExitStatus),
    /// It was ended after its window.
    AfterWindow,
    /// This process was interrupted.
    Signal(i32),
    /// It did not end in time and was killed.
    TimedOut,
}

impl Program {
    /// Follows `prepare`, `warmup` or `cleanup` to the end.
    ///
    /// # Errors
    /// One line: the program's error.
    pub fn finish(mut self, out: &Output) -> Result<()> {
        loop {
            match self.child.next(None)? {
                ChildEvent::Line(stream, line) => drop(self.reader.read(stream, &line, None, out)),
                ChildEvent::Signal(SIGUSR1 | SIGUSR2) => {}
                ChildEvent::Signal(signal) => bail!("interrupted by signal {signal}"),
                ChildEvent::Due => {}
                ChildEvent::Ended(status) => return self.reader.finish(status),
            }
        }
    }

    /// Follows a run to its end.
    ///
    /// # Errors
    /// If phases cannot be recorded or the server does not answer.
    pub fn run(mut self, monitor: &mut RunMonitor<'_>) -> Result<ExternalOutcome> {
        let end = monitor.follow(&mut self)?;
        Ok(self.reader.outcome(&end, monitor).without_contradictions())
    }
}

/// Records the phases and the series of a run.
pub struct RunMonitor<'a> {
    pub server: Server,
    pub recording: Option<Recording>,
    /// Interval reports in `measure`.
    pub series: Vec<ReportedInterval>,
    /// Start and end of `measure` so far.
    pub window: (Timestamp, Timestamp),
    /// True after `measure`.
    pub over: bool,
    pub output: &'a Output,
    phase: Option<&'static str>,
    /// Time of the last interval line, in any phase.
    reported: Option<Timestamp>,
}

impl<'a> RunMonitor<'a> {
    /// A run that has not started.
    pub fn new(server: Server, output: &'a Output) -> Self {
        Self {
            server,
            recording: None,
            series: Vec::new(),
            window: <(Timestamp, Timestamp)>::default(),
            over: false,
            output,
            phase: None,
            reported: None,
        }
    }

    /// Seconds between the marks of `measure`, by the clock of this process.
    pub fn measured_seconds(&self) -> f64 {
        self.window.1.since(self.window.0)
    }

    fn follow(&mut self, program: &mut Program) -> Result<End> {
        let schedule = &program.schedule;
        let began = Instant::now();
        let limit = schedule.limit.map(|limit| began + limit);
        let mut measure_at = schedule.measure_at.map(|after| began + after);
        let mut end_at = None;
        if let Some(phase) = schedule.first {
            self.start_phase(phase)?;
        }
        let end = loop {
            if self.phase == Some("measure") && end_at.is_none() {
                end_at = schedule.measure_for.map(|length| Instant::now() + length);
            }
            let open_end = end_at.filter(|_| !self.over);
            let due = [measure_at, open_end, limit].into_iter().flatten().min();
            match program.child.next(due)? {
                ChildEvent::Line(stream, line) => {
                    for mark in program.reader.read(stream, &line, self.phase, self.output) {
                        if let Mark::WarmUp(length) = mark {
                            measure_at = Some(Instant::now() + length);
                        }
                        self.apply(&mark, schedule.measure_at.is_some())?;
                    }
                }
                ChildEvent::Signal(SIGUSR1 | SIGUSR2) => {}
                ChildEvent::Signal(signal) => return Ok(End::Signal(signal)),
                ChildEvent::Ended(status) => break End::Exited(status),
                ChildEvent::Due if limit.is_some_and(|limit| limit <= Instant::now()) => break End::TimedOut,
                ChildEvent::Due if measure_at.is_some_and(|at| at <= Instant::now()) => {
                    measure_at = None;
                    self.start_phase("measure")?;
                }
                ChildEvent::Due => self.end_phase()?,
            }
            if self.over && schedule.stop_after_window {
                return Ok(End::AfterWindow);
            }
        };
        if schedule.ends_with_program {
            self.end_phase()?;
        }
        Ok(end)
    }

    fn apply(&mut self, mark: &Mark, by_clock: bool) -> Result<()> {
        match mark {
            Mark::Phase(phase) => self.start_phase(phase),
            Mark::WarmUp(_) => self.start_phase("warmup"),
            Mark::End => self.end_phase(),
            Mark::Rates(rates, p95) => {
                if self.phase == Some("measure") {
                    let (begin, end) = (self.window.0, Timestamp::now());
                    let row = ReportedInterval::from_rates(&self.series, begin, end, rates, *p95);
                    self.series.push(row);
                }
                Ok(())
            }
            Mark::Count(count) => {
                self.count(*count, by_clock);
                Ok(())
            }
        }
    }

    /// If the window starts by the clock, its first interval started before it, and only its share
    /// in the window is counted; a program that marks its window starts to count there.
    fn count(&mut self, count: f64, by_clock: bool) {
        let (begin, end) = (self.window.0, Timestamp::now());
        let before = self.reported.replace(end);
        if self.phase != Some("measure") {
            return;
        }
        let inside = match before {
            Some(before) if by_clock && before.monotonic_ns < begin.monotonic_ns => {
                end.since(begin) / end.since(before)
            }
            _ => 1.0,
        };
        self.series.push(ReportedInterval {
            end,
            counts: vec![("events", (count * inside).round() as u64)],
            p95: None,
        });
    }

    /// Records that the program is paused, goes on or has reached the end of an interval; how many of its
    /// operations are in progress then is not known.
    pub fn turn(&self, event: &str) -> Result<()> {
        let recording = self.recording.as_ref();
        recording.map_or(Ok(()), |recording| recording.write_turn(event, None))
    }

    /// Ends the current phase and starts the next one, whose mark was just read.
    pub fn start_phase(&mut self, phase: &'static str) -> Result<()> {
        self.end_phase()?;
        if let Some(recording) = &mut self.recording {
            recording.start_phase(phase)?;
        }
        self.phase = Some(phase);
        if phase == "warmup" {
            self.output.line("Warming up (not counted)");
            return Ok(self.server.read_before_warmup()?);
        }
        self.window.0 = Timestamp::now();
        self.output.line("Measuring");
        Ok(self.server.read_before_measure()?)
    }

    /// Ends the current phase.
    pub fn end_phase(&mut self) -> Result<()> {
        let Some(phase) = self.phase.take() else {
            return Ok(());
        };
        if let Some(recording) = &mut self.recording {
            recording.end_phase(phase)?;
        }
        if phase == "measure" {
            self.over = true;
            self.window.1 = Timestamp::now();
            self.server.read_after_measure();
        }
        Ok(())
    }
}
