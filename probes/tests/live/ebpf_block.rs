//! Compares the block probes with known I/O on private devices and with the kernel's own counters.
//! Needs root.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io::Write;
use std::ops::RangeInclusive;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;

use crate::prelude::*;
use memmap2::MmapMut;
use tempfile::TempDir;

/// Devices beyond the limit share a row: parallel tests would count the I/O of each other.
const SECTION: &str = "disks";

/// A loop device over a private file.
struct Loop {
    path: String,
    directory: TempDir,
}

impl Loop {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let backing = directory.path().join("disk");
        File::create(&backing).unwrap().set_len(64 << 20).unwrap();
        let path = run(Command::new("losetup").args(["--find", "--show"]).arg(&backing));
        Self { path, directory }
    }

    fn name(&self) -> &str {
        self.path.strip_prefix("/dev/").unwrap()
    }

    fn set_scheduler(&self, name: &str) {
        fs::write(format!("/sys/block/{}/queue/scheduler", self.name()), name).unwrap();
    }

    fn direct(&self) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        options.open(&self.path).unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run(Command::new("losetup").args(["--detach", &self.path]));
    }
}

/// Page-aligned memory, which O_DIRECT needs.
fn buffer(size: usize) -> MmapMut {
    MmapMut::map_anon(size).unwrap()
}

/// Both probes of one recorder, which share their programs.
struct Tables {
    latency: Live,
    size: Live,
}

impl Tables {
    fn open() -> Self {
        let (options, shared) = (Options::default(), Rc::default());
        Self {
            latency: Live::sharing("ebpf_block", &options, &shared),
            size: Live::sharing("ebpf_block_size", &options, &shared),
        }
    }

    fn read(&mut self) -> (Reading, Reading) {
        (self.latency.read(), self.size.read())
    }
}

/// Fields 4 and later of the line of a device in `/proc/diskstats`.
fn diskstats(device: &str) -> Vec<u64> {
    let file = fs::read_to_string("/proc/diskstats").unwrap();
    let mut lines = file
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words[2] == device).unwrap();
    line[3..].iter().map(|word| word.parse().unwrap()).collect()
}

const IN_FLIGHT: usize = 8;

/// Both tables, and the kernel's counters just before and just after they were read.
struct Moment {
    latency: Reading,
    size: Reading,
    before: Vec<u64>,
    after: Vec<u64>,
}

impl Moment {
    fn now(tables: &mut Tables, disk: &str) -> Self {
        let before = diskstats(disk);
        let (latency, size) = tables.read();
        let after = diskstats(disk);
        Self {
            latency,
            size,
            before,
            after,
        }
    }

    /// A moment without I/O on a disk of the test.
    fn at_rest(tables: &mut Tables, disk: &str) -> Self {
        eventually("a moment without I/O", || {
            Some(Self::now(tables, disk)).filter(Self::is_at_rest)
        })
    }

    /// A moment without I/O on the disk, if one of many attempts finds it; a disk with constant I/O
    /// has none.
    fn of(tables: &mut Tables, disk: &str) -> Self {
        let mut moments = (0..2000).map(|_| Self::now(tables, disk));
        let at_rest = moments.find(Self::is_at_rest);
        at_rest.unwrap_or_else(|| Self::now(tables, disk))
    }

    fn is_at_rest(&self) -> bool {
        self.before == self.after && self.after[IN_FLIGHT] == 0
    }
}

/// Repeats a round until all of its requests are counted. The round itself asserts that the count
/// is never higher.
///
/// The kernel skips a program that an interrupt calls while it runs on the same CPU (`prog->active`
/// in kernel/trace/bpf_trace.c): a request can be missed while a request of any disk is counted. On
/// a host with constant I/O that happens in many rounds; a program that counts wrongly misses
/// requests in every round.
fn in_one_round<T>(mut round: impl FnMut() -> Option<T>) -> T {
    (0..100)
        .find_map(|_| round())
        .unwrap_or_else(|| panic!("each of a hundred rounds missed requests"))
}

#[test]
fn exact_numbers_of_reads_writes_flushes_and_discards_are_counted() {
    let _alone = alone(SECTION);
    in_one_round(count_on_a_new_disk);
}

