//! Reads all probes that are due, one after the other, and keeps what each of them gave. A probe that fails costs its own rows.

use std::borrow::Cow;
use std::time::Duration;

use loadprint_probes::Cadence;
use loadprint_probes::ProbeError;
use loadprint_recording::clock;
use loadprint_recording::journal::Status;
use loadprint_recording::rows::Rows;

use crate::exposition::Published;
use crate::exposition::Sampled;
use crate::tick_journal::Opened;

/// What the newest read of one probe gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether it was read.
    pub status: Status,
    /// When the read began and ended (CLOCK_MONOTONIC).
    pub start_ns: i64,
    /// See `start_ns`.
    pub end_ns: i64,
    /// Why it failed or was not read.
    pub reason: String,
    /// What was read; where a tick skips the probe, what the read before gave.
    pub rows: Rows,
}

/// Which read of the probes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The first tick of a recording.
    First,
    /// A tick in its course.
    Between(u32),
    /// A tick in its course that is to read everything: somebody's window begins or ends here.
    Edge,
    /// The last tick.
    Last,
    /// Somebody asks for values now, and nothing is recorded.
    Scrape,
}

/// The probes and what the newest read of each gave.
#[derive(Debug)]
pub struct Reader {
    probes: Vec<Opened>,
    outcomes: Vec<Outcome>,
    threads_every: u32,
    /// How long a tick may wait for the reads that go on beside it.
    patience: Duration,
    /// When the newest read began (CLOCK_REALTIME).
    realtime_ns: i64,
}

/// Most of what a tick waits for the reads beside it; the last tick waits [`LAST_PATIENCE`].
const PATIENCE: Duration = Duration::from_millis(50);
const LAST_PATIENCE: Duration = Duration::from_secs(2);

impl Reader {
    /// Reads `probes`, which happens every `interval`.
    pub fn new(probes: Vec<Opened>, threads_every: u32, interval: Duration) -> Self {
        let outcome = |_: &Opened| Outcome {
            status: Status::Skipped,
            start_ns: 0,
            end_ns: 0,
            reason: String::new(),
            rows: Rows::default(),
        };
        let outcomes = probes.iter().map(outcome).collect();
        Self {
            probes,
            outcomes,
            threads_every,
            patience: PATIENCE.min(interval / 4),
            realtime_ns: 0,
        }
    }

    /// Every probe with what its newest read gave.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Opened, &Outcome)> {
        self.probes.iter().zip(&self.outcomes)
    }

    /// What the running probes gave, for others to read. Those that are read at the ends of a recording are not among them.
    pub fn publish(&self) -> Published {
        let running = self
            .outcomes()
            .filter(|(opened, _)| opened.probe.is_ok() && opened.entry.cadence != Cadence::Ends);
        let sampled = |(opened, outcome): (&Opened, &Outcome)| Sampled {
            name: opened.entry.name,
            schema: match &opened.probe {
                Ok(probe) => probe
                    .schema()
                    .map_or(Cow::Borrowed(opened.entry.schema), |learnt| {
                        Cow::Owned(learnt.clone())
                    }),
                Err(_) => Cow::Borrowed(opened.entry.schema),
            },
            outcome: outcome.clone(),
        };
        Published {
            realtime_ns: self.realtime_ns,
            probes: running.map(sampled).collect(),
        }
    }

    /// Reads every probe that is due: first those that answer at once, then what the slow ones have by then.
    pub fn read(&mut self, when: When) {
        self.realtime_ns = clock::realtime_ns();
        let threads_every = self.threads_every;
        let is_due = |cadence| match (cadence, when) {
            (Cadence::Every, _) | (_, When::First | When::Edge | When::Last) => true,
            (Cadence::Nth, When::Between(tick)) => tick.is_multiple_of(threads_every),
            (Cadence::Slow, When::Between(tick)) => tick.is_multiple_of(threads_every.saturating_mul(10)),
            (Cadence::Nth | Cadence::Slow, When::Scrape) => true,
            (Cadence::Ends, When::Between(_) | When::Scrape) => false,
        };
        for opened in &mut self.probes {
            if let Ok(probe) = &mut opened.probe
                && is_due(opened.entry.cadence)
            {
                probe.begin();
            }
        }
        let patience = match when {
            When::Last | When::Scrape => LAST_PATIENCE,
            When::First | When::Edge | When::Between(_) => self.patience,
        };
        let beside = |opened: &Opened| opened.probe.as_ref().is_ok_and(|probe| probe.is_pending());
        let (slow, quick): (Vec<_>, Vec<_>) =
            (0..self.probes.len()).partition(|&index| beside(&self.probes[index]));
        let mut now = clock::monotonic_ns();
        let until = now.saturating_add(i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX));
        for index in quick.into_iter().chain(slow) {
            let (opened, outcome) = (&mut self.probes[index], &mut self.outcomes[index]);
            outcome.start_ns = now;
            let mut read_ns = None;
            let mut skip = !is_due(opened.entry.cadence);
            if let Ok(probe) = &mut opened.probe {
                skip &= !probe.is_pending();
                let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
                probe.wait(Duration::from_nanos(left));
            }
            sample(opened, outcome, skip);
            now = clock::monotonic_ns();
            outcome.end_ns = now;
            if let Ok(probe) = &opened.probe
                && outcome.status != Status::Skipped
            {
                read_ns = probe.read_ns();
            }
            if let Some(stamps) = read_ns {
                (outcome.start_ns, outcome.end_ns) = stamps;
            }
        }
    }
}

fn sample(opened: &mut Opened, outcome: &mut Outcome, skip: bool) {
    outcome.reason.clear();
    // A tick that skips the probe leaves the rows for whoever asks for the newest.
    if !skip {
        outcome.rows.clear();
    }
    outcome.status = match &mut opened.probe {
        Ok(_) if skip => Status::Skipped,
        Ok(probe) => match probe.sample(&mut outcome.rows) {
            Ok(()) if outcome.rows.has_width(opened.entry.schema.columns.len()) => Status::Ok,
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
