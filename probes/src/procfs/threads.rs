//! `/proc/PID/task/TID/{schedstat,status}` of the watched processes: switches, time on CPU and time waiting for one, per thread.
//!
//! Two descriptors per thread stay open. Threads that begin and end between two samples are not seen; the last values of
//! a thread that ends are those of its last sample.

use std::collections::BTreeMap;
use std::fs;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use rustix::thread::CapabilitySet;

use super::fields::Cursor;
use super::process::is_gone;
use super::targets::Targets;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::host::ParseError;
use crate::host::Source;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "threads",
    "switches, time on CPU and run delay per thread of the watched processes",
    &SCHEMA,
    open,
)
.every_nth()
.keeps(CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH));

static ENTITY: &[Text] = &[text("role"), text("pid"), text("tid")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const STATUS: &str = "/proc/PID/task/TID/status";

static COLUMNS: &[Column] = &[
    Column::info("comm", "the thread's name", STATUS),
    Column::counter(
        "voluntary_ctxt_switches",
        Unit::One,
        "it waited for something",
        STATUS,
    ),
    Column::counter(
        "nonvoluntary_ctxt_switches",
        Unit::One,
        "another task took its CPU",
        STATUS,
    )
    .lower(),
    Column::counter(
        "on_cpu_ns",
        Unit::Nanosecond,
        "on a CPU",
        "/proc/PID/task/TID/schedstat field 1",
    ),
    Column::counter(
        "run_delay_ns",
        Unit::Nanosecond,
        "ready and waiting for a CPU",
        "/proc/PID/task/TID/schedstat field 2",
    )
    .lower(),
    Column::counter(
        "timeslices",
        Unit::One,
        "times it was put on a CPU",
        "/proc/PID/task/TID/schedstat field 3",
    ),
];

#[derive(Debug)]
struct Threads {
    host: Host,
    targets: Targets,
    open: BTreeMap<(String, u32, u32), Thread>,
}

#[derive(Debug)]
struct Thread {
    status: Source,
    schedstat: Option<Source>,
    /// False until it is seen in this sample's list of threads.
    seen: bool,
    pid: String,
    tid: String,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    if options.processes.is_empty() {
        return Err(NotRunning::Off(
            "no process is watched; name one with --process ROLE=PID".to_owned(),
        ));
    }
    let targets = Targets::new(host, options.processes.clone());
    Ok(Box::new(Threads {
        host: host.clone(),
        targets,
        open: BTreeMap::new(),
    }))
}

impl Probe for Threads {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.open.values_mut().for_each(|thread| thread.seen = false);
        for (role, pid) in self.targets.find() {
            self.list(&role, pid)?;
        }
        let mut failed = None;
        self.open.retain(|(role, ..), thread| {
            if !thread.seen {
                return false;
            }
            let before = rows.len();
            let Err(error) = thread.sample(role, rows) else {
                return true;
            };
            rows.truncate(before, COLUMNS.len());
            if !is_gone(&error) {
                failed = Some(error);
            }
            false
        });
        failed.map_or(Ok(()), Err)
    }
}

impl Threads {
    /// Opens the threads that are new, and marks those that are still there.
    fn list(&mut self, role: &str, pid: u32) -> Result<(), ProbeError> {
        // A process that is not there has no rows, as everywhere.
        let Ok(entries) = fs::read_dir(self.host.proc(&format!("{pid}/task"))) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let Some(tid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let key = (role.to_owned(), pid, tid);
            if let Some(thread) = self.open.get_mut(&key) {
                thread.seen = true;
                continue;
            }
            match Thread::open(&self.host, pid, tid) {
                Ok(thread) => {
                    self.open.insert(key, thread);
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Thread {
    fn open(host: &Host, pid: u32, tid: u32) -> Result<Self, ProbeError> {
        // Servers have hundreds of threads: the buffers start at what these files usually need.
        let file = |name: &str, buffer| Source::sized(host.proc(&format!("{pid}/task/{tid}/{name}")), buffer);
        // Without CONFIG_SCHED_INFO there is no schedstat; its columns are then null.
        let schedstat = file("schedstat", 128).ok().map(Source::in_one_read);
        Ok(Self {
            status: file("status", 2048)?.in_one_read(),
            schedstat,
            seen: true,
            pid: pid.to_string(),
            tid: tid.to_string(),
        })
    }

    fn sample(&mut self, role: &str, rows: &mut Rows) -> Result<(), ProbeError> {
        let entity = [role.as_bytes(), self.pid.as_bytes(), self.tid.as_bytes()];
        self.status.parse(|text| parse_status(text, entity, rows))?;
        match &mut self.schedstat {
            Some(schedstat) => schedstat.parse(|text| parse_schedstat(text, rows)),
            None => {
                rows.nulls(3);
                Ok(())
            }
        }
    }
}

/// Parses name and switches out of `/proc/PID/task/TID/status` (proc_pid_status(5)).
///
/// ```text
/// Name:   ib_io_rd-1
/// voluntary_ctxt_switches:        150
/// nonvoluntary_ctxt_switches:     545
/// ```
///
/// # Errors
/// When there is no name, or a count is not a number.
pub fn parse_status(file: &[u8], entity: [&[u8]; 3], rows: &mut Rows) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(file);
    let (mut name, mut voluntary, mut nonvoluntary) = (None, None, None);
    while !cursor.at_end() {
        match cursor.until(b':') {
            Some(b"Name") => name = Some(cursor.remainder()),
            Some(b"voluntary_ctxt_switches") => {
                voluntary = Some(cursor.need_uint("voluntary_ctxt_switches")?)
            }
            Some(b"nonvoluntary_ctxt_switches") => {
                nonvoluntary = Some(cursor.need_uint("nonvoluntary_ctxt_switches")?);
            }
            _ => {}
        }
        cursor.next_line();
    }
    let name = name.ok_or_else(|| cursor.error("Name", "the file has no such line"))?;
    rows.row(&entity);
    rows.text(name);
    rows.uint_or_null(voluntary);
    rows.uint_or_null(nonvoluntary);
    Ok(())
}

/// Parses `schedstat` (Documentation/scheduler/sched-stats.rst): ns on CPU, ns waiting to run, timeslices.
///
/// ```text
/// 47551 1200 1
/// ```
///
/// # Errors
/// When a field is missing or not a number.
pub fn parse_schedstat(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let mut cursor = Cursor::new(file);
    for item in ["on_cpu_ns", "run_delay_ns", "timeslices"] {
        rows.uint(cursor.need_uint(item)?);
    }
    Ok(())
}