fn count_on_a_new_disk() -> Option<()> {
    let mut tables = Tables::open();
    // The disk is added after the programs were loaded: it has rows from its first request.
    let disk = Loop::new();
    disk.set_scheduler("none");
    let file = disk.direct();
    let before = Moment::at_rest(&mut tables, disk.name());

    let (mut small, mut large) = (buffer(4096), buffer(16384));
    large.fill(b'x');
    for place in 0..23 {
        file.read_exact_at(&mut small, place * 3 * 4096).unwrap();
    }
    for place in 0..17 {
        file.write_all_at(&large, place * 65536).unwrap();
    }
    for _ in 0..11 {
        file.sync_data().unwrap();
    }
    for place in 0..5 {
        let offset = (place * 262_144).to_string();
        let range = ["--offset", &offset, "--length", "131072", &disk.path];
        run(Command::new("blkdiscard").args(range));
    }

    let after = Moment::at_rest(&mut tables, disk.name());
    let name = disk.name();
    let stage = |operation: &str, stage: &str| {
        let entity = format!("{name} {operation} {stage}");
        between(&before.latency, &after.latency, &entity)
    };
    let device = |operation| stage(operation, "device");
    let of_kernel = after.after.iter().zip(&before.after);
    let kernel: Vec<u64> = of_kernel.map(|(after, before)| after - before).collect();
    let mut all = true;
    for (operation, count) in [("read", kernel[0]), ("write", 17), ("flush", 11), ("discard", 5)] {
        let counted = device(operation).count();
        assert!(counted <= count, "{operation}: {counted} of {count}");
        all &= counted == count;
    }
    if !all {
        return None;
    }
    assert_eq!(device("write_fua").count() + device("other").count(), 0);
    let timed = device("flush");
    let smallest = timed.filled()[0].0;
    assert!(
        smallest > 0 && timed["sum_ns"] >= 11 * smallest,
        "a flush takes time: {timed:?}"
    );
    assert_eq!(timed["lost"], 0, "no request was lost");

    let size_of = |operation| between(&before.size, &after.size, &format!("{name} {operation}"));
    for (operation, bytes, count) in [("write", 16384, 17), ("flush", 0, 11), ("discard", 131_072, 5)] {
        let sizes = size_of(operation);
        assert_eq!(
            (sizes.filled(), sizes["sum_bytes"]),
            (vec![(bytes, count)], count * bytes)
        );
    }
    // blkdiscard reads the first sectors of the device through the page cache, to look for a file
    // system.
    let reads = size_of("read");
    assert!(
        reads
            .filled()
            .iter()
            .any(|(lower, count)| *lower == 4096 && *count >= 23),
        "{reads:?}"
    );
    assert_eq!((reads.count(), reads["sum_bytes"] / 512), (kernel[0], kernel[2]));

    // Without a scheduler a request is issued directly (discards go through the list of a plug).
    for operation in ["read", "write", "flush"] {
        assert_eq!(stage(operation, "queue").count(), 0, "{operation}");
    }
    Some(())
}

#[test]
fn requests_wait_in_the_queue_of_a_scheduler() {
    let _alone = alone(SECTION);
    in_one_round(through_a_queue);
}

fn through_a_queue() -> Option<()> {
    let disk = Loop::new();
    disk.set_scheduler("mq-deadline");
    let mut tables = Tables::open();
    let file = disk.direct();
    let before = Moment::at_rest(&mut tables, disk.name());
    let mut page = buffer(4096);
    for place in 0..23 {
        file.read_exact_at(&mut page, place * 2 * 4096).unwrap();
    }
    for place in 0..7 {
        file.write_all_at(&page, place * 4096).unwrap();
        file.sync_data().unwrap();
    }
    let after = Moment::at_rest(&mut tables, disk.name());
    let count = |what: &str| {
        between(
            &before.latency,
            &after.latency,
            &format!("{} {what}", disk.name()),
        )
        .count()
    };
    // udev also reads from a new disk.
    let reads = after.after[0] - before.after[0];
    assert!(reads >= 23);
    // A flush bypasses the scheduler.
    let mut all = true;
    for (what, expected) in [
        ("read queue", reads),
        ("read device", reads),
        ("write queue", 7),
        ("write device", 7),
        ("flush queue", 0),
        ("flush device", 7),
    ] {
        let counted = count(what);
        assert!(counted <= expected, "{what}: {counted} of {expected}");
        all &= counted == expected;
    }
    all.then_some(())
}

#[test]
fn fsyncs_of_a_file_system_are_flushes_of_its_disk() {
    let _alone = alone(SECTION);
    let disk = Loop::new();
    // Prevents other writes by the kernel during the test: neither tables nor, every five seconds,
    // a commit.
    let at_once = "lazy_itable_init=0,lazy_journal_init=0";
    run(Command::new("mkfs.ext4").args(["-q", "-E", at_once, &disk.path]));
    let mount = disk.directory.path().join("mount");
    fs::create_dir(&mount).unwrap();
    run(Command::new("mount")
        .args(["-o", "noatime,commit=3600", &disk.path])
        .arg(&mount));
    let mut tables = Tables::open();
    let counted = in_one_round(|| fsyncs(&mut tables, disk.name(), &mount));
    run(Command::new("umount").arg(&mount));
    // The commit record needs a flush before it and FUA, which on a device without FUA is a second
    // flush.
    assert_eq!(counted.flush + counted.write_fua, 2 * 23, "{counted:?}");
}

