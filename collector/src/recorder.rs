//! Takes ticks until a signal or the end of the duration: reads the probes that are due, one after the other,
//! then writes one frame to the journal. A probe that fails loses only its own rows.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use loadprint_probes::Cadence;
use loadprint_probes::NotRunning;
use loadprint_probes::ProbeError;
use loadprint_probes::RecordedFile;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::clock;
use loadprint_recording::files;
use loadprint_recording::journal::End;
use loadprint_recording::journal::Ended;
use loadprint_recording::journal::Stamp;
use loadprint_recording::journal::Status;
use loadprint_recording::journal::Writer;
use loadprint_recording::rows::Odd;

use crate::cli::RecordOptions;
use crate::live::Live;
use crate::opened_probe::OpenedProbe;
use crate::schedule::Schedule;
use crate::wakeup::Signals;
use crate::wakeup::Wakeup;

/// The probe with a row of each watched process.
const PROCESS: &str = "process";
/// Longest wait of a tick for background reads, unless it is the last one.
const TICK_TIMEOUT: Duration = Duration::from_millis(50);
/// Of a tick on request: no schedule waits for it, and without a read a turn has none of its rows.
const EDGE_TIMEOUT: Duration = Duration::from_millis(500);
const FINAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The probes of a recording and its open journal.
#[derive(Debug)]
pub struct Recorder {
    probes: Vec<OpenedProbe>,
    journal: Writer,
    threads_every: u32,
    interval: Duration,
    ticks: u64,
    missed: u64,
    last_tick: Option<u32>,
    live: Option<Live>,
    unread: BTreeMap<&'static str, Unread>,
    roles: BTreeSet<Vec<u8>>,
    /// Whether the probes with a gate are read.
    is_gate_open: bool,
}

/// What could not be read of one probe in the whole recording.
#[derive(Debug, Default)]
struct Unread {
    ticks: u64,
    first_failure: String,
    odd: Odd,
}

impl fmt::Display for Unread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ticks > 0 {
            let plural = if self.ticks > 1 { "s" } else { "" };
            write!(
                formatter,
                "{} tick{plural} failed ({})",
                self.ticks, self.first_failure
            )?;
        }
        if !self.odd.is_empty() {
            let and = if self.ticks > 0 { ", " } else { "" };
            write!(formatter, "{and}{}", self.odd)?;
        }
        Ok(())
    }
}

/// Which probes a tick reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleScope {
    /// The probes that are due.
    Due,
    /// All probes: a measurement window begins or ends here.
    All,
    /// The same on request, without a schedule.
    Edge,
    /// All probes with a long timeout: there is no later tick.
    Last,
}

impl Recorder {
    /// Records `probes` into `journal`, every `interval`, and the newest sample into `live`.
    pub fn new(
        probes: Vec<OpenedProbe>,
        journal: Writer,
        threads_every: u32,
        interval: Duration,
        live: Option<Live>,
    ) -> Self {
        Self {
            probes,
            journal,
            threads_every,
            interval,
            ticks: 0,
            missed: 0,
            last_tick: None,
            live,
            unread: BTreeMap::new(),
            roles: BTreeSet::new(),
            is_gate_open: true,
        }
    }

    /// Takes all ticks of the schedule; the last one is taken when the recording ends. Writes the pid file
    /// after the first tick.
    ///
    /// # Errors
    /// When the journal or the pid file cannot be written; the journal contains all previous ticks.
    pub fn run(
        &mut self,
        options: &RecordOptions,
        signals: &Signals,
        pid_file: &PidFile,
    ) -> anyhow::Result<Ended> {
        let start = clock::monotonic_ns();
        let limit = time_limit(options, start);
        let mut schedule = Schedule::new(start, nanoseconds(self.interval));
        let mut scope = SampleScope::All;
        loop {
            // A late wake-up at the end of the recording does not count ticks after the end as missed.
            let now = clock::monotonic_ns();
            let due = schedule.next(limit.map_or(now, |time| time.min(now)));
            let until = limit.map_or(due.intended_ns, |time| time.min(due.intended_ns));
            // The last tick is not on the schedule.
            let mut last = |intended_ns| self.tick(Stamp { intended_ns, ..due }, SampleScope::Last);
            loop {
                match signals.wait(until)? {
                    Wakeup::TickDue => break,
                    Wakeup::SampleAllRequested(_) => scope = SampleScope::All,
                    // Only turns have a gate.
                    Wakeup::GateRequested { .. } => {}
                    Wakeup::StopRequested => {
                        last(clock::monotonic_ns())?;
                        return Ok(Ended::Signal);
                    }
                }
            }
            if let Some(time) = limit
                && time <= due.intended_ns
            {
                last(time)?;
                return Ok(Ended::Duration);
            }
            self.tick(due, scope)?;
            scope = SampleScope::Due;
            if self.ticks == 1 {
                pid_file.write()?;
            }
        }
    }

