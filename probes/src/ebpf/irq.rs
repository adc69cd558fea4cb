//! Time in soft and hard interrupts, by kind: histograms over all CPUs.
//!
//! `hard` are all hard interrupts of devices, `hard:NAME` those of one device's queues as far as there is room. Timer and
//! inter-processor interrupts have no handler that could be timed.

use std::fs;
use std::io;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;
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
use super::programs::size_calls;
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

/// In the order of `include/linux/interrupt.h`.
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Groups of hard interrupt lines (`irq.bpf.c`); number 0 are the lines without a group.
const GROUPS: usize = 16;
/// Interrupt lines that the program knows a group of.
const LINES: usize = 4096;
const SLOTS: usize = SOFTIRQS.len() + GROUPS;

struct Irq {
    time: Histograms,
    /// The rows of the groups, from number 1 on.
    groups: Vec<String>,
    _programs: IrqSkel<'static>,
}

impl std::fmt::Debug for Irq {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Irq").finish_non_exhaustive()
    }
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let (groups, numbers) = groups(lines(host));
    let load = |cpus| {
        let mut opened = IrqSkelBuilder::default().open(object())?;
        size_calls(opened.open_object_mut(), cpus)?;
        opened.maps.irq_time.set_max_entries((cpus * SLOTS) as u32)?;
        let mut programs = opened.load()?;
        let first = 0_u32.to_ne_bytes();
        programs.maps.lines.update(&first, &numbers, MapFlags::ANY)?;
        programs.attach()?;
        Ok((programs, cpus))
    };
    let (programs, cpus) = loaded(host, "irq", load)?;
    options.ebpf.account("irq", programs.object())?;
    let time =
        Histograms::new(&programs.maps.irq_time, SLOTS, cpus).map_err(|error: io::Error| unmapped(&error))?;
    Ok(Box::new(Irq {
        time,
        groups,
        _programs: programs,
    }))
}

/// The interrupt lines and the names of their handlers (Documentation/ABI/testing/sysfs-kernel-irq).
fn lines(host: &Host) -> Vec<(usize, String)> {
    let directory = fs::read_dir(host.sys("kernel/irq"))
        .into_iter()
        .flatten()
        .flatten();
    let mut lines: Vec<_> = directory
        .filter_map(|entry| {
            let line = entry.file_name().to_str()?.parse().ok()?;
            let actions = fs::read_to_string(entry.path().join("actions")).ok()?;
            let name = group_name(&actions);
            (!name.is_empty()).then(|| (line, name.to_owned()))
        })
        .collect();
    lines.sort();
    lines
}

/// What the queues of a device have in common: `virtio1-req.0` is of `virtio1-req`, `nvme0q12` of `nvme0q`.
fn group_name(actions: &str) -> &str {
    let name = actions.trim();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.trim_end_matches(|last: char| last.is_ascii_digit() || ".-:".contains(last))
}

/// The names of the groups from number 1 on, and the group of each line; there are numbers for the first fifteen.
fn groups(lines: Vec<(usize, String)>) -> (Vec<String>, Vec<u8>) {
    let mut groups: Vec<String> = vec![];
    let mut numbers = vec![0; LINES];
    for (line, name) in lines {
        let row = format!("hard:{name}");
        let known = groups.iter().position(|group| *group == row);
        let place = known.unwrap_or(groups.len());
        if known.is_none() && groups.len() + 1 < GROUPS {
            groups.push(row);
        }
        if place < groups.len()
            && let Some(number) = numbers.get_mut(line)
        {
            *number = place as u8 + 1;
        }
    }
    (groups, numbers)
}

impl Probe for Irq {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for (slot, kind) in SOFTIRQS.iter().enumerate() {
            let (sum, buckets) = self.time.merged(slot);
            rows.row(&[kind.as_bytes()]);
            histogram_cells(rows, sum, buckets);
        }
        let (sum, buckets) = self.time.merged_all(SOFTIRQS.len()..SLOTS);
        rows.row(&[b"hard"]);
        histogram_cells(rows, sum, buckets);
        for (place, group) in self.groups.iter().enumerate() {
            let slot = SOFTIRQS.len() + 1 + place;
            if self.time.sum(slot) > 0 {
                let (sum, buckets) = self.time.merged(slot);
                rows.row(&[group.as_bytes()]);
                histogram_cells(rows, sum, buckets);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_s_queues_are_one_group_and_numbers_run_out() {
        assert_eq!(group_name("virtio1-req.0\n"), "virtio1-req");
        assert_eq!(group_name("nvme0q12\n"), "nvme0q");
        assert_eq!(group_name("mlx5_comp3@pci:0000:3b:00.0\n"), "mlx5_comp");
        assert_eq!(group_name("\n"), "");
        let names = (0..20).map(|line| (line, if line == 19 { "d0" } else { "d" }.to_owned()));
        let (groups_of_two, numbers) = groups(names.collect());
        assert_eq!(groups_of_two, ["hard:d", "hard:d0"]);
        assert_eq!((numbers[0], numbers[18], numbers[19], numbers[20]), (1, 1, 2, 0));
        let (many, numbers) = groups((0..20).map(|line| (line, format!("device{line}x"))).collect());
        assert_eq!(many.len(), 15);
        assert_eq!((numbers[14], numbers[15], numbers[19]), (15, 0, 0));
    }
}
