//! Block I/O by device and operation: how long requests wait for the driver, and how long the device takes.
//!
//! A request waits in a queue where an I/O scheduler, a plug or a busy device keeps it; one that goes straight to the driver has
//! no such time. Whole disks, as the driver sees them: requests, after merging and splitting. What device mapper, md, zram or brd do with
//! whole bios has no requests of its own; it is seen on the disks below. Partitions are in their disk.

use std::fmt::Debug;
use std::fmt::Formatter;
use std::fs;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::histogram::BUCKETS;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Histograms;
use super::Words;
use super::has_tracepoint;
use super::histogram_cells;
use super::loaded;
use super::object;
use super::programs::size_calls;
use super::roles::unmapped;
use super::skeletons::block::BlockSkel;
use super::skeletons::block::BlockSkelBuilder;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ebpf_block",
    "block I/O latency by device and operation, flushes included",
    &SCHEMA,
    open,
)
.live();

static ENTITY: &[Text] = &[text("device"), text("operation"), text("stage")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
const SOURCE: &str =
    "stage queue: block_rq_insert to block_rq_issue; device: block_rq_issue to block_rq_complete";
static COLUMNS: &[Column] = &[
    Column::counter("sum_ns", Unit::Nanosecond, "time of all requests", SOURCE).lower(),
    Column::buckets(
        "buckets",
        Unit::Nanosecond,
        "requests by the time they took",
        SOURCE,
    )
    .lower(),
    Column::counter(
        "lost",
        Unit::One,
        "requests not followed, because too many were in flight; only of stage device",
        "block_rq_issue",
    )
    .lower(),
];

/// As in `block.bpf.c`; a `write_fua` must be durable when it is done. The second value: whether every disk is expected to
/// have some.
pub(super) const OPERATIONS: [(&str, bool); 6] = [
    ("read", true),
    ("write", true),
    ("write_fua", false),
    ("flush", true),
    ("discard", true),
    ("other", false),
];

/// As in `block.bpf.c`.
const MAX_DEVICES: usize = 64;
/// Room for disks that come later.
const SPARE_DEVICES: usize = 8;
/// Sets of histograms at the most: kernel memory is a third of a megabyte a set and twenty disks.
const MAX_SETS: usize = 16;

/// What devices beyond the bound are called together.
const OTHER_DEVICES: &str = "other";

/// The programs, and who is who among the devices; shared by the probes that read them.
pub(super) struct Requests {
    pub(super) programs: BlockSkel<'static>,
    known: Words,
    /// Devices that can be told apart.
    devices: usize,
    pub(super) sets: usize,
}

impl Debug for Requests {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Requests {
    /// Those that already run, or new ones.
    ///
    /// # Errors
    /// [`NotRunning`] where this host cannot run them.
    pub(super) fn get(host: &Host, options: &Options) -> Result<Rc<Self>, NotRunning> {
        let mut shared = options.ebpf.block.borrow_mut();
        if let Some(running) = shared.upgrade() {
            return Ok(running);
        }
        let requests = Rc::new(Self::start(host)?);
        options.ebpf.account("block", requests.programs.object())?;
        *shared = Rc::downgrade(&requests);
        Ok(requests)
    }

    fn start(host: &Host) -> Result<Self, NotRunning> {
        let disks = disks(host);
        let devices = (disks.len() + SPARE_DEVICES).min(MAX_DEVICES);
        let load = |cpus: usize| {
            let sets = cpus.next_power_of_two().min(MAX_SETS);
            let elements = (devices + 1) * OPERATIONS.len() * sets;
            let mut opened = BlockSkelBuilder::default().open(object())?;
            size_calls(opened.open_object_mut(), cpus)?;
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
                maps.numbers.update(&dev.to_ne_bytes(), &number, MapFlags::ANY)?;
                maps.owners.update(&number, &dev.to_ne_bytes(), MapFlags::ANY)?;
                maps.known
                    .update(&number, &u64::from(*dev).to_ne_bytes(), MapFlags::ANY)?;
            }
            programs.attach()?;
            Ok((programs, sets))
        };
        let (programs, sets) = loaded(host, "block", load)?;
        let known = Words::new(&programs.maps.known).map_err(|error| unmapped(&error))?;
        Ok(Self {
            programs,
            known,
            devices,
            sets,
        })
    }

    /// Slots of one set of histograms.
    pub(super) fn slots(&self) -> usize {
        (self.devices + 1) * OPERATIONS.len()
    }
}

/// The disks that are there and have done I/O since boot, as the kernel's 32 bits of major (12) and minor (20).
fn disks(host: &Host) -> Vec<u32> {
    let directory = fs::read_dir(host.sys("block")).into_iter().flatten().flatten();
    let mut disks: Vec<u32> = directory
        .filter_map(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let size = fs::read_to_string(entry.path().join("size")).ok()?;
            let is_used = size.trim() != "0" && stat.split_ascii_whitespace().any(|field| field != "0");
            let dev = fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = dev.trim().split_once(':')?;
            let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
            is_used.then_some(dev)
        })
        .collect();
    disks.sort_unstable();
    disks
}

