//! Reads switches, time on CPU and run delay per thread of the watched processes
//! (`/proc/PID/task/TID/{schedstat,status}`).
//!
//! Two descriptors per thread and one per process stay open. `status` is expensive to read: if
//! `schedstat` shows that a thread has not run since the previous sample, its previous status is
//! used. A thread that starts and exits between two samples has no row; the last values of a thread
//! are those of its last sample.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs;

use super::entities::Entities;
use super::targets::Targets;
use loadprint_recording::rows::Odd;

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "threads",
    "switches, time on CPU and run delay per thread of the watched processes",
    &SCHEMA,
    open,
)
.read_at(Cadence::Nth);

static ENTITY: &[Text] = &[text("role"), text("pid"), text("tid")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const STATUS: &str = "/proc/PID/task/TID/status";

static COLUMNS: &[Column] = columns! {
    info "comm", "the thread's name", STATUS;
    counter(One) "voluntary_ctxt_switches", "switches because it blocked", STATUS;
    counter(One) "nonvoluntary_ctxt_switches", "switches because it was preempted", STATUS, lower;
    counter(Nanosecond) "on_cpu_ns", "time on a CPU", "/proc/PID/task/TID/schedstat field 1";
    counter(Nanosecond) "run_delay_ns",
        "time runnable and waiting for a CPU", "/proc/PID/task/TID/schedstat field 2", lower;
    counter(One) "timeslices", "times that it was put on a CPU", "/proc/PID/task/TID/schedstat field 3";
};

#[derive(Debug)]
struct Threads {
    host: Host,
    targets: Targets,
    open: Entities<(String, u32), Process>,
}

#[derive(Debug)]
struct Process {
    pid: String,
    /// The open directory of its threads.
    task: Option<OwnedFd>,
    threads: Entities<u32, Thread>,
}

#[derive(Debug)]
struct Thread {
    status: Source,
    schedstat: Option<Source>,
    tid: String,
    /// The values of `schedstat` when `status` was read.
    schedstat_then: [Option<u64>; 3],
    status_then: Option<Status>,
    /// The number of samples that have reused `status_then`.
    reuses: u32,
}

/// Name and switches of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name that the process gave it.
    pub name: Vec<u8>,
    /// Switches because it blocked.
    pub voluntary: Option<u64>,
    /// Switches because it was preempted.
    pub nonvoluntary: Option<u64>,
}

/// Samples between two reads of the status of a thread that does not run: another thread can change
/// its name.
const STATUS_EVERY: u32 = 10;

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    if options.processes.is_empty() {
        return Err(NotRunning::Off(
            "no process is watched; name one with --process ROLE=PID".to_owned(),
        ));
    }
    let targets = Targets::new(host, options.processes.clone());
    let mut threads = Threads {
        host: host.clone(),
        targets,
        open: Entities::default(),
    };
    Ok(Background::spawn("threads", move |rows| threads.sample(rows)))
}

impl Threads {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let Self { host, targets, open } = self;
        for process in targets.find() {
            let new = |(_, pid): &(String, u32)| {
                Ok(Process {
                    pid: pid.to_string(),
                    task: None,
                    threads: Entities::default(),
                })
            };
            open.find(process, new)?;
        }
        open.sample(rows, COLUMNS.len(), |(role, _), process, rows| {
            process.list(host)?;
            let Process { pid, threads, .. } = process;
            threads.sample(rows, COLUMNS.len(), |_, thread, rows| {
                thread.sample([role.as_bytes(), pid.as_bytes()], rows)
            })
        })
    }
}

impl Process {
    /// Finds its threads.
    fn list(&mut self, host: &Host) -> Result<(), ProbeError> {
        // The open directory belongs to the process that had the ID when it was opened.
        if let Some(task) = self.task.take()
            && fs::seek(&task, fs::SeekFrom::Start(0)).is_ok()
            && self.read_threads(host, task)?
        {
            return Ok(());
        }
        let path = host.proc(&format!("{}/task", self.pid));
        let flags = fs::OFlags::RDONLY | fs::OFlags::DIRECTORY | fs::OFlags::CLOEXEC;
        // A process that does not exist has no rows.
        if let Ok(task) = fs::open(path, flags, fs::Mode::empty()) {
            self.read_threads(host, task)?;
        }
        Ok(())
    }

