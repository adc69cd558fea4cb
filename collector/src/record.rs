//! `loadprint-collect record`: from the command line to a finished run directory.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use loadprint_recording::FORMAT_VERSION;
use loadprint_recording::clock;
use loadprint_recording::files::Directory;
use loadprint_recording::files::RunFile;
use loadprint_recording::finish;
use loadprint_recording::finish::Finished;
use loadprint_recording::finish::JOURNAL;
use loadprint_recording::journal::End;
use loadprint_recording::journal::Ended;
use loadprint_recording::journal::Header;
use loadprint_recording::journal::Writer;
use loadprint_recording::json::write_atomic;
use loadprint_recording::manifest;
use loadprint_recording::staging::Place;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

use crate::capabilities;
use crate::cli::RecordOptions;
use crate::fingerprint;
use crate::http::Desk;
use crate::http::Listening;
use crate::journal_dir;
use crate::sadc::Witness;
use crate::schedule::Schedule;
use crate::schedule::Stop;
use crate::schedule::Woken;
use crate::standalone_run;
use crate::tick_journal::Extent;
use crate::tick_journal::Opened;
use crate::tick_journal::Session;
use crate::tick_journal::open_probes;
use crate::tick_journal::refuse_unknown;

/// Program and version, as they stand in every table.
pub const WRITER: &str = concat!("loadprint-collect ", env!("CARGO_PKG_VERSION"));

/// Records until it is told to stop, then writes the tables.
///
/// # Errors
/// When the run directory cannot be used, has this role's recording already, or fills up.
pub fn run(options: &RecordOptions) -> anyhow::Result<()> {
    // Signals are taken before anything is there that would be left behind.
    let stop = Stop::on_signals().context("cannot take over SIGTERM and SIGINT")?;
    raise_descriptor_limit();
    let role_dir = options.out.join(&options.role);
    refuse_second(&role_dir)?;
    let mut probe_options = options
        .probes
        .options(options.interval, options.data_dir.as_deref())?;
    let host = options.probes.host();
    refuse_unknown(&options.probes)?;
    let listening = options.web.listen()?;
    let made = Directory::create(&options.out).and_then(|run| Ok((run.make(&options.role)?, run)));
    let (role, run) =
        made.with_context(|| format!("{}: cannot make the run directory", role_dir.display()))?;
    let dir = journal_dir::journal_dir(
        &host,
        &role_dir,
        options.journal_dir.as_deref(),
        options.data_dir.as_deref(),
    );
    let place = Place::new(&role, &dir).context("cannot make the journal directory")?;
    let witness = Witness::beside(options, &role, &place);
    probe_options.processes.extend(witness.target());
    let probes = open_probes(&options.probes, &host, &probe_options)?;
    let mut facts = fingerprint::read(
        &host,
        &options.probes.root,
        &probe_options.cpusets,
        options.data_dir.as_deref(),
        Some(&dir),
    );
    facts["recorder"] = fingerprint::recorder(&host);
    if let Some(sysstat) = witness.facts() {
        facts["sysstat"] = sysstat;
    }
    write_atomic(&role.file("fingerprint.json"), &facts)?;
    let interval_ns = i64::try_from(options.interval.as_nanos())?;
    let header = header(options, interval_ns, &probes)?;
    let journal = Writer::create(&place.file(JOURNAL)?, &header)?;
    give_up_capabilities(options, &probes, &role_dir, &dir, &place);
    let served = listening.map(Listening::start).transpose()?;
    let desk = served.as_ref().map(|(_, desk)| desk);
    let mut session = Session::new(probes, journal, probe_options.threads_every, options.interval);
    let pid_file = PidFile {
        path: options.pid_file.clone(),
    };
    let ended =
        take_ticks(options, interval_ns, &stop, &mut session, &pid_file, desk).with_context(|| {
            format!(
                "{} ticks are kept; make room, then: loadprint-collect finish {}",
                session.ticks(),
                options.out.display()
            )
        })?;
    drop(served);
    witness.end();
    let (journal, last_tick, missed) = session.end();
    // Without an end frame the journal counts as torn and has all its ticks; there may be room for the tables still.
    if let Err(error) = journal.end(&End {
        ended,
        last_tick,
        missed,
    }) {
        eprintln!("loadprint-collect: {error}");
    }
    let finished = finish::journal(&role).with_context(|| {
        format!(
            "the journal is kept; mend this, then: loadprint-collect finish {}",
            options.out.display()
        )
    })?;
    standalone_run::write_run_json(&run, &finished)?;
    manifest::write(&run)?;
    drop(pid_file);
    eprintln!("{}", summary(&finished));
    Ok(())
}

