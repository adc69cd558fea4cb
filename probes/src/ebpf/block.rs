//! Measures block I/O by device and operation: latency (time in the queue, and time in the device), and
//! sizes.
//!
//! A request is in a queue while an I/O scheduler, a plug or a busy device holds it; a request that
//! is issued directly has no queue time. Devices are whole disks and requests are those of the
//! driver, after merging and splitting; I/O to partitions counts for their disk. Device mapper, md,
//! zram and brd handle bios and have no requests; their I/O is measured on the disks below them.

use std::fs;

use loadprint_recording::histogram::BUCKETS;

use super::prelude::*;
use super::skeletons::block::BlockSkel;
use super::skeletons::block::BlockSkelBuilder;
use super::skeletons::block::types::limits as Limits;
use super::skeletons::block::types::operation as Operation;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_block",
    "block I/O latency by device and operation, flushes included",
    &SCHEMA,
    open,
)
.on_request();

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
struct Requests {
    programs: BlockSkel<'static>,
    /// The dev_t of each number.
    numbered_devices: MappedArray<u64>,
    /// How many devices can have a number.
    devices: usize,
    sets: usize,
}

impl Requests {
    fn start(host: &Host, shared: &Shared) -> Result<Self, NotRunning> {
        let disks = disks(host);
        let devices = (disks.len() + SPARE_DEVICES).min(Limits::MAX_DEVICES.0 as usize);
        let (programs, cpus) = load_object(
            host,
            "block",
            BlockSkelBuilder::default(),
            |opened, cpus| {
                let sets = shared_sets(cpus);
                let elements = ((devices + 1) * OPERATIONS.len() * sets) as u32;
                if let Some(constants) = opened.maps.rodata_data.as_mut() {
                    constants.devices = devices as u32;
                    constants.sets = sets as u32;
                }
                opened.maps.queue_time.set_max_entries(elements)?;
                opened.maps.device_time.set_max_entries(elements)?;
                opened.maps.sizes.set_max_entries(elements)?;
                let merges = has_tracepoint(c"block_rq_merge");
                opened.progs.block_rq_merge.set_autoload(merges);
                Ok(())
            },
            |programs| {
                let maps = &programs.maps;
                for (number, dev) in (0_u32..).zip(&disks[..devices.min(disks.len())]) {
                    let (number, any) = (number.to_ne_bytes(), MapFlags::ANY);
                    maps.device_numbers.update(&dev.to_ne_bytes(), &number, any)?;
                    maps.number_owners.update(&number, &dev.to_ne_bytes(), any)?;
                    let numbered = u64::from(*dev).to_ne_bytes();
                    maps.numbered_devices.update(&number, &numbered, any)?;
                }
                programs.attach()
            },
        )?;
        shared.add_programs("block", programs.object())?;
        let numbered_devices = MappedArray::new(&programs.maps.numbered_devices)?;
        let sets = shared_sets(cpus);
        Ok(Self {
            programs,
            numbered_devices,
            devices,
            sets,
        })
    }

    fn histograms(&self, map: &impl MapCore) -> Result<Histograms, NotRunning> {
        Histograms::new(map, (self.devices + 1) * OPERATIONS.len(), self.sets)
    }
}

/// The dev_t of each disk that has done I/O since boot and has requests, unlike volumes of LVM and md.
fn disks(host: &Host) -> Vec<u32> {
    let directory = fs::read_dir(host.sys("block")).into_iter().flatten().flatten();
    let mut disks: Vec<u32> = directory
        .filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let has_requests = entry.path().join("mq").exists();
            let size = fs::read_to_string(entry.path().join("size")).ok()?;
            let is_used = size.trim() != "0" && stat.split_ascii_whitespace().any(|field| field != "0");
            let dev = fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = dev.trim().split_once(':')?;
            let dev = major.parse::<u32>().ok()? << Limits::MINOR_BITS.0 | minor.parse::<u32>().ok()?;
            (is_used && has_requests).then_some(dev)
        })
        .collect();
    disks.sort_unstable();
    disks
}

/// The names of the devices that have a number, in the order of the numbers.
struct Names {
    host: Host,
    names: Vec<String>,
}

impl Names {
    fn new(host: &Host) -> Self {
        Self {
            host: host.clone(),
            names: vec![],
        }
    }

    /// Adds the names of new devices and returns all. A name is read once.
    fn updated(&mut self, requests: &Requests) -> &[String] {
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
struct Slot<'a> {
    index: usize,
    device: &'a str,
    operation: &'static str,
    /// Whether it has a row before the first request.
    expected: bool,
}

/// The slots of all devices that have a number, and of all others together.
fn slots<'a>(requests: &Requests, names: &'a [String]) -> impl Iterator<Item = Slot<'a>> {
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

struct Block {
    requests: Rc<Requests>,
    names: Names,
    queue: Histograms,
    device: Histograms,
    lost: MappedArray<u64>,
}

fn open(host: &Host, _: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let requests = shared.once(|| Requests::start(host, shared))?;
    let maps = &requests.programs.maps;
    Ok(Box::new(Block {
        names: Names::new(host),
        queue: requests.histograms(&maps.queue_time)?,
        device: requests.histograms(&maps.device_time)?,
        lost: MappedArray::new(&maps.lost)?,
        requests,
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
fn cells(rows: &mut Rows, histograms: &mut Histograms, slot: usize, is_used: bool) {
    if is_used {
        let (sum, buckets) = histograms.merged(slot);
        histogram_cells(rows, sum, buckets);
    } else {
        histogram_cells(rows, 0, &[0; BUCKETS]);
    }
}

/// The line of the sizes in the registry.
pub const SIZE_ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_block_size",
    "block I/O sizes by device and operation",
    &SIZE_SCHEMA,
    open_size,
)
.on_request();

static SIZE_ENTITY: &[Text] = &[text("device"), text("operation")];
static SIZE_SCHEMA: Schema = Schema::histogram(SIZE_ENTITY, SIZE_COLUMNS);
const SIZE: &str = "__data_len of struct request at block_rq_issue, counted at block_rq_complete";
static SIZE_COLUMNS: &[Column] = columns! {
    counter(Byte) "sum_bytes", "bytes of all requests", SIZE;
    buckets(Byte) "buckets", "requests by size; a flush has none", SIZE;
};

struct BlockSize {
    requests: Rc<Requests>,
    names: Names,
    /// Shows which slots have requests: their sizes can all be 0.
    time: Histograms,
    sizes: Histograms,
}

fn open_size(host: &Host, _: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let requests = shared.once(|| Requests::start(host, shared))?;
    let maps = &requests.programs.maps;
    Ok(Box::new(BlockSize {
        names: Names::new(host),
        time: requests.histograms(&maps.device_time)?,
        sizes: requests.histograms(&maps.sizes)?,
        requests,
    }))
}

impl Probe for BlockSize {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for slot in slots(&self.requests, self.names.updated(&self.requests)) {
            let is_used = self.time.sum(slot.index) > 0;
            if is_used || slot.expected {
                rows.row(&[slot.device.as_bytes(), slot.operation.as_bytes()]);
                cells(rows, &mut self.sizes, slot.index, is_used);
            }
        }
        Ok(())
    }
}