    /// Reads the directory of threads; false if it is empty: the process has then exited.
    fn read_threads(&mut self, host: &Host, task: OwnedFd) -> Result<bool, ProbeError> {
        let mut any = false;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = fs::RawDir::new(&task, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_str().ok();
            if let Some(tid) = name.and_then(|name| name.parse().ok()) {
                any = true;
                self.threads
                    .find(tid, |tid| Thread::open(host, &self.pid, *tid))?;
            }
        }
        self.task = any.then_some(task);
        Ok(any)
    }
}

impl Thread {
    fn open(host: &Host, pid: &str, tid: u32) -> Result<Self, ProbeError> {
        // Servers have hundreds of threads: the buffers have the usual sizes of these files.
        let file = |name: &str, buffer| Source::sized(host.proc(&format!("{pid}/task/{tid}/{name}")), buffer);
        // A kernel without CONFIG_SCHED_INFO has no schedstat; its columns are then null.
        let schedstat = file("schedstat", 128).ok().map(Source::in_one_read);
        Ok(Self {
            status: file("status", 2048)?.in_one_read(),
            schedstat,
            tid: tid.to_string(),
            schedstat_then: [None; 3],
            status_then: None,
            reuses: 0,
        })
    }

    fn sample(&mut self, [role, pid]: [&[u8]; 2], rows: &mut Rows) -> Result<(), ProbeError> {
        // Read first: if it is the same at the next sample, the thread has neither run nor switched
        // since.
        let schedstat_now = match &mut self.schedstat {
            Some(schedstat) => parse_schedstat(schedstat.read()?, rows.odd_mut()),
            None => [None; 3],
        };
        // A kernel that does not count this prints zeros for all threads.
        let idle = schedstat_now == self.schedstat_then
            && schedstat_now[2].is_some_and(|slices| slices > 0)
            && self.reuses < STATUS_EVERY;
        let status = match &mut self.status_then {
            Some(status) if idle => {
                self.reuses += 1;
                status
            }
            status => {
                let mut odd = Odd::default();
                let read = self.status.parse(|text| parse_status(text, &mut odd))?;
                // One that could not be read completely is read again at the next sample.
                self.reuses = if odd.is_empty() { 0 } else { STATUS_EVERY };
                self.schedstat_then = schedstat_now;
                rows.odd_mut().add(&odd);
                status.insert(read)
            }
        };
        rows.row(&[role, pid, self.tid.as_bytes()]);
        rows.text(&status.name);
        rows.uint_or_null(status.voluntary);
        rows.uint_or_null(status.nonvoluntary);
        schedstat_now
            .into_iter()
            .for_each(|value| rows.uint_or_null(value));
        Ok(())
    }
}

/// Parses name and switches in `/proc/PID/task/TID/status` (proc_pid_status(5)).
///
/// ```text
/// Name:   ib_io_rd-1
/// voluntary_ctxt_switches:        150
/// nonvoluntary_ctxt_switches:     545
/// ```
///
/// # Errors
/// When the name is missing.
pub fn parse_status(file: &[u8], odd: &mut Odd) -> Result<Status, ParseError> {
    let (mut name, mut voluntary, mut nonvoluntary) = (None, None, None);
    odd.add(&each_line(file, |cursor| {
        // Only three of about sixty lines are used.
        let may_be = matches!(cursor.rest().first(), Some(b'N' | b'v' | b'n'));
        match may_be.then(|| cursor.until(b':')).flatten() {
            Some(b"Name") => name = Some(cursor.remainder().to_vec()),
            Some(b"voluntary_ctxt_switches") => voluntary = cursor.uint("voluntary_ctxt_switches"),
            Some(b"nonvoluntary_ctxt_switches") => nonvoluntary = cursor.uint("nonvoluntary_ctxt_switches"),
            _ => {}
        }
    }));
    let name = name.ok_or_else(|| empty("Name"))?;
    Ok(Status {
        name,
        voluntary,
        nonvoluntary,
    })
}

/// Parses `schedstat` (Documentation/scheduler/sched-stats.rst): ns on CPU, ns waiting to run,
/// timeslices.
///
/// ```text
/// 47551 1200 1
/// ```
///
#[must_use]
pub fn parse_schedstat(file: &[u8], odd: &mut Odd) -> [Option<u64>; 3] {
    let mut cursor = Cursor::new(file);
    let (values, _) = cursor.uints("schedstat field");
    odd.add(&cursor.into_odd());
    values
}