#[test]
fn requests_of_a_real_disk_equal_the_counters_of_the_kernel() {
    let _alone = alone(SECTION);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut tables = Tables::open();
    let counted = in_one_round(|| fsyncs(&mut tables, &disk_of(directory), directory));
    assert!(counted.flush >= 23, "{counted:?}");
}

/// The whole disk of a directory.
fn disk_of(directory: &Path) -> String {
    let dev = fs::metadata(directory).unwrap().st_dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(dev), libc::minor(dev));
    let mut path: PathBuf = fs::canonicalize(&link).unwrap_or_else(|error| {
        panic!("{link}: {error}; the build's directory must be on a disk");
    });
    if path.join("partition").exists() {
        path.pop();
    }
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[derive(Debug)]
struct Counted {
    flush: u64,
    write_fua: u64,
}

/// Requests that complete on other CPUs while the tables are read can be counted by the probe and
/// not yet by the kernel: the maximum number, and the maximum of sectors in each
/// (BLK_MAX_SEGMENT_SIZE and all queue limits are far lower).
const ENDING: u64 = 64;
const SECTORS: u64 = 1 << 16;

/// The minimum and the maximum that the kernel counted between two moments; equal if the disk was
/// idle at both.
fn counted(first: &Moment, last: &Moment, field: usize, unit: u64) -> RangeInclusive<u64> {
    let slack = if first.is_at_rest() && last.is_at_rest() {
        0
    } else {
        ENDING * unit
    };
    let least = last.before[field]
        .saturating_sub(first.after[field])
        .saturating_sub(slack);
    least..=last.after[field] - first.before[field] + slack
}

/// Syncs a file 23 times and compares the result with the kernel's counters in the same time, which
/// include all other users of the disk. `None` if the probe counted fewer.
fn fsyncs(tables: &mut Tables, disk: &str, directory: &Path) -> Option<Counted> {
    let mut file = tempfile::tempfile_in(directory).unwrap();
    let first = Moment::of(tables, disk);
    for _ in 0..23 {
        file.write_all(b"a line of a log\n").unwrap();
        file.sync_all().unwrap();
    }
    let last = Moment::of(tables, disk);
    let device = |operation: &str| {
        let entity = format!("{disk} {operation} device");
        between(&first.latency, &last.latency, &entity).count()
    };
    let sectors = |operation: &str| {
        let entity = format!("{disk} {operation}");
        between(&first.size, &last.size, &entity)["sum_bytes"] / 512
    };
    let requests = |field| counted(&first, &last, field, 1);
    let (writes, flushes) = (["write", "write_fua", "other"].map(device), device("flush"));
    for (counted_here, field, unit) in [
        (device("read"), 0, 1),
        (device("discard"), 11, 1),
        (flushes, 15, 1),
        (sectors("read"), 2, SECTORS),
        (
            sectors("write") + sectors("write_fua") + sectors("other"),
            6,
            SECTORS,
        ),
        (sectors("discard"), 13, SECTORS),
    ] {
        let kernel = counted(&first, &last, field, unit);
        assert!(
            counted_here <= *kernel.end(),
            "field {field}: {counted_here} of {kernel:?}"
        );
        if counted_here < *kernel.start() {
            return None;
        }
    }
    // The kernel also counts each empty request that asks for a flush as a write; the device gets
    // none of them.
    let (written, kernel) = (writes.iter().sum::<u64>(), requests(4));
    assert!(written <= *kernel.end(), "{writes:?}, {kernel:?}, {flushes:?}");
    (written >= 23).then_some(Counted {
        flush: flushes,
        write_fua: writes[1],
    })
}

#[test]
fn devices_beyond_the_limit_share_a_row() {
    let _alone = alone(SECTION);
    let mut tables = Tables::open();
    // More than the spare numbers after the disks that were in use when the programs were loaded.
    let disks: Vec<_> = (0..12).map(|_| Loop::new()).collect();
    let (before, _) = tables.read();
    let mut page = buffer(4096);
    for disk in &disks {
        disk.direct().read_exact_at(&mut page, 0).unwrap();
    }
    let (after, _) = tables.read();
    let reads = |name: &str| between(&before, &after, &format!("{name} read device")).count();
    let named: Vec<u64> = disks.iter().map(|disk| reads(disk.name())).collect();
    let by_name = named.iter().filter(|reads| **reads > 0).count() as u64;
    let shared = reads("other");
    // udev also reads from a new disk, and other disks can share the row.
    assert!(shared >= 12 - by_name, "{named:?} by name, {shared} together");
    assert!((1..12).contains(&by_name), "{named:?} by name, {shared} together");
}
