//! System calls of the watched processes, by role and call: counts, time, errors; and histograms of those that a database waits for.
//!
//! A call counts when it returns, with all the time that it blocked: one that was under way when the probe was attached does not,
//! nor one that never returns (exit, exit_group). A call that a signal interrupts and the kernel begins again (ERESTARTSYS and
//! its like, 512 to 516) is two calls, of which the first failed. 32-bit calls have numbers of their own: they are `compat`.
//!
//! On request only: a tracepoint on system calls sends every call of every process through the kernel's slow path, about a third
//! of a microsecond each, whoever is watched (docs/benchmarks.md).

use std::io;
use std::rc::Rc;
use std::rc::Weak;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use syscalls::Sysno;

use super::Histograms;
use super::Words;
use super::histogram_cells;
use super::loaded;
use super::object;
use super::programs::size_calls;
use super::roles::unmapped;
use super::skeletons::syscalls::SyscallsSkel;
use super::skeletons::syscalls::SyscallsSkelBuilder;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;

/// The line of the counts in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ebpf_syscalls",
    "system calls of the watched processes: how many, how long, how many failed",
    &COUNTS,
    open_counts,
)
.live()
.on_request();

/// The line of the histograms in the registry.
pub const LATENCY: ProbeEntry = ProbeEntry::new(
    "ebpf_syscall_latency",
    "how long the watched processes' file system calls took: fsync, fdatasync, pread64, pwrite64",
    &TIMES,
    open_latency,
)
.live()
.on_request();

static ENTITY: &[Text] = &[text("role"), text("syscall")];
static COUNTS: Schema = Schema::table(ENTITY, COUNT_COLUMNS);
static COUNT_COLUMNS: &[Column] = &[
    Column::counter("count", Unit::One, "calls that returned", "raw_syscalls:sys_exit"),
    Column::counter(
        "time_ns",
        Unit::Nanosecond,
        "time in them, waiting included",
        "raw_syscalls:sys_enter to sys_exit",
    )
    .lower(),
    Column::counter(
        "errors",
        Unit::One,
        "calls that returned an error, interrupted ones included",
        "raw_syscalls:sys_exit, ret from -4095 to -1",
    )
    .lower(),
];
static TIMES: Schema = Schema::histogram(ENTITY, TIME_COLUMNS);
static TIME_COLUMNS: &[Column] = &[
    Column::counter(
        "sum_ns",
        Unit::Nanosecond,
        "time in all of them",
        "raw_syscalls:sys_enter to sys_exit",
    )
    .lower(),
    Column::buckets(
        "buckets",
        Unit::Nanosecond,
        "calls by the time they took",
        "raw_syscalls:sys_enter to sys_exit",
    )
    .lower(),
];

/// As in `syscalls.bpf.c`.
const CALLS: usize = 512;
const COMPAT: usize = CALLS - 1;
const OTHER: usize = CALLS - 2;

/// Calls with a histogram; their place is their slot.
const TIMED: [Sysno; 4] = [Sysno::fsync, Sysno::fdatasync, Sysno::pread64, Sysno::pwrite64];

/// The programs, which both tables are read from.
pub(super) struct Programs {
    skeleton: SyscallsSkel<'static>,
    roles: Vec<String>,
    cpus: usize,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Programs").finish_non_exhaustive()
    }
}

impl Programs {
    /// Those of the other table, if it is open, else new ones.
    fn shared(host: &Host, options: &Options) -> Result<Rc<Self>, NotRunning> {
        let mut shared = options.ebpf.syscalls.borrow_mut();
        if let Some(programs) = Weak::upgrade(&shared) {
            return Ok(programs);
        }
        let programs = Rc::new(Self::load(host, options)?);
        *shared = Rc::downgrade(&programs);
        Ok(programs)
    }