    /// Takes a tick of all probes now.
    fn tick_now(&mut self, scope: SampleScope) -> loadprint_recording::Result<()> {
        let stamp = Stamp {
            tick: u32::try_from(self.ticks).unwrap_or(u32::MAX),
            intended_ns: clock::monotonic_ns(),
            ..Stamp::default()
        };
        self.tick(stamp, scope)
    }

    /// Takes one tick; the first one reads all probes.
    fn tick(&mut self, due: Stamp, scope: SampleScope) -> loadprint_recording::Result<()> {
        let stamp = Stamp {
            start_ns: clock::monotonic_ns(),
            realtime_ns: clock::realtime_ns(),
            ..due
        };
        // Encoding follows all reads, so that the sources are read close together.
        self.sample(scope, stamp.tick);
        self.journal.begin(stamp);
        for (index, opened) in self.probes.iter().enumerate() {
            let outcome = &opened.newest;
            let is_written = match &opened.probe {
                Ok(_) => true,
                Err(NotRunning::Unavailable(_)) => self.ticks == 0,
                Err(NotRunning::Off(_)) => false,
            };
            if opened.entry.name == PROCESS {
                let roles = (0..outcome.rows.len()).filter_map(|row| outcome.rows.entity(row).next());
                self.roles.extend(roles.map(<[u8]>::to_vec));
            }
            let odd = outcome.rows.odd();
            // The last tick waits for reads that are late: this one hangs.
            let hangs =
                scope == SampleScope::Last && outcome.status == Status::Skipped && !outcome.reason.is_empty();
            let is_failed = outcome.status == Status::Failed || hangs;
            if is_failed || outcome.status == Status::Ok && !odd.is_empty() {
                let unread = self.unread.entry(opened.entry.name).or_default();
                unread.odd.add(odd);
                if is_failed {
                    unread.ticks += 1;
                    if unread.ticks == 1 {
                        unread.first_failure.clone_from(&outcome.reason);
                    }
                }
            }
            if is_written {
                let times = (outcome.start_ns, outcome.end_ns);
                self.journal
                    .probe(index, outcome.status, times, &outcome.reason, &outcome.rows);
            }
        }
        self.journal.commit()?;
        if let Some(live) = &mut self.live {
            live.write(&stamp, &self.probes);
        }
        self.ticks += 1;
        self.missed += u64::from(stamp.missed);
        self.last_tick = Some(stamp.tick);
        Ok(())
    }

    /// Reads every probe that is due at this tick: the quick ones first, then those that read in the
    /// background.
    fn sample(&mut self, scope: SampleScope, tick: u32) {
        let (threads_every, is_gate_open) = (self.threads_every, self.is_gate_open);
        let is_due = |opened: &OpenedProbe| {
            if opened.entry.gated && !is_gate_open {
                return false;
            }
            scope != SampleScope::Due
                || match opened.entry.cadence {
                    Cadence::Every => true,
                    Cadence::Nth => tick.is_multiple_of(threads_every),
                    Cadence::Slow => tick.is_multiple_of(threads_every.saturating_mul(10)),
                    Cadence::Ends => false,
                }
        };
        // A read of an earlier tick may hang: it is not waited for again, except at the end.
        let is_late = |opened: &OpenedProbe| opened.is_pending() && scope != SampleScope::Last;
        let late: Vec<_> = self.probes.iter().map(is_late).collect();
        for opened in &mut self.probes {
            if is_due(opened)
                && let Ok(probe) = &mut opened.probe
            {
                probe.begin();
            }
        }
        let timeout = match scope {
            SampleScope::Last => FINAL_TIMEOUT,
            SampleScope::Edge => EDGE_TIMEOUT,
            SampleScope::Due | SampleScope::All => TICK_TIMEOUT.min(self.interval / 4),
        };
        let (slow, quick): (Vec<_>, Vec<_>) =
            (0..self.probes.len()).partition(|&index| self.probes[index].is_pending());
        let mut now = clock::monotonic_ns();
        let until = now.saturating_add(nanoseconds(timeout));
        for index in quick.into_iter().chain(slow) {
            let opened = &mut self.probes[index];
            opened.newest.start_ns = now;
            let skip = !is_due(opened) && !opened.is_pending();
            if let Ok(probe) = &mut opened.probe {
                let until = if late[index] { now } else { until };
                let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
                probe.wait(Duration::from_nanos(left));
            }
            sample_one(opened, skip);
            now = clock::monotonic_ns();
            opened.newest.end_ns = now;
            if let Ok(probe) = &opened.probe
                && opened.newest.status != Status::Skipped
                && let Some(times) = probe.read_ns()
            {
                (opened.newest.start_ns, opened.newest.end_ns) = times;
            }
        }
    }

