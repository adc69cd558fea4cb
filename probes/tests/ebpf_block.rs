//! Block I/O that is counted beforehand, on devices nobody else uses, and beside the kernel's own counts. Needs root.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

mod common;

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;

use common::live::Histogram;
use common::live::Live;
use common::live::Reading;
use common::live::between;
use common::live::eventually;
use loadprint_probes::Options;
use loadprint_recording::histogram::subtract;
use memmap2::MmapMut;
use tempfile::TempDir;

/// Devices beyond the bound share a row: two tests at once would count each other's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What a command printed; it must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A loop device over a file of its own.
struct Loop {
    path: String,
    directory: TempDir,
}

impl Loop {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let backing = directory.path().join("disk");
        File::create(&backing).unwrap().set_len(64 << 20).unwrap();
        let path = run("losetup", &["--find", "--show", backing.to_str().unwrap()]);
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
        run("losetup", &["--detach", &self.path]);
    }
}

/// Page-aligned memory, as O_DIRECT wants it.
fn buffer(size: usize) -> MmapMut {
    MmapMut::map_anon(size).unwrap()
}

/// Both tables of one recorder: they share their programs.
struct Tables {
    latency: Live,
    size: Live,
}

impl Tables {
    fn open() -> Self {
        let options = Options::default();
        Self {
            latency: Live::open("ebpf_block", &options),
            size: Live::open("ebpf_block_size", &options),
        }
    }

    fn read(&mut self) -> (Reading, Reading) {
        (self.latency.read(), self.size.read())
    }
}

/// Fields 4 and later of a device's line in `/proc/diskstats`.
fn diskstats(device: &str) -> Vec<u64> {
    let file = fs::read_to_string("/proc/diskstats").unwrap();
    let mut lines = file
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words[2] == device).unwrap();
    line[3..].iter().map(|word| word.parse().unwrap()).collect()
}

const IN_FLIGHT: usize = 8;

/// Both tables and the kernel's counts, of an instant at which nothing is under way: the counts before and after are the same.
fn at_rest(tables: &mut Tables, device: &str) -> ((Reading, Reading), Vec<u64>) {
    eventually("a moment without I/O", || {
        let before = diskstats(device);
        let readings = tables.read();
        let after = diskstats(device);
        (before == after && after[IN_FLIGHT] == 0).then_some((readings, after))
    })
}

#[test]
fn so_many_reads_writes_flushes_and_discards_are_counted_and_no_more() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tables = Tables::open();
    // The disk comes after the programs: it has rows from its first request on.
    let disk = Loop::new();
    disk.set_scheduler("none");
    let file = disk.direct();
    let ((latency_before, size_before), kernel_before) = at_rest(&mut tables, disk.name());

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
        run(
            "blkdiscard",
            &["--offset", &offset, "--length", "131072", &disk.path],
        );
    }

    let ((latency, size), kernel) = at_rest(&mut tables, disk.name());
    let name = disk.name();
    let device = |operation| {
        let entity = format!("{name} {operation} device");
        between(&latency_before, &latency, &entity)
    };
    assert_eq!(device("write").count(), 17);
    assert_eq!(device("flush").count(), 11);
    assert_eq!(device("discard").count(), 5);
    assert_eq!(device("write_fua").count() + device("other").count(), 0);
    let timed = device("flush");
    let smallest = timed.filled()[0].0;
    assert!(
        smallest > 0 && timed.sum >= 11 * smallest,
        "a flush takes time: {timed:?}"
    );
    assert_eq!(timed.others, [0], "none was lost");

    let size_of = |operation| between(&size_before, &size, &format!("{name} {operation}"));
    assert_eq!(
        (size_of("write").filled(), size_of("write").sum),
        (vec![(16384, 17)], 17 * 16384)
    );
    assert_eq!(
        (size_of("flush").filled(), size_of("flush").sum),
        (vec![(0, 11)], 0)
    );
    assert_eq!(
        (size_of("discard").filled(), size_of("discard").sum),
        (vec![(131_072, 5)], 5 * 131_072)
    );
    // blkdiscard looks at the device's first sectors for a file system: through the page cache, and none of these are ours.
    let reads = size_of("read");
    assert!(
        reads
            .filled()
            .iter()
            .any(|(lower, count)| *lower == 4096 && *count >= 23),
        "{reads:?}"
    );
    let kernel = subtract(&kernel, &kernel_before);
    assert_eq!((reads.count(), reads.sum / 512), (kernel[0], kernel[2]));

    // Without a scheduler a request goes straight to the driver (discards come through the list of a plug).
    for operation in ["read", "write", "flush"] {
        let queue = between(&latency_before, &latency, &format!("{name} {operation} queue"));
        assert_eq!(queue.count(), 0, "{operation}");
    }
}

