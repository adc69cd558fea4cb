//! Switches, wakeups and migrations of the host and of the watched roles, counted in the kernel.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Scheduler;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::ebpf::Shared;
use crate::ebpf::Words;
use crate::ebpf::roles::unmapped;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ebpf_switches",
    "context switches, wakeups and migrations of the host and of the watched processes",
    &SCHEMA,
    open,
)
.live();

static ENTITY: &[Text] = &[text("role")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[
    Column::counter(
        "voluntary",
        Unit::One,
        "times that a task blocked",
        "sched_switch: not preempted, and not runnable",
    )
    .lower(),
    Column::counter(
        "involuntary",
        Unit::One,
        "times that a task was preempted or yielded",
        "sched_switch: preempted, or runnable",
    )
    .lower(),
    Column::counter(
        "wakeups",
        Unit::One,
        "times that a task was woken",
        "sched_wakeup; the first one of a new task is not counted",
    )
    .lower(),
    Column::counter(
        "migrations",
        Unit::One,
        "times that a task was moved to another CPU",
        "sched_migrate_task",
    )
    .lower(),
];

#[derive(Debug)]
struct Switches {
    counts: Words,
    scheduler: Rc<Scheduler>,
    shared: Rc<Shared>,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let scheduler = options.ebpf.scheduler(host, options)?;
    let counts = Words::new(&scheduler.programs.maps.switches).map_err(|error| unmapped(&error))?;
    Ok(Box::new(Switches {
        counts,
        scheduler,
        shared: Rc::clone(&options.ebpf),
    }))
}

impl Switches {
    /// The counters of one slot, over all CPUs.
    fn merged(&self, slot: usize) -> [u64; 4] {
        let mut counts = [0u64; 4];
        for cpu in 0..self.scheduler.cpus {
            let element = self.counts.element(cpu * self.scheduler.slots() + slot);
            for (count, word) in counts.iter_mut().zip(element) {
                *count = count.wrapping_add(word.load(Ordering::Relaxed));
            }
        }
        counts
    }
}

impl Probe for Switches {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.shared.refresh();
        let mut all = self.merged(0);
        for (place, name) in self.scheduler.names.iter().enumerate() {
            let counts = self.merged(place + 1);
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