/// Keeps what writing into the directories of the recording needs.
fn give_up_capabilities(
    options: &RecordOptions,
    probes: &[Opened],
    role_dir: &Path,
    dir: &Path,
    place: &Place,
) {
    let pid_dir = options.pid_file.as_deref().and_then(Path::parent);
    let dirs: Vec<_> = [&*options.out, role_dir, dir]
        .into_iter()
        .chain(place.private())
        .chain(pid_dir)
        .collect();
    if let Err(error) = capabilities::narrow(probes, &dirs) {
        eprintln!("loadprint-collect: {error:#}");
    }
}

/// What the journal says of itself and of its probes.
fn header(options: &RecordOptions, interval_ns: i64, probes: &[Opened]) -> anyhow::Result<Header> {
    Ok(Header {
        format_version: FORMAT_VERSION,
        role: options.role.clone(),
        interval_ns,
        boot_id: clock::boot_id_under(&options.probes.proc_root).or_else(|_| clock::boot_id())?,
        writer: WRITER.to_owned(),
        started_monotonic_ns: clock::monotonic_ns(),
        started_realtime_ns: clock::realtime_ns(),
        probes: probes.iter().map(|opened| opened.header()).collect(),
    })
}

/// Takes ticks until a signal, the duration or the deadline; the last one lies at the very end.
fn take_ticks(
    options: &RecordOptions,
    interval_ns: i64,
    stop: &Stop,
    session: &mut Session,
    pid_file: &PidFile,
    desk: Option<&Desk>,
) -> anyhow::Result<Ended> {
    let start = clock::monotonic_ns();
    let limit =
        |left: std::time::Duration| start.saturating_add(i64::try_from(left.as_nanos()).unwrap_or(i64::MAX));
    let limits = [
        options
            .duration
            .map(|duration| (limit(duration), Ended::Duration)),
        options
            .deadline
            .map(|deadline| (limit(deadline.left()), Ended::Deadline)),
    ];
    let end = limits.into_iter().flatten().min_by_key(|(time, _)| *time);
    let mut schedule = Schedule::new(start, interval_ns);
    let mut wished = false;
    loop {
        // There is nothing to be asked for before the first tick.
        let desk = desk.filter(|_| session.ticks() > 0);
        // Nothing is due after the end, and so nothing is missed there, however late that is seen.
        let now = clock::monotonic_ns();
        let due = schedule.next(end.map_or(now, |(time, _)| time.min(now)));
        let until = end.map_or(due.intended_ns, |(time, _)| time.min(due.intended_ns));
        loop {
            match stop.wait(Some(until), desk.map(Desk::bell))? {
                Woken::Due => break,
                Woken::Wished => wished = true,
                Woken::Stopped => {
                    session.tick(Schedule::last(due, clock::monotonic_ns()), Extent::Last)?;
                    return Ok(Ended::Signal);
                }
                Woken::Asked => {
                    if let Some(desk) = desk {
                        desk.answer(|| session.publish());
                    }
                }
            }
        }
        if let Some((time, ended)) = end
            && time <= due.intended_ns
        {
            session.tick(Schedule::last(due, time), Extent::Last)?;
            return Ok(ended);
        }
        let extent = if wished { Extent::All } else { Extent::Due };
        wished = false;
        session.tick(due, extent)?;
        if session.ticks() == 1 {
            pid_file.write()?;
        }
    }
}

/// One line on what a recording holds.
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
        Ended::Duration => "whole duration".to_owned(),
        Ended::Deadline => "stopped by its deadline".to_owned(),
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

fn refuse_second(role_dir: &Path) -> anyhow::Result<()> {
    if is_recorded(role_dir) {
        anyhow::bail!(
            "{}: holds a recording already; name another --out or --role",
            role_dir.display()
        );
    }
    Ok(())
}

/// Every thread that is watched takes two descriptors.
pub fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        eprintln!("loadprint-collect: cannot raise the limit on open files, threads may be missed: {error}");
    }
}

/// Removed when the recording ends, however it ends.
struct PidFile {
    path: Option<PathBuf>,
}

impl PidFile {
    /// The file is whole when it appears: whoever waits for it reads it at once.
    fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = RunFile::at(path).context("cannot write the pid file")?;
        file.write(format!("{}\n", std::process::id()).as_bytes())
            .context("cannot write the pid file")
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // It is not there if the first sample never came.
            drop(fs::remove_file(path));
        }
    }
}
