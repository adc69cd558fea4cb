//! Measures block I/O latency by device and operation: time in the queue, and time in the device.
//!
//! A request is in a queue while an I/O scheduler, a plug or a busy device holds it; a request that
//! is issued directly has no queue time. Devices are whole disks and requests are those of the
//! driver, after merging and splitting; I/O to partitions counts for their disk. Device mapper, md,
//! zram and brd handle bios and have no requests; their I/O is measured on the disks below them.

use std::fmt::Debug;
use std::fmt::Formatter;
use std::fs;
use std::io;
use std::rc::Rc;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::histogram::BUCKETS;

use super::Shared;
use super::has_tracepoint;
use super::histogram_cells;
use super::load_object;
use super::map::Histograms;
use super::map::MappedArray;
use super::map::shared_sets;
use super::map::unmapped;
use super::object;
use super::programs::size_call_counters;
use super::skeletons::block::BlockSkel;
use super::skeletons::block::BlockSkelBuilder;
use super::skeletons::block::types::limits as Limits;
use super::skeletons::block::types::operation as Operation;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_block",
    "block I/O latency by device and operation, flushes included",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("device"), text("operation"), text("stage")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
const SOURCE: &str =
    "stage queue: block_rq_insert to block_rq_issue; device: block_rq_issue to block_rq_complete";
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "sum_ns", "time of all requests", SOURCE, lower;
    buckets(Nanosecond) "buckets", "requests by the time they took", SOURCE, lower;
    counter(One) "lost",
        "requests that were not measured, because too many were in flight; only of stage device",
        "block_rq_issue", lower;
};

/// The name of each operation, and whether every disk has a row for it. A `write_fua` is durable
/// when it completes.
const OPERATIONS: [(&str, bool); Operation::OPERATIONS.0 as usize] = {
    let mut operations = [("", false); Operation::OPERATIONS.0 as usize];
    operations[Operation::READ.0 as usize] = ("read", true);
    operations[Operation::WRITE.0 as usize] = ("write", true);
    operations[Operation::WRITE_FUA.0 as usize] = ("write_fua", false);
    operations[Operation::FLUSH.0 as usize] = ("flush", true);
    operations[Operation::DISCARD.0 as usize] = ("discard", true);
    operations[Operation::OTHER.0 as usize] = ("other", false);
    operations
};

/// Numbers for disks that are added later.
const SPARE_DEVICES: usize = 8;

/// The row of all devices that have no number.
const OTHER_DEVICES: &str = "other";

/// The programs and the numbers of the devices, which two probes share.
pub(super) struct Requests {
    pub(super) programs: BlockSkel<'static>,
    /// The dev_t of each number.
    numbered_devices: MappedArray<u64>,
    /// How many devices can have a number.
    devices: usize,
    pub(super) sets: usize,
}

impl Debug for Requests {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Requests {
    /// Returns the running programs, or starts them.
    ///
    /// # Errors
    /// [`NotRunning`] where this host cannot run them.
    pub(super) fn get(host: &Host, shared: &Shared) -> Result<Rc<Self>, NotRunning> {
        let mut block = shared.block.borrow_mut();
        if let Some(running) = block.upgrade() {
            return Ok(running);
        }
        let requests = Rc::new(Self::start(host)?);
        shared.add_programs("block", requests.programs.object())?;
        *block = Rc::downgrade(&requests);
        Ok(requests)
    }

    fn start(host: &Host) -> Result<Self, NotRunning> {
        let disks = disks(host);
        let devices = (disks.len() + SPARE_DEVICES).min(Limits::MAX_DEVICES.0 as usize);
        let load = |cpus: usize| {
            let sets = shared_sets(cpus);
            let elements = (devices + 1) * OPERATIONS.len() * sets;
            let mut opened = BlockSkelBuilder::default().open(object())?;
            size_call_counters(opened.open_object_mut(), cpus)?;
            if let Some(constants) = opened.maps.rodata_data.as_mut() {
                constants.devices = devices as u32;
                constants.sets = sets as u32;
            }
            opened.maps.queue_time.set_max_entries(elements as u32)?;
            opened.maps.device_time.set_max_entries(elements as u32)?;
            opened.maps.sizes.set_max_entries(elements as u32)?;
            let merges = has_tracepoint(c"block_rq_merge");
            opened.progs.block_rq_merge.set_autoload(merges);
            let mut programs = opened.load()?;
            for (number, dev) in disks.iter().take(devices).enumerate() {
                let number = (number as u32).to_ne_bytes();
                let maps = &programs.maps;
                maps.device_numbers
                    .update(&dev.to_ne_bytes(), &number, MapFlags::ANY)?;
                maps.number_owners
                    .update(&number, &dev.to_ne_bytes(), MapFlags::ANY)?;
                maps.numbered_devices
                    .update(&number, &u64::from(*dev).to_ne_bytes(), MapFlags::ANY)?;
            }
            programs.attach()?;
            Ok((programs, sets))
        };
        let (programs, sets) = load_object(host, "block", load)?;
        let numbered_devices =
            MappedArray::new(&programs.maps.numbered_devices).map_err(|error| unmapped(&error))?;
        Ok(Self {
            programs,
            numbered_devices,
            devices,
            sets,
        })
    }

