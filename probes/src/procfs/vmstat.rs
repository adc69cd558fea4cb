//! Reads `/proc/vmstat`: faults, paging, reclaim, compaction, NUMA. Every line is a metric.
//!
//! The kernel counts per CPU and adds to these totals once a second, so values can be up to a
//! second old.

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
    "vmstat",
    "page faults, paging, reclaim, compaction, NUMA",
    &SCHEMA,
    open,
);

static SCHEMA: Schema = Schema::metrics(METRICS);

const fn pages(name: &'static str, help: &'static str) -> Column {
    Column::gauge(name, Unit::Page, help, "/proc/vmstat")
}

const fn count(name: &'static str, unit: Unit, help: &'static str) -> Column {
    Column::counter(name, unit, help, "/proc/vmstat")
}

static METRICS: &[Column] = &[
    pages("nr_free_pages", "unused"),
    pages("nr_dirty", "waiting to be written back"),
    pages("nr_writeback", "being written back"),
    pages("nr_dirty_threshold", "dirty pages at which writers are throttled"),
    pages(
        "nr_dirty_background_threshold",
        "dirty pages at which write-back starts",
    ),
    pages("nr_file_pages", "page cache"),
    pages("nr_anon_pages", "anonymous and mapped"),
    pages("nr_mapped", "files mapped"),
    pages("nr_shmem", "shared memory and tmpfs"),
    count("nr_dirtied", Unit::Page, "pages that became dirty"),
    count("nr_written", Unit::Page, "pages written back"),
    count("pgpgin", Unit::Kibibyte, "read from block devices"),
    count("pgpgout", Unit::Kibibyte, "written to block devices"),
    count("pswpin", Unit::Page, "swapped in").lower(),
    count("pswpout", Unit::Page, "swapped out").lower(),
    count("pgfault", Unit::One, "page faults"),
    count("pgmajfault", Unit::One, "page faults that needed I/O"),
    count("pgfree", Unit::Page, "freed"),
    count("pgsteal_kswapd", Unit::Page, "reclaimed in the background"),
    count(
        "pgsteal_direct",
        Unit::Page,
        "reclaimed directly by the allocating task",
    )
    .lower(),
    count("pgscan_kswapd", Unit::Page, "scanned in the background"),
    count(
        "pgscan_direct",
        Unit::Page,
        "scanned directly by the allocating task",
    )
    .lower(),
    count("allocstall_normal", Unit::One, "allocations that had to reclaim").lower(),
    count("compact_stall", Unit::One, "allocations that had to compact").lower(),
    count("oom_kill", Unit::One, "processes killed for lack of memory").lower(),
    count("numa_hit", Unit::Page, "allocated on the intended node"),
    count(
        "numa_miss",
        Unit::Page,
        "allocated here, intended for another node",
    )
    .lower(),
    count(
        "numa_foreign",
        Unit::Page,
        "intended for this node, allocated elsewhere",
    )
    .lower(),
    count("numa_local", Unit::Page, "allocated on the task's node"),
    count("numa_other", Unit::Page, "allocated on another node").lower(),
    count("numa_pages_migrated", Unit::Page, "migrated between nodes"),
    count("thp_fault_alloc", Unit::One, "huge pages allocated at a fault"),
    count(
        "thp_fault_fallback",
        Unit::One,
        "faults that did not get a huge page",
    ),
    count(
        "thp_collapse_alloc",
        Unit::One,
        "huge pages collapsed by khugepaged",
    ),
    count("thp_split_page", Unit::One, "huge pages split"),
];

#[derive(Debug)]
struct Vmstat {
    file: Source,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Vmstat {
        // A record is a name and a number.
        file: host.source("vmstat", MOUNT_PROC)?.records_below(128),
    }))
}

impl Probe for Vmstat {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.file.parse(|text| parse(text, rows))
    }
}

/// Parses `/proc/vmstat` (`mm/vmstat.c`): a name and a number per line.
///
/// ```text
/// nr_free_pages 5423651
/// pgfault 1198321
/// ```
///
/// # Errors
/// When a line has no number, or the file is empty.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if let Some(name) = cursor.word() {
            rows.row(&[name]);
            rows.int(cursor.need_int("value")?);
        }
        Ok(())
    })?;
    if rows.is_empty() {
        Err(empty("nr_free_pages"))
    } else {
        Ok(())
    }
}
