//! Time in soft and hard interrupts, by kind: histograms over all CPUs.

use std::io;

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Histograms;
use super::histogram_cells;
use super::loaded;
use super::object;
use super::roles::unmapped;
use super::skeletons::irq::IrqSkel;
use super::skeletons::irq::IrqSkelBuilder;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry =
    ProbeEntry::new("ebpf_irq", "time in soft and hard interrupts", &SCHEMA, open).live();

static ENTITY: &[Text] = &[text("kind")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[
    Column::counter(
        "sum_ns",
        Unit::Nanosecond,
        "time in all of them",
        "softirq_entry to softirq_exit, irq_handler_entry to irq_handler_exit",
    )
    .lower(),
    Column::buckets(
        "buckets",
        Unit::Nanosecond,
        "interrupts by the time they took",
        "softirq_entry to softirq_exit, irq_handler_entry to irq_handler_exit",
    )
    .lower(),
];

/// In the order of `include/linux/interrupt.h`; the last slot is that of hard interrupts (`irq.bpf.c`).
const KINDS: [&str; 11] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU", "hard",
];

struct Irq {
    time: Histograms,
    _programs: IrqSkel<'static>,
}

impl std::fmt::Debug for Irq {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Irq").finish_non_exhaustive()
    }
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let load = |cpus| {
        let mut opened = IrqSkelBuilder::default().open(object())?;
        opened
            .maps
            .irq_time
            .set_max_entries((cpus * KINDS.len()) as u32)?;
        let mut programs = opened.load()?;
        programs.attach()?;
        Ok((programs, cpus))
    };
    let (programs, cpus) = loaded(host, "irq", load)?;
    let time = Histograms::new(&programs.maps.irq_time, KINDS.len(), cpus)
        .map_err(|error: io::Error| unmapped(&error))?;
    Ok(Box::new(Irq {
        time,
        _programs: programs,
    }))
}

impl Probe for Irq {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for (slot, kind) in KINDS.iter().enumerate() {
            let (sum, buckets) = self.time.merged(slot);
            rows.row(&[kind.as_bytes()]);
            histogram_cells(rows, sum, buckets);
        }
        Ok(())
    }
}
