//! Measures time in soft and hard interrupts by kind, over all CPUs.
//!
//! `hard` is all hard interrupts of devices; `hard:NAME` is those of the queues of one device, for
//! the first devices. Timer and inter-processor interrupts have no handler in the sense of the
//! tracepoints and are not measured.

use loadprint_cpulist::small_files::line;
use loadprint_cpulist::small_files::numbers;

use super::prelude::*;
use super::skeletons::irq::IrqSkel;
use super::skeletons::irq::IrqSkelBuilder;
use super::skeletons::irq::types::limits as Limits;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry =
    ProbeEntry::ebpf("ebpf_irq", "time in soft and hard interrupts", &SCHEMA, open).on_request();

static ENTITY: &[Text] = &[text("kind")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "sum_ns",
        "time in these interrupts",
        "softirq_entry to softirq_exit, irq_handler_entry to irq_handler_exit", lower;
    buckets(Nanosecond) "buckets",
        "interrupts by the time they took",
        "softirq_entry to softirq_exit, irq_handler_entry to irq_handler_exit", lower;
};

/// The soft interrupts in the order of `include/linux/interrupt.h`.
const SOFTIRQS: [&str; Limits::SOFTIRQS.0 as usize] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

const GROUPS: usize = Limits::GROUPS.0 as usize;
const LINES: usize = Limits::LINES.0 as usize;
const SLOTS: usize = Limits::SLOTS.0 as usize;

struct Irq {
    time: Histograms,
    programs: Rc<Programs>,
}

struct Programs {
    skeleton: IrqSkel<'static>,
    cpus: usize,
    /// The rows of the groups; the first is number 1.
    groups: Vec<String>,
}

fn load(host: &Host, shared: &Shared) -> Result<Programs, NotRunning> {
    let (groups, numbers) = groups(lines(host));
    let (skeleton, cpus) = load_object(
        host,
        "irq",
        IrqSkelBuilder::default(),
        |opened, cpus| opened.maps.irq_time.set_max_entries((cpus * SLOTS) as u32),
        |skeleton| {
            let first = 0_u32.to_ne_bytes();
            let map = &skeleton.maps.line_groups;
            map.update(&first, &numbers, MapFlags::ANY)?;
            skeleton.attach()
        },
    )?;
    shared.add_programs("irq", skeleton.object())?;
    Ok(Programs {
        skeleton,
        cpus,
        groups,
    })
}

fn open(host: &Host, _: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let programs = shared.once(|| load(host, shared))?;
    let time = Histograms::new(&programs.skeleton.maps.irq_time, SLOTS, programs.cpus)?;
    Ok(Box::new(Irq { time, programs }))
}

/// The interrupt lines and the names of their handlers
/// (Documentation/ABI/testing/sysfs-kernel-irq).
fn lines(host: &Host) -> Vec<(usize, String)> {
    let directory = host.sys("kernel/irq");
    let named = |number: u32| {
        let actions = line(&directory.join(format!("{number}/actions")))?;
        let name = group_name(&actions);
        (!name.is_empty()).then(|| (number as usize, name.to_owned()))
    };
    let mut lines: Vec<_> = numbers(&directory).into_iter().filter_map(named).collect();
    lines.sort();
    lines
}

/// The common part of the names of a device's queues: `virtio1-req` of `virtio1-req.0`, `nvme0q` of
/// `nvme0q12`.
fn group_name(actions: &str) -> &str {
    let name = actions.trim();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.trim_end_matches(|last: char| last.is_ascii_digit() || ".-:".contains(last))
}

/// The rows of groups 1 to 15, and the group of each line; lines of further devices have group 0.
fn groups(lines: Vec<(usize, String)>) -> (Vec<String>, Vec<u8>) {
    let mut groups: Vec<String> = vec![];
    let mut numbers = vec![0; LINES];
    for (line, name) in lines {
        let row = format!("hard:{name}");
        let known = groups.iter().position(|group| *group == row);
        let index = known.unwrap_or(groups.len());
        if known.is_none() && groups.len() + 1 < GROUPS {
            groups.push(row);
        }
        if index < groups.len()
            && let Some(number) = numbers.get_mut(line)
        {
            *number = index as u8 + 1;
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
        for (index, group) in self.programs.groups.iter().enumerate() {
            let slot = SOFTIRQS.len() + 1 + index;
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
    fn queues_of_a_device_are_one_group_and_groups_are_limited() {
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
