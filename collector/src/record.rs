//! `loadprint-collect record`: from the command line to a finished run directory.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::ptr;
use std::rc::Rc;

use anyhow::Context;
use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::RecordedFile;
use loadprint_probes::ebpf::Shared;
use loadprint_probes::lookup::Lookup;
use loadprint_probes::options::CpuSet;
use loadprint_probes::options::Find;
use loadprint_probes::options::ProcessTarget;
use loadprint_probes::procfs::targets::Targets;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files;
use loadprint_recording::finish;
use loadprint_recording::finish::Finished;
use loadprint_recording::finish::JOURNAL;
use loadprint_recording::journal::Ended;
use loadprint_recording::journal::Header;
use loadprint_recording::journal::Writer;
use loadprint_recording::manifest;
use loadprint_recording::staging;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;
use serde_json::Value;
use serde_json::json;

use crate::WRITER;
use crate::cli::RecordOptions;
use crate::fingerprint;
use crate::fingerprint::storage;
use crate::live::Live;
use crate::opened_probe::OpenedProbe;
use crate::opened_probe::open_probes;
use crate::opened_probe::refuse_unknown_names;
use crate::recorder::PidFile;
use crate::recorder::Recorder;
use crate::recorder::run_on_request;
use crate::wakeup::Signals;

/// A file system in memory on every Linux (shm_overview(7)).
const SHM: &str = "/dev/shm";

/// A recording while it is made.
struct Recording<'a> {
    options: &'a RecordOptions,
    role_dir: PathBuf,
    recorder: Recorder,
}

/// Makes recordings, one for each of `all`, until a signal or the end of the duration of the first one,
/// then writes the tables. Several have the same eBPF programs, which watch the processes of all.
///
/// # Errors
/// When a run directory cannot be used, already contains a recording of this role, or fills up.
pub fn run(all: &[RecordOptions]) -> anyhow::Result<()> {
    // Before anything exists that a signal would leave behind.
    let signals = Signals::install(all.len()).context("cannot install the handlers of signals")?;
    raise_descriptor_limit();
    let first = all.first().context("no recording")?;
    let shared = Rc::<Shared>::default();
    let opened = all.iter().map(|options| Recording::open(options, all, &shared));
    let mut recordings = opened.collect::<anyhow::Result<Vec<_>>>()?;
    let mut recorders: Vec<_> = recordings.iter_mut().map(|each| &mut each.recorder).collect();
    let pid_file = PidFile(first.pid_file.clone());
    let ended = match recorders.as_mut_slice() {
        [recorder] if !first.on_request => recorder.run(first, &signals, &pid_file),
        several => run_on_request(several, &shared, first, &signals, &pid_file),
    };
    let ended = ended.with_context(|| {
        let kept = recordings.iter().map(|Recording { options, recorder, .. }| {
            let (ticks, run) = (recorder.ticks(), options.out.display());
            format!("{ticks} ticks are in the journal; free some disk space, then run: loadprint-collect finish {run}")
        });
        kept.collect::<Vec<_>>().join("; ")
    })?;
    // Also those after one that cannot be completed.
    let finished: Vec<_> = recordings.into_iter().map(|each| each.finish(ended)).collect();
    drop(pid_file);
    finished.into_iter().collect()
}

impl<'a> Recording<'a> {
    fn open(
        options: &'a RecordOptions,
        all: &'a [RecordOptions],
        shared: &Rc<Shared>,
    ) -> anyhow::Result<Self> {
        let role_dir = options.out.join(&options.role);
        refuse_second_recording(&role_dir)?;
        let mut probe_options = options.probes.options(options.interval)?;
        let others = all.iter().filter(|other| !ptr::eq(*other, options));
        probe_options.others = others.flat_map(|other| other.probes.processes.clone()).collect();
        let host = options.probes.roots.host();
        refuse_unknown_names(options.probes.names().chain(&options.live_probes))?;
        let live = options
            .live
            .as_deref()
            .map(|path| Live::new(path, &options.live_probes));
        let live = live.transpose()?;
        files::create_directory(&role_dir)
            .with_context(|| format!("{}: cannot create the run directory", role_dir.display()))?;
        let dir = journal_dir(
            &host,
            &role_dir,
            options.journal_dir.as_deref(),
            options.data_dir.as_deref(),
        );
        warn_of_absent_processes(&host, &probe_options.processes);
        let probes = open_probes(&options.probes, &host, &probe_options, shared)?;
        warn_of_absent_probes(&probes);
        warn_of_absent_cpus(&host, &probe_options.cpusets);
        let journal =
            staging::create(&role_dir, &dir, JOURNAL).context("cannot create the journal directory")?;
        let facts = facts(options, &host, &probe_options, &dir);
        files::write_json(&role_dir.join("fingerprint.json"), &facts)?;
        let header = header(options, &probes)?;
        let journal = Writer::create(&journal, &header)?;
        let recorder = Recorder::new(
            probes,
            journal,
            probe_options.threads_every,
            options.interval,
            live,
        );
        Ok(Self {
            options,
            role_dir,
            recorder,
        })
    }