    fn load(host: &Host, options: &Options) -> Result<Self, NotRunning> {
        super::ready(host)?;
        let roles = options.ebpf.roles(host, options)?;
        let named = roles.names().len();
        let (skeleton, cpus) = loaded(host, "syscalls", |cpus| {
            let mut opened = SyscallsSkelBuilder::default().open(object())?;
            size_calls(opened.open_object_mut(), cpus)?;
            let maps = &mut opened.maps;
            let storage = options
                .ebpf
                .keep_of_tasks(&mut maps.under_way, &mut maps.under_way_by_number)?;
            maps.calls.set_max_entries((cpus * named * CALLS) as u32)?;
            maps.happened.set_max_entries(named as u32)?;
            maps.call_time
                .set_max_entries((cpus * named * TIMED.len()) as u32)?;
            roles.share(&mut maps.roles)?;
            if let Some(constants) = maps.rodata_data.as_deref_mut() {
                constants.roles_named = named as u32;
                constants.task_storage = storage;
                constants.sigreturn = Sysno::rt_sigreturn as u32;
                constants.timed = TIMED.map(|call| call as u32);
            }
            let mut skeleton = opened.load()?;
            skeleton.attach()?;
            Ok((skeleton, cpus))
        })?;
        options.ebpf.account("syscalls", skeleton.object())?;
        Ok(Self {
            skeleton,
            roles: roles.names().to_vec(),
            cpus,
        })
    }
}

#[derive(Debug)]
struct Counts {
    calls: Words,
    happened: Words,
    names: Vec<String>,
    options: Options,
    programs: Rc<Programs>,
}

fn open_counts(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let programs = Programs::shared(host, options)?;
    let maps = &programs.skeleton.maps;
    let map = || Ok((Words::new(&maps.calls)?, Words::new(&maps.happened)?));
    let (calls, happened) = map().map_err(|error: io::Error| unmapped(&error))?;
    Ok(Box::new(Counts {
        calls,
        happened,
        names: (0..CALLS).map(name).collect(),
        options: options.clone(),
        programs,
    }))
}

fn name(number: usize) -> String {
    match number {
        COMPAT => "compat".to_owned(),
        OTHER => "other".to_owned(),
        _ => Sysno::new(number).map_or_else(|| format!("syscall_{number}"), |call| call.name().to_owned()),
    }
}

impl Counts {
    fn counters(&self, role: usize, call: usize) -> [u64; 3] {
        let mut sum = [0u64; 3];
        for cpu in 0..self.programs.cpus {
            let element = self
                .calls
                .element((cpu * self.programs.roles.len() + role) * CALLS + call);
            for (sum, word) in sum.iter_mut().zip(element) {
                *sum = sum.wrapping_add(word.load(Ordering::Relaxed));
            }
        }
        sum
    }
}

impl Probe for Counts {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.options.ebpf.refresh();
        for (role, role_name) in self.programs.roles.iter().enumerate() {
            let marks = self.happened.element(role).iter().map(word);
            for (first, marks) in marks.enumerate().filter(|(_, marks)| *marks != 0) {
                for (byte, mark) in marks.to_ne_bytes().into_iter().enumerate() {
                    let call = 8 * first + byte;
                    if mark == 0 {
                        continue;
                    }
                    rows.row(&[role_name.as_bytes(), self.names[call].as_bytes()]);
                    for count in self.counters(role, call) {
                        rows.uint(count);
                    }
                }
            }
        }
        Ok(())
    }
}

fn word(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

#[derive(Debug)]
struct Latency {
    time: Histograms,
    options: Options,
    programs: Rc<Programs>,
}

fn open_latency(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let programs = Programs::shared(host, options)?;
    let slots = programs.roles.len() * TIMED.len();
    let time = Histograms::new(&programs.skeleton.maps.call_time, slots, programs.cpus)
        .map_err(|error| unmapped(&error))?;
    Ok(Box::new(Latency {
        time,
        options: options.clone(),
        programs,
    }))
}

impl Probe for Latency {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.options.ebpf.refresh();
        for (role, role_name) in self.programs.roles.iter().enumerate() {
            for (place, call) in TIMED.iter().enumerate() {
                let (sum, buckets) = self.time.merged(role * TIMED.len() + place);
                rows.row(&[role_name.as_bytes(), call.name().as_bytes()]);
                histogram_cells(rows, sum, buckets);
            }
        }
        Ok(())
    }
}
