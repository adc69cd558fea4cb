//! Reads `/proc/meminfo` (memory by use, dirty and written-back pages, huge pages) and `/proc/vmstat`
//! (faults, paging, reclaim, compaction, NUMA). Every line is a metric.
//!
//! The kernel counts `/proc/vmstat` per CPU and adds to these totals once a second, so its values can
//! be up to a second old.

use super::fields;
use crate::prelude::*;

/// The line of `memory` in the registry.
pub const MEMORY_ENTRY: ProbeEntry = ProbeEntry::new(
    "memory",
    "memory by use, dirty pages, write-back, huge pages",
    &MEMORY_SCHEMA,
    open_meminfo,
);

/// The line of `vmstat` in the registry.
pub const VMSTAT_ENTRY: ProbeEntry = ProbeEntry::new(
    "vmstat",
    "page faults, paging, reclaim, compaction, NUMA",
    &VMSTAT_SCHEMA,
    open_vmstat,
);

static MEMORY_SCHEMA: Schema = Schema::metrics(MEMORY_METRICS);
static VMSTAT_SCHEMA: Schema = Schema::metrics(VMSTAT_METRICS);

const MEMINFO: &str = "/proc/meminfo";
const VMSTAT: &str = "/proc/vmstat";

static MEMORY_METRICS: &[Column] = columns! {
    gauge(Kibibyte) "MemTotal", "usable memory", MEMINFO;
    gauge(Kibibyte) "MemFree", "unused", MEMINFO;
    gauge(Kibibyte) "MemAvailable",
        "the kernel's estimate of the memory that is available without swapping", MEMINFO, higher;
    gauge(Kibibyte) "Buffers", "page cache of block devices", MEMINFO;
    gauge(Kibibyte) "Cached", "page cache of files, shared memory included", MEMINFO;
    gauge(Kibibyte) "Active", "used recently", MEMINFO;
    gauge(Kibibyte) "Inactive", "reclaimed first", MEMINFO;
    gauge(Kibibyte) "Unevictable", "cannot be reclaimed", MEMINFO;
    gauge(Kibibyte) "Mlocked", "locked by mlock", MEMINFO;
    gauge(Kibibyte) "SwapTotal", "swap space", MEMINFO;
    gauge(Kibibyte) "SwapFree", "swap space unused", MEMINFO;
    gauge(Kibibyte) "Dirty", "waiting to be written back", MEMINFO;
    gauge(Kibibyte) "Writeback", "being written back", MEMINFO;
    gauge(Kibibyte) "AnonPages", "anonymous and mapped", MEMINFO;
    gauge(Kibibyte) "Mapped", "files mapped", MEMINFO;
    gauge(Kibibyte) "Shmem", "shared memory and tmpfs", MEMINFO;
    gauge(Kibibyte) "Slab", "kernel objects", MEMINFO;
    gauge(Kibibyte) "SReclaimable", "kernel objects, reclaimable", MEMINFO;
    gauge(Kibibyte) "SUnreclaim", "kernel objects, not reclaimable", MEMINFO;
    gauge(Kibibyte) "KernelStack", "kernel stacks", MEMINFO;
    gauge(Kibibyte) "PageTables", "page tables", MEMINFO;
    gauge(Kibibyte) "CommitLimit", "memory that can be committed", MEMINFO;
    gauge(Kibibyte) "Committed_AS", "memory that is committed", MEMINFO;
    gauge(Kibibyte) "Percpu", "per-CPU data", MEMINFO;
    gauge(Kibibyte) "AnonHugePages", "anonymous memory in huge pages", MEMINFO;
    gauge(One) "HugePages_Total", "huge pages in the pool", MEMINFO;
    gauge(One) "HugePages_Free", "huge pages unused", MEMINFO;
    gauge(One) "HugePages_Rsvd", "huge pages reserved", MEMINFO;
    gauge(One) "HugePages_Surp", "huge pages beyond the pool", MEMINFO;
    gauge(Kibibyte) "Hugepagesize", "size of a huge page", MEMINFO;
    gauge(Kibibyte) "Hugetlb", "in huge pages of all sizes", MEMINFO;
};