/// The names of the devices that have a number, in that order.
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

    /// The names, those that came since the last call included. A name is asked for once.
    pub(super) fn of(&mut self, requests: &Requests) -> &[String] {
        while let Some(dev) = requests.known.element(self.names.len()).first() {
            let dev = dev.load(Ordering::Relaxed);
            if dev == 0 {
                break;
            }
            let number = format!("{}:{}", dev >> 20, dev & 0xf_ffff);
            let link = fs::read_link(self.host.sys(&format!("dev/block/{number}")));
            let name = link
                .ok()
                .and_then(|link| Some(link.file_name()?.to_string_lossy().replace('!', "/")));
            self.names.push(name.unwrap_or(number));
        }
        &self.names
    }
}

/// A place among the histograms.
pub(super) struct Slot<'a> {
    pub(super) index: usize,
    pub(super) device: &'a str,
    pub(super) operation: &'static str,
    /// Whether it has a row though no request came yet.
    pub(super) expected: bool,
}

/// The places of all devices that have a number, and of what is beyond the bound.
pub(super) fn slots<'a>(requests: &Requests, names: &'a [String]) -> impl Iterator<Item = Slot<'a>> {
    let devices = requests.devices;
    let beyond = (devices, OTHER_DEVICES);
    let named = names.iter().map(String::as_str).enumerate();
    named.chain([beyond]).flat_map(move |(number, device)| {
        let operations = OPERATIONS.iter().enumerate();
        operations.map(move |(place, (operation, expected))| Slot {
            index: number * OPERATIONS.len() + place,
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
    lost: Words,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let requests = Requests::get(host, options)?;
    let mapped = |requests: &Requests| -> io::Result<_> {
        let maps = &requests.programs.maps;
        let (slots, sets) = (requests.slots(), requests.sets);
        Ok((
            Histograms::new(&maps.queue_time, slots, sets)?,
            Histograms::new(&maps.device_time, slots, sets)?,
            Words::new(&maps.lost)?,
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
        for slot in slots(requests, names.of(requests)) {
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
                match lost.element(slot.index).first() {
                    Some(lost) if stage == "device" => rows.uint(lost.load(Ordering::Relaxed)),
                    _ => rows.null(),
                }
            }
        }
        Ok(())
    }
}

/// Appends a slot's sum and buckets; one that was never used is not read.
pub(super) fn cells(rows: &mut Rows, histograms: &mut Histograms, slot: usize, is_used: bool) {
    if is_used {
        let (sum, buckets) = histograms.merged(slot);
        histogram_cells(rows, sum, buckets);
    } else {
        histogram_cells(rows, 0, &[0; BUCKETS]);
    }
}
