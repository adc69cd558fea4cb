//! Measures the time in which tasks do not run: waiting for a CPU, or blocked, by reason.

use std::io;
use std::rc::Rc;

use loadprint_recording::histogram::BUCKETS;
use loadprint_recording::histogram::merge;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::REASONS;
use super::Scheduler;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::ebpf::Shared;
use crate::ebpf::histogram_cells;
use crate::ebpf::map::Histograms;
use crate::ebpf::map::unmapped;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_sched",
    "time in the run queue, and off-CPU time by reason",
    &SCHEMA,
    open,
);

/// The state of a task that is runnable and not on a CPU.
const RUN_QUEUE: &str = "run queue";

/// All tasks except the idle tasks.
const ALL: &str = "all";

static ENTITY: &[Text] = &[text("role"), text("state")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[
    Column::counter(
        "sum_ns",
        Unit::Nanosecond,
        "time in the state, of periods that have ended",
        "sched_switch, by the run queue's clock",
    )
    .lower(),
    Column::buckets(
        "buckets",
        Unit::Nanosecond,
        "periods in the state, by length",
        "sched_switch, by the run queue's clock",
    )
    .lower(),
];

#[derive(Debug)]
struct Time {
    waits: Histograms,
    off_cpu: Histograms,
    /// Sum and buckets of all roles.
    sum: u64,
    buckets: Box<[u64; BUCKETS]>,
    scheduler: Rc<Scheduler>,
    shared: Rc<Shared>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let scheduler = shared.scheduler(host, options)?;
    let maps = &scheduler.programs.maps;
    let off_cpu_slots = scheduler.names.len() * REASONS.len();
    let map = || -> io::Result<_> {
        Ok((
            Histograms::new(&maps.waits, scheduler.slots(), scheduler.cpus)?,
            Histograms::new(&maps.off_cpu, off_cpu_slots, scheduler.cpus)?,
        ))
    };
    let (waits, off_cpu) = map().map_err(|error| unmapped(&error))?;
    Ok(Box::new(Time {
        waits,
        off_cpu,
        sum: 0,
        buckets: Box::new([0; BUCKETS]),
        scheduler,
        shared: Rc::clone(shared),
    }))
}

impl Probe for Time {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.shared.refresh();
        // Each wait is in one slot: that of its role, or the first.
        let (sum, buckets) = self.waits.merged(0);
        self.sum = sum;
        self.buckets.copy_from_slice(buckets);
        for (role, name) in self.scheduler.names.iter().enumerate() {
            for (index, reason) in REASONS.iter().enumerate() {
                let (sum, buckets) = self.off_cpu.merged(role * REASONS.len() + index);
                rows.row(&[name.as_bytes(), reason.as_bytes()]);
                histogram_cells(rows, sum, buckets);
            }
            let (sum, buckets) = self.waits.merged(role + 1);
            self.sum = self.sum.wrapping_add(sum);
            merge(&mut self.buckets[..], buckets);
            rows.row(&[name.as_bytes(), RUN_QUEUE.as_bytes()]);
            histogram_cells(rows, sum, buckets);
        }
        rows.row(&[ALL.as_bytes(), RUN_QUEUE.as_bytes()]);
        histogram_cells(rows, self.sum, &self.buckets[..]);
        Ok(())
    }
}
