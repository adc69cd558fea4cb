//! Measures the time in which tasks do not run (waiting for a CPU, or blocked, by reason), and counts
//! switches and migrations, of the host and of the watched roles.

use loadprint_recording::histogram::BUCKETS;
use loadprint_recording::histogram::merge;

use super::Scheduler;
use super::calls::REASONS;
use crate::ebpf::prelude::*;
use crate::ebpf::skeletons::sched::types::counts;
use crate::ebpf::skeletons::sched::types::histogram;
use crate::ebpf::skeletons::sched::types::switches;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_sched",
    "time in the run queue, and off-CPU time by reason",
    &SCHEMA,
    open,
)
.gated()
.on_request();

/// The state of a task that is runnable and not on a CPU.
const RUN_QUEUE: &str = "run queue";

/// All tasks except the idle tasks.
const ALL: &str = "all";

static ENTITY: &[Text] = &[text("role"), text("state")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "sum_ns",
        "time in the state, of periods that have ended", "sched_switch, by the run queue's clock", lower;
    buckets(Nanosecond) "buckets",
        "periods in the state, by length", "sched_switch, by the run queue's clock", lower;
};

struct Time {
    buckets: Box<[u64; BUCKETS]>,
    /// Those of all roles.
    all: Box<[u64; BUCKETS]>,
    scheduler: Rc<Scheduler>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Time {
        buckets: Box::new([0; BUCKETS]),
        all: Box::new([0; BUCKETS]),
        // The registry has it before the other probes of these programs.
        scheduler: shared.once(|| Scheduler::new(host, options, shared, true))?,
    }))
}

impl Time {
    /// Reads the buckets of a histogram of one slot over all CPUs; returns the sum of its values.
    fn read(&mut self, slot: usize, offset: usize) -> u64 {
        self.buckets.fill(0);
        let elements = self.scheduler.elements(slot);
        self.scheduler
            .counts
            .add_histograms(elements, offset, &mut self.buckets)
    }
}

impl Probe for Time {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.scheduler.refresh();
        // Each wait is in one slot: that of its role, or the first.
        let mut all = self.read(0, offset_of!(counts, waits));
        self.all.copy_from_slice(&self.buckets[..]);
        for role in 0..self.scheduler.names.len() {
            for (index, reason) in REASONS.iter().enumerate() {
                let offset = offset_of!(counts, off_cpu) + index * size_of::<histogram>();
                let sum = self.read(1 + role, offset);
                rows.row(&[self.scheduler.names[role].as_bytes(), reason.as_bytes()]);
                histogram_cells(rows, sum, &self.buckets[..]);
            }
            let sum = self.read(1 + role, offset_of!(counts, waits));
            all = all.wrapping_add(sum);
            merge(&mut self.all[..], &self.buckets[..]);
            rows.row(&[self.scheduler.names[role].as_bytes(), RUN_QUEUE.as_bytes()]);
            histogram_cells(rows, sum, &self.buckets[..]);
        }
        rows.row(&[ALL.as_bytes(), RUN_QUEUE.as_bytes()]);
        histogram_cells(rows, all, &self.all[..]);
        Ok(())
    }
}

/// The line of the switches in the registry.
pub const SWITCHES_ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_switches",
    "context switches and migrations of the host and of the watched processes",
    &SWITCHES_SCHEMA,
    open_switches,
)
.gated();

static SWITCHES_ENTITY: &[Text] = &[text("role")];
static SWITCHES_SCHEMA: Schema = Schema::table(SWITCHES_ENTITY, SWITCHES_COLUMNS);
static SWITCHES_COLUMNS: &[Column] = columns! {
    counter(One) "voluntary",
        "times that a task blocked", "sched_switch: not preempted, and not runnable", lower;
    counter(One) "involuntary",
        "times that a task was preempted or yielded", "sched_switch: preempted, or runnable", lower;
    counter(One) "migrations", "times that a task was moved to another CPU", "sched_migrate_task", lower;
};

const COUNTERS: [usize; 3] = [
    offset_of!(switches, voluntary),
    offset_of!(switches, involuntary),
    offset_of!(switches, migrations),
];

struct Switches(Rc<Scheduler>);

fn open_switches(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Switches(shared.scheduler(host, options)?)))
}

impl Switches {
    /// The counters of one slot over all CPUs.
    fn merged(&self, slot: usize) -> [u64; COUNTERS.len()] {
        let scheduler = &self.0;
        COUNTERS.map(|offset| {
            let offset = offset_of!(counts, switches) + offset;
            scheduler.counts.sum(scheduler.elements(slot), offset)
        })
    }
}

impl Probe for Switches {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.0.refresh();
        let mut all = self.merged(0);
        for (index, name) in self.0.names.iter().enumerate() {
            let counts = self.merged(index + 1);
            rows.row(&[name.as_bytes()]);
            for (sum, count) in all.iter_mut().zip(counts) {
                *sum = sum.wrapping_add(count);
                rows.uint(count);
            }
        }
        rows.row(&[b"all"]);
        all.into_iter().for_each(|count| rows.uint(count));
        Ok(())
    }
}