    fn finish(mut self, ended: Ended) -> anyhow::Result<()> {
        let run = &self.options.out;
        warn_of_unseen_processes(&self.recorder, &self.options.probes.processes);
        let files = self.recorder.recorded_files();
        let unread = self.recorder.unread();
        // Without an end frame the journal counts as torn but has all ticks; the tables may still fit.
        if let Err(error) = self.recorder.end(ended) {
            eprintln!("loadprint-collect: warning: {error}");
        }
        let finished = finish::journal(&self.role_dir).with_context(|| {
            format!(
                "the journal is kept; fix the cause, then run: loadprint-collect finish {}",
                run.display()
            )
        })?;
        for RecordedFile { name, content } in files {
            files::write(&self.role_dir.join(name), &content)?;
        }
        write_run_json(run, &finished)?;
        manifest::write(run)?;
        eprintln!("{}", summary(&finished));
        if let Some(unread) = unread {
            eprintln!("loadprint-collect: could not be read: {unread}");
        }
        Ok(())
    }
}

/// Raises the soft limit on open files to the hard limit: each watched thread needs two descriptors.
fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        eprintln!(
            "loadprint-collect: warning: cannot raise the limit on open files, some threads may be missing: {error}"
        );
    }
}

/// `option` if given; `/dev/shm` if the role's directory shares a disk with `data_dir`; else the
/// role's directory.
fn journal_dir(host: &Host, role_dir: &Path, option: Option<&Path>, data_dir: Option<&Path>) -> PathBuf {
    if let Some(dir) = option {
        return dir.to_owned();
    }
    let is_shared = data_dir.is_some_and(|data| storage::share_a_disk(host, role_dir, data));
    if is_shared && Path::new(SHM).is_dir() {
        PathBuf::from(SHM)
    } else {
        role_dir.to_owned()
    }
}

/// The content of fingerprint.json.
fn facts(options: &RecordOptions, host: &Host, probe_options: &Options, journal_dir: &Path) -> Value {
    let mut facts = fingerprint::read(
        host,
        &options.probes.roots.root,
        &probe_options.cpusets,
        options.data_dir.as_deref(),
        Some(journal_dir),
    );
    facts["recorder"] = fingerprint::recorder(host);
    facts
}

/// Warns of probes that were selected by name and do not run.
fn warn_of_absent_probes(probes: &[OpenedProbe]) {
    for probe in probes.iter().filter(|probe| probe.is_named) {
        if let (_, Some(reason)) = probe.status() {
            let name = probe.entry.name;
            eprintln!("loadprint-collect: warning: probe {name} is not recorded: {reason}");
        }
    }
}

/// Warns of the first CPU of each set that is not online.
fn warn_of_absent_cpus(host: &Host, cpusets: &[(String, CpuSet)]) {
    let online = fs::read_to_string(host.sys("devices/system/cpu/online"));
    let Ok(online) = online.unwrap_or_default().trim().parse::<CpuSet>() else {
        return;
    };
    for (role, set) in cpusets {
        if let Some(cpu) = set.without(&online).cpus().next() {
            eprintln!("loadprint-collect: warning: --cpuset {role}: CPU {cpu} is not online");
        }
    }
}

/// Warns of a process that does not exist: a process found by name may start later, a misspelt one
/// never does.
fn warn_of_absent_processes(host: &Host, targets: &[ProcessTarget]) {
    let of_lookup = host.clone();
    let mut lookup = Lookup::new(move |target: ProcessTarget| match target.find {
        Find::Pid(pid) => of_lookup.proc(&pid.to_string()).exists(),
        _ => !Targets::new(&of_lookup, vec![target]).find().is_empty(),
    });
    for target in targets {
        let text = match &target.find {
            Find::Pid(pid) => pid.to_string(),
            Find::Name(name, _) => name.clone(),
            Find::PidFile(_) | Find::Cgroup(_) => continue,
        };
        // A process blocks the lookup: whether others exist is unknown.
        let Some(exists) = lookup.ask(target.clone()) else {
            return;
        };
        let hint = match &target.find {
            Find::Name(_, None) => "; one of another user than root, you or a system account needs NAME@USER",
            _ => "",
        };
        if !exists {
            let role = &target.role;
            eprintln!(
                "loadprint-collect: warning: --process {role}={text}: no such process at the start{hint}"
            );
        }
    }
}

