//! Counts system calls of the watched processes by role and call, with time and errors, and has
//! histograms of file system calls.
//!
//! A call counts when it returns, with the time that it was blocked. A call that started before the
//! probe was attached does not count, nor does one that never returns (exit, exit_group). A call
//! that a signal interrupts and the kernel restarts (ERESTARTSYS and the like, 512 to 516) is two
//! calls, of which the first failed. 32-bit calls have other numbers and are counted together as
//! `compat`.
//!
//! The probes are not in the standard set: a tracepoint on system calls makes every call of every
//! process on the host take the slow path of the kernel, about a third of a microsecond each
//! (docs/benchmarks.md).

use syscalls::Sysno;

use super::prelude::*;
use super::skeletons::syscalls::SyscallsSkel;
use super::skeletons::syscalls::SyscallsSkelBuilder;
use super::skeletons::syscalls::types::call_counters;
use super::skeletons::syscalls::types::limits as Limits;
use super::skeletons::syscalls::types::seen_calls;

/// The line of the counters in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_syscalls",
    "count, time and errors of the system calls of the watched processes",
    &COUNTS,
    open_counts,
)
.on_request();

/// The line of the histograms in the registry.
pub const LATENCY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_syscall_latency",
    "latency of the watched processes' file system calls: fsync, fdatasync, pread64, pwrite64",
    &TIMES,
    open_latency,
)
.on_request();

static ENTITY: &[Text] = &[text("role"), text("syscall")];
static COUNTS: Schema = Schema::table(ENTITY, COUNT_COLUMNS);
static COUNT_COLUMNS: &[Column] = columns! {
    counter(One) "count", "calls that returned", "raw_syscalls:sys_exit";
    counter(Nanosecond) "time_ns",
        "time in these calls, waiting included", "raw_syscalls:sys_enter to sys_exit", lower;
    counter(One) "errors",
        "calls that returned an error, interrupted ones included",
        "raw_syscalls:sys_exit, ret from -4095 to -1", lower;
};
static TIMES: Schema = Schema::histogram(ENTITY, TIME_COLUMNS);
static TIME_COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "sum_ns", "time in these calls", "raw_syscalls:sys_enter to sys_exit", lower;
    buckets(Nanosecond) "buckets", "calls by the time they took", "raw_syscalls:sys_enter to sys_exit", lower;
};

const CALLS: usize = Limits::CALLS.0 as usize;
const COMPAT: usize = Limits::COMPAT.0 as usize;
const OTHER: usize = Limits::OTHER.0 as usize;
const COUNTERS: [usize; 3] = [
    offset_of!(call_counters, count),
    offset_of!(call_counters, time_ns),
    offset_of!(call_counters, errors),
];

/// Calls with a histogram, in the order of their slots.
const TIMED: [Sysno; Limits::TIMED.0 as usize] =
    [Sysno::fsync, Sysno::fdatasync, Sysno::pread64, Sysno::pwrite64];

/// The programs from which both probes read.
struct Programs {
    skeleton: SyscallsSkel<'static>,
    roles: Rc<Roles>,
    cpus: usize,
}

impl Programs {
    fn load(host: &Host, options: &Options, shared: &Shared) -> Result<Self, NotRunning> {
        check_host(host)?;
        let roles = shared.roles(host, options)?;
        let role_count = roles.names().len();
        let (skeleton, cpus) = load_object(
            host,
            "syscalls",
            SyscallsSkelBuilder::default(),
            |opened, cpus| {
                let maps = &mut opened.maps;
                let use_task_storage =
                    shared.choose_task_map(&mut maps.current_calls, &mut maps.current_calls_by_tid)?;
                let slots = (cpus * role_count) as u32;
                maps.call_counters.set_max_entries(slots * CALLS as u32)?;
                maps.seen_calls.set_max_entries(role_count as u32)?;
                maps.call_time.set_max_entries(slots * TIMED.len() as u32)?;
                roles.share(&mut maps.roles)?;
                if let Some(constants) = maps.rodata_data.as_deref_mut() {
                    constants.role_count = role_count as u32;
                    constants.use_task_storage = use_task_storage;
                    constants.sigreturn = Sysno::rt_sigreturn as u32;
                    constants.timed = TIMED.map(|call| call as u32);
                }
                Ok(())
            },
            Skel::attach,
        )?;
        shared.add_programs("syscalls", skeleton.object())?;
        Ok(Self {
            skeleton,
            roles,
            cpus,
        })
    }
}

struct Counts {
    counters: MappedArray<call_counters>,
    seen_calls: MappedArray<seen_calls>,
    names: Vec<String>,
    programs: Rc<Programs>,
}

fn open_counts(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let programs = shared.once(|| Programs::load(host, options, shared))?;
    let maps = &programs.skeleton.maps;
    Ok(Box::new(Counts {
        counters: MappedArray::new(&maps.call_counters)?,
        seen_calls: MappedArray::new(&maps.seen_calls)?,
        names: (0..CALLS).map(name).collect(),
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
    /// The counters of one call over all CPUs.
    fn counters(&self, role: usize, call: usize) -> [u64; COUNTERS.len()] {
        let roles = self.programs.roles.names().len();
        COUNTERS.map(|offset| {
            let elements = (0..self.programs.cpus).map(|cpu| (cpu * roles + role) * CALLS + call);
            self.counters.sum(elements, offset)
        })
    }
}

impl Probe for Counts {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.programs.roles.refresh();
        for (role, role_name) in self.programs.roles.names().iter().enumerate() {
            for (call, seen) in self.seen_calls.bytes(role).iter().enumerate() {
                if seen.load(Ordering::Relaxed) != 0 {
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

struct Latency {
    time: Histograms,
    programs: Rc<Programs>,
}

fn open_latency(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let programs = shared.once(|| Programs::load(host, options, shared))?;
    let slots = programs.roles.names().len() * TIMED.len();
    let time = Histograms::new(&programs.skeleton.maps.call_time, slots, programs.cpus)?;
    Ok(Box::new(Latency { time, programs }))
}

impl Probe for Latency {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.programs.roles.refresh();
        for (role, role_name) in self.programs.roles.names().iter().enumerate() {
            for (index, call) in TIMED.iter().enumerate() {
                let (sum, buckets) = self.time.merged(role * TIMED.len() + index);
                rows.row(&[role_name.as_bytes(), call.name().as_bytes()]);
                histogram_cells(rows, sum, buckets);
            }
        }
        Ok(())
    }
}
