//! Counts switches and migrations of the host and of the watched roles.

use std::mem::offset_of;
use std::rc::Rc;

use super::Scheduler;
use crate::ebpf::Shared;
use crate::ebpf::skeletons::sched::types::counts;
use crate::ebpf::skeletons::sched::types::switches;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_switches",
    "context switches and migrations of the host and of the watched processes",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("role")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
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

#[derive(Debug)]
struct Switches {
    scheduler: Rc<Scheduler>,
    shared: Rc<Shared>,
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let scheduler = shared.scheduler(host, options)?;
    Ok(Box::new(Switches {
        scheduler,
        shared: Rc::clone(shared),
    }))
}

impl Switches {
    /// The counters of one slot over all CPUs.
    fn merged(&self, slot: usize) -> [u64; COUNTERS.len()] {
        let scheduler = &self.scheduler;
        COUNTERS.map(|offset| {
            let offset = offset_of!(counts, switches) + offset;
            scheduler.counts.sum(scheduler.elements(slot), offset)
        })
    }
}

impl Probe for Switches {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.shared.refresh();
        let mut all = self.merged(0);
        for (index, name) in self.scheduler.names.iter().enumerate() {
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
