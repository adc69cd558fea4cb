//! Reads `/proc/meminfo`: memory by use, dirty and written-back pages, huge pages. Every line is a
//! metric.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Unit;

use super::MOUNT_PROC;
use super::fields::each_line;
use super::fields::empty;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::host::ParseError;
use crate::host::Source;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "memory",
    "memory by use, dirty pages, write-back, huge pages",
    &SCHEMA,
    open,
);

static SCHEMA: Schema = Schema::metrics(METRICS);

const fn size(name: &'static str, help: &'static str) -> Column {
    Column::gauge(name, Unit::Kibibyte, help, "/proc/meminfo")
}

const fn pages(name: &'static str, help: &'static str) -> Column {
    Column::gauge(name, Unit::One, help, "/proc/meminfo")
}

static METRICS: &[Column] = &[
    size("MemTotal", "usable memory"),
    size("MemFree", "unused"),
    size(
        "MemAvailable",
        "the kernel's estimate of the memory that is available without swapping",
    )
    .higher(),
    size("Buffers", "page cache of block devices"),
    size("Cached", "page cache of files, shared memory included"),
    size("Active", "used recently"),
    size("Inactive", "reclaimed first"),
    size("Unevictable", "cannot be reclaimed"),
    size("Mlocked", "locked by mlock"),
    size("SwapTotal", "swap space"),
    size("SwapFree", "swap space unused"),
    size("Dirty", "waiting to be written back"),
    size("Writeback", "being written back"),
    size("AnonPages", "anonymous and mapped"),
    size("Mapped", "files mapped"),
    size("Shmem", "shared memory and tmpfs"),
    size("Slab", "kernel objects"),
    size("SReclaimable", "kernel objects, reclaimable"),
    size("SUnreclaim", "kernel objects, not reclaimable"),
    size("KernelStack", "kernel stacks"),
    size("PageTables", "page tables"),
    size("CommitLimit", "memory that can be committed"),
    size("Committed_AS", "memory that is committed"),
    size("Percpu", "per-CPU data"),
    size("AnonHugePages", "anonymous memory in huge pages"),
    pages("HugePages_Total", "huge pages in the pool"),
    pages("HugePages_Free", "huge pages unused"),
    pages("HugePages_Rsvd", "huge pages reserved"),
    pages("HugePages_Surp", "huge pages beyond the pool"),
    size("Hugepagesize", "size of a huge page"),
    size("Hugetlb", "in huge pages of all sizes"),
];

#[derive(Debug)]
struct Memory {
    file: Source,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Memory {
        file: host.source("meminfo", MOUNT_PROC)?.in_one_read(),
    }))
}

impl Probe for Memory {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.file.parse(|text| parse(text, rows))
    }
}

/// Parses `/proc/meminfo` (proc_meminfo(5), `fs/proc/meminfo.c`).
///
/// ```text
/// MemTotal:       24684084 kB
/// HugePages_Total:       0
/// ```
///
/// # Errors
/// When a line has no number, or the file is empty.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if let Some(name) = cursor.until(b':') {
            rows.row(&[name]);
            rows.int(cursor.need_int("value")?);
        }
        Ok(())
    })?;
    if rows.is_empty() {
        Err(empty("MemTotal"))
    } else {
        Ok(())
    }
}
