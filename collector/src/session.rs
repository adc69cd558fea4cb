//! One recording: opens the probes, takes ticks, writes them to the journal. A probe that fails never ends it.

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::PROBES;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_recording::clock;
use loadprint_recording::journal::ProbeHeader;
use loadprint_recording::journal::Stamp;
use loadprint_recording::journal::Standing;
use loadprint_recording::journal::Status;
use loadprint_recording::journal::Writer;
use loadprint_recording::rows::Rows;

use crate::cli::ProbeOptions;
use crate::ticker::Due;

/// A probe of the list as it stands on this host.
#[derive(Debug)]
pub struct Opened {
    /// Its line in the list.
    pub entry: &'static ProbeEntry,
    /// The probe, or why it is not running.
    pub probe: Result<Box<dyn Probe>, NotRunning>,
}

impl Opened {
    /// Its standing and the reason.
    pub fn standing(&self) -> (Standing, Option<&str>) {
        match &self.probe {
            Ok(_) => (Standing::Running, None),
            Err(NotRunning::Off(reason)) => (Standing::Off, Some(reason)),
            Err(NotRunning::Unavailable(reason)) => (Standing::Unavailable, Some(reason)),
        }
    }

    /// What the journal's header says of it.
    pub fn header(&self) -> ProbeHeader {
        let (status, reason) = self.standing();
        ProbeHeader {
            name: self.entry.name.to_owned(),
            status,
            reason: reason.map(str::to_owned),
            schema: self.entry.schema.clone(),
        }
    }
}

/// Opens the probes that were asked for.
///
/// # Errors
/// When a name is not in the list.
pub fn open_probes(asked: &ProbeOptions, host: &Host, options: &Options) -> anyhow::Result<Vec<Opened>> {
    for name in asked.only.iter().chain(&asked.without) {
        if !PROBES.iter().any(|entry| entry.name == name) {
            let names: Vec<_> = PROBES.iter().map(|entry| entry.name).collect();
            anyhow::bail!("no probe is called `{name}`; there are {}", names.join(", "));
        }
    }
    let wanted = |name: &str| {
        let listed = |list: &[String]| list.iter().any(|other| other == name);
        (asked.only.is_empty() || listed(&asked.only)) && !listed(&asked.without)
    };
    let open = |entry: &'static ProbeEntry| {
        let off = || NotRunning::Off("not asked for on the command line".to_owned());
        let probe = if wanted(entry.name) {
            (entry.open)(host, options)
        } else {
            Err(off())
        };
        Opened { entry, probe }
    };
    Ok(PROBES.iter().map(open).collect())
}

#[derive(Debug)]
struct Outcome {
    status: Status,
    end_ns: i64,
    reason: String,
    rows: Rows,
}

/// A recording that is under way.
#[derive(Debug)]
pub struct Session {
    probes: Vec<Opened>,
    outcomes: Vec<Outcome>,
    journal: Writer,
    threads_every: u32,
    ticks: u64,
    missed: u64,
    last_tick: Option<u32>,
}

impl Session {
    /// Records `probes` into `journal`.
    pub fn new(probes: Vec<Opened>, journal: Writer, threads_every: u32) -> Self {
        let outcome = |_: &Opened| Outcome {
            status: Status::Ok,
            end_ns: 0,
            reason: String::new(),
            rows: Rows::default(),
        };
        let outcomes = probes.iter().map(outcome).collect();
        Self {
            probes,
            outcomes,
            journal,
            threads_every,
            ticks: 0,
            missed: 0,
            last_tick: None,
        }
    }

    /// Takes one tick: reads all probes, then writes one frame.
    ///
    /// # Errors
    /// When the journal cannot be written; all ticks before are in it.
    pub fn tick(&mut self, due: Due, is_last: bool) -> loadprint_recording::Result<()> {
        let start_ns = clock::monotonic_ns();
        let realtime_ns = clock::realtime_ns();
        // What must be cheap comes first: reading. Encoding waits, so that the sources are read close together.
        for (opened, outcome) in self.probes.iter_mut().zip(&mut self.outcomes) {
            let skip = opened.entry.every_nth && !is_last && !due.tick.is_multiple_of(self.threads_every);
            sample(opened, outcome, skip);
            outcome.end_ns = clock::monotonic_ns();
        }
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
        let mut begun = start_ns;
        for (index, outcome) in self.outcomes.iter().enumerate() {
            let in_first = self.ticks == 0;
            let write = match &self.probes[index].probe {
                Ok(_) => true,
                Err(NotRunning::Unavailable(_)) => in_first,
                Err(NotRunning::Off(_)) => false,
            };
            if write {
                let stamps = (begun, outcome.end_ns);
                self.journal
                    .probe(index, outcome.status, stamps, &outcome.reason, &outcome.rows);
            }
            begun = outcome.end_ns;
        }
        self.journal.commit()?;
        self.ticks += 1;
        self.missed += u64::from(missed);
        self.last_tick = Some(tick);
        Ok(())
    }

    /// Ticks taken.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The journal, the number of the last tick, and how many were missed.
    pub fn end(self) -> (Writer, Option<u32>, u64) {
        (self.journal, self.last_tick, self.missed)
    }
}

fn sample(opened: &mut Opened, outcome: &mut Outcome, skip: bool) {
    outcome.rows.clear();
    outcome.reason.clear();
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
                outcome.reason = error.to_string();
                Status::Failed
            }
        },
        Err(reason) => {
            outcome.reason = reason.to_string();
            Status::Unavailable
        }
    };
}
