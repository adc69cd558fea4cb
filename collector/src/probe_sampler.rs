//! Reads all probes that are due, one after the other. A probe that fails loses only its own rows.

use std::time::Duration;

use loadprint_probes::Cadence;
use loadprint_probes::ProbeError;
use loadprint_probes::RecordedFile;
use loadprint_recording::clock;
use loadprint_recording::journal::Status;
use loadprint_recording::rows::Rows;

use crate::opened_probe::OpenedProbe;

/// Status, times and rows of the newest read.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether the read succeeded.
    pub status: Status,
    /// Start of the read (CLOCK_MONOTONIC).
    pub start_ns: i64,
    /// End of the read (CLOCK_MONOTONIC).
    pub end_ns: i64,
    /// Why the read failed or was skipped, or what of it could not be read.
    pub reason: String,
    /// The rows; those of the previous read where a tick skips the probe.
    pub rows: Rows,
}

/// Which probes a tick reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleScope {
    /// The probes that are due.
    Due,
    /// All probes: a measurement window begins or ends here.
    All,
    /// All probes with a long timeout: there is no later tick.
    Last,
}

/// The probes and the outcome of the newest read of each.
#[derive(Debug)]
pub struct ProbeSampler {
    probes: Vec<OpenedProbe>,
    outcomes: Vec<Outcome>,
    threads_every: u32,
    /// How long a tick waits for background reads.
    timeout: Duration,
}

/// Longest wait of a tick for background reads, unless it is the last one.
const TICK_TIMEOUT: Duration = Duration::from_millis(50);
const FINAL_TIMEOUT: Duration = Duration::from_secs(2);

impl ProbeSampler {
    /// A sampler of `probes` that are read every `interval`.
    pub fn new(probes: Vec<OpenedProbe>, threads_every: u32, interval: Duration) -> Self {
        let outcomes = probes.iter().map(|_| Outcome::default()).collect();
        Self {
            probes,
            outcomes,
            threads_every,
            timeout: TICK_TIMEOUT.min(interval / 4),
        }
    }

    /// Every probe with its outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&OpenedProbe, &Outcome)> {
        self.probes.iter().zip(&self.outcomes)
    }

    /// The files that probes add to the recording.
    pub fn recorded_files(&mut self) -> Vec<RecordedFile> {
        let probes = self.probes.iter_mut();
        probes
            .filter_map(|opened| opened.probe.as_mut().ok()?.recorded_file())
            .collect()
    }

    /// Reads every probe that is due at this tick: the quick ones first, then those that read in the
    /// background.
    pub fn sample(&mut self, scope: SampleScope, tick: u32) {
        let threads_every = self.threads_every;
        let is_pending = |opened: &OpenedProbe| opened.probe.as_ref().is_ok_and(|probe| probe.is_pending());
        let is_due = |cadence| {
            scope != SampleScope::Due
                || match cadence {
                    Cadence::Every => true,
                    Cadence::Nth => tick.is_multiple_of(threads_every),
                    Cadence::Slow => tick.is_multiple_of(threads_every.saturating_mul(10)),
                    Cadence::Ends => false,
                }
        };
        // A read of an earlier tick may hang: it is not waited for again, except at the end.
        let is_late = |opened: &OpenedProbe| is_pending(opened) && scope != SampleScope::Last;
        let late: Vec<_> = self.probes.iter().map(is_late).collect();
        for opened in &mut self.probes {
            if let Ok(probe) = &mut opened.probe
                && is_due(opened.entry.cadence)
            {
                probe.begin();
            }
        }
        let timeout = match scope {
            SampleScope::Last => FINAL_TIMEOUT,
            SampleScope::Due | SampleScope::All => self.timeout,
        };
        let (slow, quick): (Vec<_>, Vec<_>) =
            (0..self.probes.len()).partition(|&index| is_pending(&self.probes[index]));
        let mut now = clock::monotonic_ns();
        let until = now.saturating_add(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
        for index in quick.into_iter().chain(slow) {
            let (opened, outcome) = (&mut self.probes[index], &mut self.outcomes[index]);
            outcome.start_ns = now;
            let mut skip = !is_due(opened.entry.cadence);
            if let Ok(probe) = &mut opened.probe {
                skip &= !probe.is_pending();
                let until = if late[index] { now } else { until };
                let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
                probe.wait(Duration::from_nanos(left));
            }
            sample_one(opened, outcome, skip);
            now = clock::monotonic_ns();
            outcome.end_ns = now;
            if let Ok(probe) = &opened.probe
                && outcome.status != Status::Skipped
                && let Some(times) = probe.read_ns()
            {
                (outcome.start_ns, outcome.end_ns) = times;
            }
        }
    }
}

fn sample_one(opened: &mut OpenedProbe, outcome: &mut Outcome, skip: bool) {
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
