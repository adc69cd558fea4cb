//! Takes ticks: reads the probes that are due, then writes one frame to the journal.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use loadprint_probes::NotRunning;
use loadprint_probes::RecordedFile;
use loadprint_recording::clock;
use loadprint_recording::journal::Stamp;
use loadprint_recording::journal::Status;
use loadprint_recording::journal::Writer;
use loadprint_recording::rows::Odd;

use crate::live::Live;
use crate::opened_probe::OpenedProbe;
use crate::probe_sampler::ProbeSampler;
use crate::probe_sampler::SampleScope;
use crate::schedule::Due;

/// The probe with a row of each watched process.
const PROCESS: &str = "process";

/// The probes of a recording and its open journal.
#[derive(Debug)]
pub struct TickJournal {
    sampler: ProbeSampler,
    journal: Writer,
    ticks: u64,
    missed: u64,
    last_tick: Option<u32>,
    live: Option<Live>,
    unread: BTreeMap<&'static str, Unread>,
    roles: BTreeSet<Vec<u8>>,
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

impl TickJournal {
    /// Records `probes` into `journal`, every `interval`, and the newest sample into `live`.
    pub fn new(
        probes: Vec<OpenedProbe>,
        journal: Writer,
        threads_every: u32,
        interval: Duration,
        live: Option<Live>,
    ) -> Self {
        Self {
            sampler: ProbeSampler::new(probes, threads_every, interval),
            journal,
            ticks: 0,
            missed: 0,
            last_tick: None,
            live,
            unread: BTreeMap::new(),
            roles: BTreeSet::new(),
        }
    }

    /// Takes one tick: reads the probes, then writes one frame.
    ///
    /// # Errors
    /// When the journal cannot be written; it contains all previous ticks.
    pub fn tick(&mut self, due: Due, scope: SampleScope) -> loadprint_recording::Result<()> {
        let start_ns = clock::monotonic_ns();
        let realtime_ns = clock::realtime_ns();
        // The first tick reads all probes.
        let scope = match scope {
            SampleScope::Due if self.ticks == 0 => SampleScope::All,
            scope => scope,
        };
        // Encoding follows all reads, so that the sources are read close together.
        self.sampler.sample(scope, due.tick);
        let Due {
            tick,
            intended_ns,
            missed,
        } = due;
        self.journal.begin(Stamp {
            tick,
            intended_ns,
            start_ns,
            realtime_ns,
            missed,
        });
        for (index, (opened, outcome)) in self.sampler.outcomes().enumerate() {
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
            live.write((start_ns, realtime_ns), self.sampler.outcomes());
        }
        self.ticks += 1;
        self.missed += u64::from(missed);
        self.last_tick = Some(tick);
        Ok(())
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
        let mut outcomes = self.sampler.outcomes();
        let is_recorded = outcomes.any(|(opened, _)| opened.entry.name == PROCESS && opened.probe.is_ok());
        !is_recorded || self.roles.contains(role.as_bytes())
    }

    /// The files that probes add to the recording; call it after the last tick.
    pub fn recorded_files(&mut self) -> Vec<RecordedFile> {
        self.sampler.recorded_files()
    }

    /// Number of ticks taken.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The journal, the number of the last tick, and the number of missed ticks.
    pub fn end(self) -> (Writer, Option<u32>, u64) {
        (self.journal, self.last_tick, self.missed)
    }
}