static VMSTAT_METRICS: &[Column] = columns! {
    gauge(Page) "nr_free_pages", "unused", VMSTAT;
    gauge(Page) "nr_dirty", "waiting to be written back", VMSTAT;
    gauge(Page) "nr_writeback", "being written back", VMSTAT;
    gauge(Page) "nr_dirty_threshold", "dirty pages at which writers are throttled", VMSTAT;
    gauge(Page) "nr_dirty_background_threshold", "dirty pages at which write-back starts", VMSTAT;
    gauge(Page) "nr_file_pages", "page cache", VMSTAT;
    gauge(Page) "nr_anon_pages", "anonymous and mapped", VMSTAT;
    gauge(Page) "nr_mapped", "files mapped", VMSTAT;
    gauge(Page) "nr_shmem", "shared memory and tmpfs", VMSTAT;
    counter(Page) "nr_dirtied", "pages that became dirty", VMSTAT;
    counter(Page) "nr_written", "pages written back", VMSTAT;
    counter(Kibibyte) "pgpgin", "read from block devices", VMSTAT;
    counter(Kibibyte) "pgpgout", "written to block devices", VMSTAT;
    counter(Page) "pswpin", "swapped in", VMSTAT, lower;
    counter(Page) "pswpout", "swapped out", VMSTAT, lower;
    counter(One) "pgfault", "page faults", VMSTAT;
    counter(One) "pgmajfault", "page faults that needed I/O", VMSTAT;
    counter(Page) "pgfree", "freed", VMSTAT;
    counter(Page) "pgsteal_kswapd", "reclaimed in the background", VMSTAT;
    counter(Page) "pgsteal_direct", "reclaimed directly by the allocating task", VMSTAT, lower;
    counter(Page) "pgscan_kswapd", "scanned in the background", VMSTAT;
    counter(Page) "pgscan_direct", "scanned directly by the allocating task", VMSTAT, lower;
    counter(One) "allocstall_normal", "allocations that had to reclaim", VMSTAT, lower;
    counter(One) "compact_stall", "allocations that had to compact", VMSTAT, lower;
    counter(One) "oom_kill", "processes killed for lack of memory", VMSTAT, lower;
    counter(Page) "numa_hit", "allocated on the intended node", VMSTAT;
    counter(Page) "numa_miss", "allocated here, intended for another node", VMSTAT, lower;
    counter(Page) "numa_foreign", "intended for this node, allocated elsewhere", VMSTAT, lower;
    counter(Page) "numa_local", "allocated on the task's node", VMSTAT;
    counter(Page) "numa_other", "allocated on another node", VMSTAT, lower;
    counter(Page) "numa_pages_migrated", "migrated between nodes", VMSTAT;
    counter(One) "thp_fault_alloc", "huge pages allocated at a fault", VMSTAT;
    counter(One) "thp_fault_fallback", "faults that did not get a huge page", VMSTAT;
    counter(One) "thp_collapse_alloc", "huge pages collapsed by khugepaged", VMSTAT;
    counter(One) "thp_split_page", "huge pages split", VMSTAT;
};

fn open_meminfo(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("meminfo", MOUNT_PROC)?.in_one_read();
    Ok(Box::new(Files::default().with(file, parse_meminfo)))
}

fn open_vmstat(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("vmstat", MOUNT_PROC)?;
    Ok(Box::new(Files::default().with(file, parse_vmstat)))
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
pub fn parse_meminfo(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    fields::metrics(file, "MemTotal", rows)
}

/// Parses `/proc/vmstat` (`mm/vmstat.c`).
///
/// ```text
/// nr_free_pages 5423651
/// pgfault 1198321
/// ```
///
/// # Errors
/// When a line has no number, or the file is empty.
pub fn parse_vmstat(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    fields::metrics(file, "nr_free_pages", rows)
}