/// Warns of processes that may start after the recorder, but did not.
fn warn_of_unseen_processes(recorder: &Recorder, targets: &[ProcessTarget]) {
    for ProcessTarget { role, find, .. } in targets {
        if let Find::PidFile(path) | Find::Cgroup(path) = find
            && !recorder.has_role(role)
        {
            let path = path.display();
            eprintln!("loadprint-collect: warning: --process {role}={path}: no process in the recording");
        }
    }
}

fn header(options: &RecordOptions, probes: &[OpenedProbe]) -> anyhow::Result<Header> {
    Ok(Header {
        format_version: FORMAT_VERSION,
        role: options.role.clone(),
        interval_ns: i64::try_from(options.interval.as_nanos())?,
        boot_id: clock::boot_id_under(&options.probes.roots.proc_root).or_else(|_| clock::boot_id())?,
        writer: WRITER.to_owned(),
        started_monotonic_ns: clock::monotonic_ns(),
        started_realtime_ns: clock::realtime_ns(),
        probes: probes.iter().map(OpenedProbe::header).collect(),
    })
}

/// Summarizes a finished recording in one line.
pub fn summary(finished: &Finished) -> String {
    let Finished {
        role,
        ticks,
        missed,
        torn_bytes,
        ended,
        tables,
        ..
    } = finished;
    let rows: u64 = tables.iter().map(|(_, rows)| rows).sum();
    let ended = match ended {
        Ended::Torn => format!("torn, {torn_bytes} bytes dropped"),
        Ended::Signal => "stopped by a signal".to_owned(),
        Ended::Duration => "full duration".to_owned(),
    };
    format!(
        "{role}: {ticks} ticks, {missed} missed, {rows} rows in {} tables, {ended}",
        tables.len()
    )
}

/// True if a role of `run` has a journal or tables.
pub fn has_recording(run: &Path) -> bool {
    let Ok(entries) = fs::read_dir(run) else {
        return false;
    };
    entries.flatten().any(|entry| is_recorded(&entry.path()))
}

fn is_recorded(role_dir: &Path) -> bool {
    role_dir.join(JOURNAL).symlink_metadata().is_ok() || role_dir.join("ticks.parquet").exists()
}

fn refuse_second_recording(role_dir: &Path) -> anyhow::Result<()> {
    if is_recorded(role_dir) {
        anyhow::bail!(
            "{}: already contains a recording; choose another --out or --role",
            role_dir.display()
        );
    }
    Ok(())
}

/// Writes `run.json` unless it exists; true if it was written. A torn journal makes the run a
/// failed one without an end time.
///
/// # Errors
/// When `fingerprint.json` cannot be read or `run.json` cannot be written.
pub fn write_run_json(run: &Path, finished: &Finished) -> anyhow::Result<bool> {
    let file = run.join("run.json");
    if file.exists() {
        return Ok(false);
    }
    let path = run.join(&finished.role).join("fingerprint.json");
    let context = || format!("{}: cannot be read", path.display());
    let text = fs::read(&path).with_context(context)?;
    let fingerprint: Value = serde_json::from_slice(&text).with_context(context)?;
    let full_path = run.canonicalize().unwrap_or_else(|_| run.to_owned());
    let is_torn = matches!(finished.ended, Ended::Torn);
    let document = json!({
        "format_version": FORMAT_VERSION,
        "id": full_path.file_name().map(|name| name.to_string_lossy()),
        "roles": {&finished.role: {
            "host": fingerprint["host"],
            "cpus": fingerprint["cpusets"][&finished.role],
        }},
        "versions": {"loadprint-collect": env!("CARGO_PKG_VERSION")},
        "status": if is_torn { "failed" } else { "complete" },
        "reason": is_torn.then_some("the recorder was killed: the recording is torn"),
        "started_realtime_ns": finished.started_realtime_ns,
        "ended_realtime_ns": (!is_torn).then(clock::realtime_ns),
    });
    files::write_json(&file, &document)?;
    Ok(true)
}