    /// What could not be read, in one line; `None` if all was read.
    pub fn unread(&self) -> Option<String> {
        let probes = self
            .unread
            .iter()
            .map(|(name, unread)| format!("{name}: {unread}"));
        let probes: Vec<_> = probes.collect();
        (!probes.is_empty()).then(|| probes.join("; "))
    }

    /// Whether a process of this role was recorded, or may have been: no probe records processes.
    pub fn has_role(&self, role: &str) -> bool {
        let mut probes = self.probes.iter();
        let is_recorded = probes.any(|opened| opened.entry.name == PROCESS && opened.probe.is_ok());
        !is_recorded || self.roles.contains(role.as_bytes())
    }

    /// The files that probes add to the recording; call it after the last tick.
    pub fn recorded_files(&mut self) -> Vec<RecordedFile> {
        let probes = self.probes.iter_mut();
        probes
            .filter_map(|opened| opened.probe.as_mut().ok()?.recorded_file())
            .collect()
    }

    /// Number of ticks taken.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Writes the end of the journal.
    ///
    /// # Errors
    /// When it cannot be written; the journal then counts as torn but has all ticks.
    pub fn end(self, ended: Ended) -> loadprint_recording::Result<()> {
        self.journal.end(&End {
            ended,
            last_tick: self.last_tick,
            missed: self.missed,
        })
    }
}

fn sample_one(opened: &mut OpenedProbe, skip: bool) {
    let outcome = &mut opened.newest;
    outcome.reason.clear();
    // A skipped tick keeps the rows for `--live`.
    if !skip {
        outcome.rows.clear();
    }
    outcome.status = match &mut opened.probe {
        Ok(_) if skip => Status::Skipped,
        Ok(probe) => match probe.sample(&mut outcome.rows) {
            Ok(()) if outcome.rows.has_width(opened.entry.schema.columns.len()) => {
                if !outcome.rows.odd().is_empty() {
                    outcome.reason = format!("not read: {}", outcome.rows.odd());
                }
                Status::Ok
            }
            Ok(()) => {
                outcome
                    .reason
                    .push_str("a row does not have the columns of its table; please report this");
                Status::Failed
            }
            Err(error) => {
                outcome.rows.clear();
                outcome.reason = error.to_string();
                match error {
                    ProbeError::Pending(_) => Status::Skipped,
                    _ => Status::Failed,
                }
            }
        },
        Err(reason) => {
            outcome.reason = reason.to_string();
            Status::Unavailable
        }
    };
}

/// Takes a tick of every recorder at the start, of one at each request, and of every one at the end. While the
/// gate of `shared` is closed on request, the probes that have one are not read. The limits are those of
/// `options`.
///
/// # Errors
/// As [`Recorder::run`], and when the kernel refuses to attach the programs again.
pub fn run_on_request(
    recorders: &mut [&mut Recorder],
    shared: &Shared,
    options: &RecordOptions,
    signals: &Signals,
    pid_file: &PidFile,
) -> anyhow::Result<Ended> {
    let limit = time_limit(options, clock::monotonic_ns());
    for recorder in &mut *recorders {
        recorder.tick_now(SampleScope::Edge)?;
    }
    pid_file.write()?;
    let ended = loop {
        match signals.wait(limit.unwrap_or(i64::MAX))? {
            Wakeup::SampleAllRequested(place) => recorders[place].tick_now(SampleScope::Edge)?,
            Wakeup::GateRequested { open } => {
                shared.set_gate(open)?;
                for recorder in &mut *recorders {
                    recorder.is_gate_open = open;
                }
            }
            Wakeup::StopRequested => break Ended::Signal,
            Wakeup::TickDue => break Ended::Duration,
        }
    };
    for recorder in recorders {
        recorder.tick_now(SampleScope::Last)?;
    }
    Ok(ended)
}

/// The end of `--duration`, as a time of CLOCK_MONOTONIC.
fn time_limit(options: &RecordOptions, start: i64) -> Option<i64> {
    Some(start.saturating_add(nanoseconds(options.duration?)))
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The path of the file, if one was requested. Dropping it removes the file.
#[derive(Debug)]
pub struct PidFile(pub Option<PathBuf>);

impl PidFile {
    /// Writes the file in one step: a program that waits for it reads it at once.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let text = format!("{}\n", std::process::id());
        files::write(path, text.as_bytes()).context("cannot write the pid file")
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It does not exist if the recording ended before the first tick.
            drop(fs::remove_file(path));
        }
    }
}