#[test]
fn a_scheduler_s_requests_wait_in_its_queue() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let disk = Loop::new();
    disk.set_scheduler("mq-deadline");
    let mut tables = Tables::open();
    let file = disk.direct();
    let ((before, _), _) = at_rest(&mut tables, disk.name());
    let mut page = buffer(4096);
    for place in 0..23 {
        file.read_exact_at(&mut page, place * 2 * 4096).unwrap();
    }
    for place in 0..7 {
        file.write_all_at(&page, place * 4096).unwrap();
        file.sync_data().unwrap();
    }
    let ((after, _), _) = at_rest(&mut tables, disk.name());
    let count = |what: &str| between(&before, &after, &format!("{} {what}", disk.name())).count();
    assert_eq!((count("read queue"), count("read device")), (23, 23));
    assert_eq!((count("write queue"), count("write device")), (7, 7));
    // A flush passes by the scheduler.
    assert_eq!((count("flush queue"), count("flush device")), (0, 7));
}

#[test]
fn a_file_system_s_fsyncs_are_flushes_of_its_disk() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let disk = Loop::new();
    run("mkfs.ext4", &["-q", &disk.path]);
    let mount = disk.directory.path().join("mount");
    fs::create_dir(&mount).unwrap();
    run("mount", &[&disk.path, mount.to_str().unwrap()]);
    let mut tables = Tables::open();
    let counted = fsyncs(&mut tables, disk.name(), &mount);
    run("umount", &[mount.to_str().unwrap()]);
    // A commit's record asks for a flush before it and to be durable itself, which on a device without FUA is a second flush.
    assert_eq!(counted.flush + counted.write_fua, 2 * 23, "{counted:?}");
}

#[test]
fn the_real_disk_s_requests_are_those_that_the_kernel_counts() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut tables = Tables::open();
    let counted = fsyncs(&mut tables, &disk_of(directory), directory);
    assert!(counted.flush >= 23, "{counted:?}");
}

/// The whole disk below a directory.
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

/// Syncs a file 23 times, and compares with the kernel's own counts over the same time, whoever else used the disk.
fn fsyncs(tables: &mut Tables, disk: &str, directory: &Path) -> Counted {
    let mut file = tempfile::tempfile_in(directory).unwrap();
    let ((latency_before, size_before), kernel_before) = at_rest(tables, disk);
    for _ in 0..23 {
        file.write_all(b"a line of a log\n").unwrap();
        file.sync_all().unwrap();
    }
    let ((latency, size), kernel) = at_rest(tables, disk);
    let kernel = subtract(&kernel, &kernel_before);
    let device = |operation: &str| -> Histogram {
        between(&latency_before, &latency, &format!("{disk} {operation} device"))
    };
    let sectors = |operation: &str| between(&size_before, &size, &format!("{disk} {operation}")).sum / 512;
    let (writes, flushes) = (
        ["write", "write_fua", "other"].map(|operation| device(operation).count()),
        device("flush"),
    );
    assert_eq!(device("read").count(), kernel[0]);
    assert_eq!(device("discard").count(), kernel[11]);
    assert_eq!(flushes.count(), kernel[15]);
    assert_eq!(sectors("read"), kernel[2]);
    assert_eq!(
        sectors("write") + sectors("write_fua") + sectors("other"),
        kernel[6]
    );
    assert_eq!(sectors("discard"), kernel[13]);
    // The kernel also counts, as a write, each empty request by which a flush is asked for; the device sees none of them.
    let written: u64 = writes.iter().sum();
    assert!(
        written <= kernel[4] && written >= 23,
        "{writes:?}, {kernel:?}, {flushes:?}"
    );
    Counted {
        flush: flushes.count(),
        write_fua: writes[1],
    }
}

#[test]
fn devices_beyond_the_bound_share_a_row() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tables = Tables::open();
    // More than there is room for besides the disks in use when the programs were loaded.
    let disks: Vec<_> = (0..12).map(|_| Loop::new()).collect();
    let (before, _) = tables.read();
    let mut page = buffer(4096);
    for disk in &disks {
        disk.direct().read_exact_at(&mut page, 0).unwrap();
    }
    let (after, _) = tables.read();
    let reads = |name: &str| between(&before, &after, &format!("{name} read device")).count();
    let named: u64 = disks.iter().map(|disk| reads(disk.name())).sum();
    let shared = reads("other");
    assert_eq!(named + shared, 12);
    assert!(named >= 1 && shared >= 1, "{named} by name, {shared} together");
}
