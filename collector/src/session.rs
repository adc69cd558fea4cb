//! One recording: opens the probes, takes ticks, writes them to the journal. A probe that fails never ends it.

use std::rc::Rc;
use std::time::Duration;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::PROBES;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::clock;
use loadprint_recording::journal::ProbeHeader;
use loadprint_recording::journal::Stamp;
use loadprint_recording::journal::Standing;
use loadprint_recording::journal::Writer;
use loadprint_recording::schema::Schema;

use crate::cli::ProbeOptions;
use crate::exposition::Published;
use crate::reading::Reader;
use crate::reading::When;
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

    /// What its rows mean.
    pub fn schema(&self) -> &Schema {
        let learnt = self.probe.as_ref().ok().and_then(|probe| probe.schema());
        learnt.unwrap_or(self.entry.schema)
    }

    /// What the journal's header says of it.
    pub fn header(&self) -> ProbeHeader {
        let (status, reason) = self.standing();
        ProbeHeader {
            name: self.entry.name.to_owned(),
            status,
            reason: reason.map(str::to_owned),
            schema: self.schema().clone(),
        }
    }
}

/// Refuses names that are not in the list.
///
/// # Errors
/// The first of them, with what there is.
pub fn refuse_unknown(asked: &ProbeOptions) -> anyhow::Result<()> {
    for name in asked.only.iter().chain(&asked.with).chain(&asked.without) {
        if !PROBES.iter().any(|entry| entry.matches(name)) {
            let names: Vec<_> = PROBES.iter().map(|entry| entry.name).collect();
            anyhow::bail!("no probe is called `{name}`; there are {}", names.join(", "));
        }
    }
    Ok(())
}

/// Opens the probes that were asked for.
///
/// # Errors
/// When a name is not in the list.
pub fn open_probes(asked: &ProbeOptions, host: &Host, options: &Options) -> anyhow::Result<Vec<Opened>> {
    refuse_unknown(asked)?;
    let off = |entry: &ProbeEntry| {
        let listed = |list: &[String]| list.iter().any(|name| entry.matches(name));
        if listed(&asked.without) || !(asked.only.is_empty() || listed(&asked.only)) {
            return Some("not asked for on the command line".to_owned());
        }
        let by_name = |list: &[String]| list.iter().any(|name| entry.name == name);
        (entry.on_request && !by_name(&asked.with) && !by_name(&asked.only)).then(|| {
            format!(
                "not in the standard set; --with {} adds it: {}",
                entry.name, entry.help
            )
        })
    };
    let shared = Rc::new(Shared::default());
    let open = |entry: &'static ProbeEntry| {
        let probe = match off(entry) {
            Some(reason) => Err(NotRunning::Off(reason)),
            None => entry.open(host, options, &shared),
        };
        Opened { entry, probe }
    };
    Ok(PROBES.iter().map(open).collect())
}

/// What a tick is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The probes that are due.
    Due,
    /// All of them, also those that are read at the ends: somebody wants an edge here.
    All,
    /// All of them, with patience: there is no later tick.
    Last,
}

/// A recording that is under way.
#[derive(Debug)]
pub struct Session {
    reader: Reader,
    journal: Writer,
    ticks: u64,
    missed: u64,
    last_tick: Option<u32>,
}

impl Session {
    /// Records `probes` into `journal`, every `interval`.
    pub fn new(probes: Vec<Opened>, journal: Writer, threads_every: u32, interval: Duration) -> Self {
        Self {
            reader: Reader::new(probes, threads_every, interval),
            journal,
            ticks: 0,
            missed: 0,
            last_tick: None,
        }
    }

    /// Takes one tick: reads all probes, then writes one frame.
    ///
    /// # Errors
    /// When the journal cannot be written; all ticks before are in it.
    pub fn tick(&mut self, due: Due, extent: Extent) -> loadprint_recording::Result<()> {
        let start_ns = clock::monotonic_ns();
        let realtime_ns = clock::realtime_ns();
        // What must be cheap comes first: reading. Encoding waits, so that the sources are read close together.
        let when = match (extent, self.ticks) {
            (Extent::Last, _) => When::Last,
            (Extent::Due | Extent::All, 0) => When::First,
            (Extent::All, _) => When::Edge,
            (Extent::Due, _) => When::Between(due.tick),
        };
        self.reader.read(when);
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
        for (index, (opened, outcome)) in self.reader.outcomes().enumerate() {
            let in_first = self.ticks == 0;
            let write = match &opened.probe {
                Ok(_) => true,
                Err(NotRunning::Unavailable(_)) => in_first,
                Err(NotRunning::Off(_)) => false,
            };
            if write {
                let stamps = (outcome.start_ns, outcome.end_ns);
                self.journal
                    .probe(index, outcome.status, stamps, &outcome.reason, &outcome.rows);
            }
        }
        self.journal.commit()?;
        self.ticks += 1;
        self.missed += u64::from(missed);
        self.last_tick = Some(tick);
        Ok(())
    }

    /// What the newest tick read, for who scrapes the recorder.
    pub fn publish(&self) -> Published {
        self.reader.publish()
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