    /// Slots of one set of histograms.
    pub(super) fn slots(&self) -> usize {
        (self.devices + 1) * OPERATIONS.len()
    }
}

/// The dev_t of each disk that has done I/O since boot.
fn disks(host: &Host) -> Vec<u32> {
    let directory = fs::read_dir(host.sys("block")).into_iter().flatten().flatten();
    let mut disks: Vec<u32> = directory
        .filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let size = fs::read_to_string(entry.path().join("size")).ok()?;
            let is_used = size.trim() != "0" && stat.split_ascii_whitespace().any(|field| field != "0");
            let dev = fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = dev.trim().split_once(':')?;
            let dev = major.parse::<u32>().ok()? << Limits::MINOR_BITS.0 | minor.parse::<u32>().ok()?;
            is_used.then_some(dev)
        })
        .collect();
    disks.sort_unstable();
    disks
}

/// The names of the devices that have a number, in the order of the numbers.
#[derive(Debug)]
pub(super) struct Names {
    host: Host,
    names: Vec<String>,
}

impl Names {
    pub(super) fn new(host: &Host) -> Self {
        Self {
            host: host.clone(),
            names: vec![],
        }
    }

    /// Adds the names of new devices and returns all. A name is read once.
    pub(super) fn updated(&mut self, requests: &Requests) -> &[String] {
        while let Some(dev) = requests.numbered_devices.counter(self.names.len(), 0) {
            if dev == 0 {
                break;
            }
            let minors = 1 << Limits::MINOR_BITS.0;
            let number = format!("{}:{}", dev / minors, dev % minors);
            let link = fs::read_link(self.host.sys(&format!("dev/block/{number}")));
            let name = link
                .ok()
                .and_then(|link| Some(link.file_name()?.to_string_lossy().replace('!', "/")))
                .or_else(|| self.hidden_disk(&number));
            self.names.push(name.unwrap_or(number));
        }
        &self.names
    }

    /// The name of a disk without device file: a path of an NVMe namespace with multipath. Only diskstats has
    /// its number.
    fn hidden_disk(&self, number: &str) -> Option<String> {
        let stats = fs::read_to_string(self.host.proc("diskstats")).ok()?;
        stats.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let found = format!("{}:{}", words.next()?, words.next()?);
            (found == number).then(|| words.next())?.map(str::to_owned)
        })
    }
}

/// A slot of the histograms.
pub(super) struct Slot<'a> {
    pub(super) index: usize,
    pub(super) device: &'a str,
    pub(super) operation: &'static str,
    /// Whether it has a row before the first request.
    pub(super) expected: bool,
}

/// The slots of all devices that have a number, and of all others together.
pub(super) fn slots<'a>(requests: &Requests, names: &'a [String]) -> impl Iterator<Item = Slot<'a>> {
    let devices = requests.devices;
    let others = (devices, OTHER_DEVICES);
    let named = names.iter().map(String::as_str).enumerate();
    named.chain([others]).flat_map(move |(number, device)| {
        let operations = OPERATIONS.iter().enumerate();
        operations.map(move |(index, (operation, expected))| Slot {
            index: number * OPERATIONS.len() + index,
            device,
            operation,
            expected: *expected && number < devices,
        })
    })
}

#[derive(Debug)]
struct Block {
    requests: Rc<Requests>,
    names: Names,
    queue: Histograms,
    device: Histograms,
    lost: MappedArray<u64>,
}

fn open(host: &Host, _: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let requests = Requests::get(host, shared)?;
    let mapped = |requests: &Requests| -> io::Result<_> {
        let maps = &requests.programs.maps;
        let (slots, sets) = (requests.slots(), requests.sets);
        Ok((
            Histograms::new(&maps.queue_time, slots, sets)?,
            Histograms::new(&maps.device_time, slots, sets)?,
            MappedArray::new(&maps.lost)?,
        ))
    };
    let (queue, device, lost) = mapped(&requests).map_err(|error| unmapped(&error))?;
    Ok(Box::new(Block {
        requests,
        names: Names::new(host),
        queue,
        device,
        lost,
    }))
}

impl Probe for Block {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let Self {
            requests,
            names,
            queue,
            device,
            lost,
        } = self;
        for slot in slots(requests, names.updated(requests)) {
            let is_used = device.sum(slot.index) > 0;
            if !is_used && !slot.expected {
                continue;
            }
            for (stage, time) in [("queue", &mut *queue), ("device", &mut *device)] {
                rows.row(&[
                    slot.device.as_bytes(),
                    slot.operation.as_bytes(),
                    stage.as_bytes(),
                ]);
                cells(rows, time, slot.index, is_used);
                rows.uint_or_null(lost.counter(slot.index, 0).filter(|_| stage == "device"));
            }
        }
        Ok(())
    }
}

/// Appends sum and buckets of a slot. A slot without values is not read.
pub(super) fn cells(rows: &mut Rows, histograms: &mut Histograms, slot: usize, is_used: bool) {
    if is_used {
        let (sum, buckets) = histograms.merged(slot);
        histogram_cells(rows, sum, buckets);
    } else {
        histogram_cells(rows, 0, &[0; BUCKETS]);
    }
}
