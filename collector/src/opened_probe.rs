//! Selects probes by the command line and opens them.

use std::path::Path;
use std::rc::Rc;

use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::PROBES;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_probes::ebpf::Shared;
use loadprint_probes::symbols::Symbols;
use loadprint_recording::journal::ProbeHeader;
use loadprint_recording::journal::ProbeStatus;
use loadprint_recording::journal::Status;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;

use crate::cli::ProbeOptions;

/// An entry of `PROBES` after it was opened on this host.
#[derive(Debug)]
pub struct OpenedProbe {
    /// The entry in `PROBES`.
    pub entry: &'static ProbeEntry,
    /// The probe, or why it is not running.
    pub probe: Result<Box<dyn Probe>, NotRunning>,
    /// Whether the command line selects it by its name or that of its group.
    pub is_named: bool,
    /// The newest read.
    pub newest: Outcome,
}

/// Status, times and rows of a read.
#[derive(Debug, Default)]
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

impl OpenedProbe {
    /// Whether a read on the probe's separate thread has begun and not been taken.
    pub fn is_pending(&self) -> bool {
        self.probe.as_ref().is_ok_and(|probe| probe.is_pending())
    }

    /// The probe's status and the reason for it.
    pub fn status(&self) -> (ProbeStatus, Option<&str>) {
        match &self.probe {
            Ok(_) => (ProbeStatus::Running, None),
            Err(NotRunning::Off(reason)) => (ProbeStatus::Off, Some(reason)),
            Err(NotRunning::Unavailable(reason)) => (ProbeStatus::Unavailable, Some(reason)),
        }
    }

    /// The schema of its rows, as found on this host where it depends on the host.
    pub fn schema(&self) -> &Schema {
        let discovered = self.probe.as_ref().ok().and_then(|probe| probe.schema());
        discovered.unwrap_or(self.entry.schema)
    }

    /// Its entry in the journal's header.
    pub fn header(&self) -> ProbeHeader {
        let (status, reason) = self.status();
        ProbeHeader {
            name: self.entry.name.to_owned(),
            status,
            reason: reason.map(str::to_owned),
            schema: self.schema().clone(),
        }
    }
}

/// Refuses unknown probe names.
///
/// # Errors
/// Names the first unknown probe and lists all known ones.
pub fn refuse_unknown_names<'a>(names: impl Iterator<Item = &'a String>) -> anyhow::Result<()> {
    for name in names {
        if !PROBES.iter().any(|entry| entry.matches(name)) {
            let names: Vec<_> = PROBES.iter().map(|entry| entry.name).collect();
            anyhow::bail!("unknown probe `{name}`; known probes: {}", names.join(", "));
        }
    }
    Ok(())
}

/// Opens the selected probes; the recordings of one recorder have the same `shared`.
///
/// # Errors
/// When the command line names an unknown probe.
pub fn open_probes(
    selection: &ProbeOptions,
    host: &Host,
    options: &Options,
    shared: &Rc<Shared>,
) -> anyhow::Result<Vec<OpenedProbe>> {
    refuse_unknown_names(selection.names())?;
    let options = &with_symbols(selection, host, options);
    let open = |entry: &'static ProbeEntry| {
        let off = reason_off(entry, selection);
        let mut named = selection.only.iter().chain(&selection.with);
        OpenedProbe {
            entry,
            is_named: off.is_none() && named.any(|name| entry.matches(name)),
            probe: match off {
                Some(reason) => Err(NotRunning::Off(reason)),
                None => entry.open(host, options, shared),
            },
            newest: Outcome::default(),
        }
    };
    Ok(PROBES.iter().map(open).collect())
}

/// The options with the helper that reads symbols, if a selected probe needs it.
fn with_symbols(selection: &ProbeOptions, host: &Host, options: &Options) -> Options {
    let mut options = options.clone();
    let needs = |entry: &ProbeEntry| entry.reads_symbols && reason_off(entry, selection).is_none();
    if PROBES.iter().any(needs) && !options.processes.is_empty() {
        options.symbols = Symbols::start(Path::new("/proc/self/exe"), &host.proc(""))
            .inspect_err(|error| {
                eprintln!(
                    "loadprint-collect: warning: /proc/self/exe: {error}; no symbols are read; mount /proc"
                );
            })
            .ok();
    }
    options
}

fn reason_off(entry: &ProbeEntry, selection: &ProbeOptions) -> Option<String> {
    let listed = |list: &[String]| list.iter().any(|name| entry.matches(name));
    if listed(&selection.without) || !(selection.only.is_empty() || listed(&selection.only)) {
        return Some("not selected on the command line".to_owned());
    }
    let by_name = |list: &[String]| list.iter().any(|name| entry.name == name);
    (entry.on_request && !by_name(&selection.with) && !by_name(&selection.only)).then(|| {
        format!(
            "not in the standard set; --with {} (recorder.more_probes of a campaign) adds it: {}",
            entry.name, entry.help
        )
    })
}
