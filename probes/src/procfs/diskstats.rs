//! Reads `/proc/diskstats`: reads, writes, discards and flushes per block device, time in flight
//! and queue.
//!
//! It records whole devices, device mapper and md, but no partitions: their I/O counts for their
//! disk. RAM and loop devices without any I/O are left out. A time counts on completion:
//! requests in flight are not included.

use std::collections::HashMap;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::MOUNT_PROC;
use super::fields::each_line;
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
    "disk",
    "reads, writes, discards and flushes per block device",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("device")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const FIELDS: usize = 17;
/// The number of fields before Linux 4.18; versions before 5.5 print four more.
const FIELDS_AT_LEAST: usize = 11;

static COLUMNS: &[Column] = &[
    Column::counter("reads", Unit::One, "reads completed", "/proc/diskstats field 4"),
    Column::counter(
        "read_merges",
        Unit::One,
        "reads merged before they were queued",
        "/proc/diskstats field 5",
    ),
    Column::counter("read_sectors", Unit::Sector, "read", "/proc/diskstats field 6"),
    Column::counter(
        "read_ms",
        Unit::Millisecond,
        "time of all reads",
        "/proc/diskstats field 7",
    )
    .lower(),
    Column::counter("writes", Unit::One, "writes completed", "/proc/diskstats field 8"),
    Column::counter(
        "write_merges",
        Unit::One,
        "writes merged before they were queued",
        "/proc/diskstats field 9",
    ),
    Column::counter(
        "write_sectors",
        Unit::Sector,
        "written",
        "/proc/diskstats field 10",
    ),
    Column::counter(
        "write_ms",
        Unit::Millisecond,
        "time of all writes",
        "/proc/diskstats field 11",
    )
    .lower(),
    Column::gauge(
        "in_flight",
        Unit::One,
        "requests in flight",
        "/proc/diskstats field 12",
    ),
    Column::counter(
        "io_ms",
        Unit::Millisecond,
        "time with a request in flight",
        "/proc/diskstats field 13",
    ),
    Column::counter(
        "weighted_ms",
        Unit::Millisecond,
        "time in flight, summed over requests",
        "/proc/diskstats field 14",
    )
    .lower(),
    Column::counter(
        "discards",
        Unit::One,
        "discards completed",
        "/proc/diskstats field 15, Linux 4.18",
    ),
    Column::counter(
        "discard_merges",
        Unit::One,
        "discards merged",
        "/proc/diskstats field 16, Linux 4.18",
    ),
    Column::counter(
        "discard_sectors",
        Unit::Sector,
        "discarded",
        "/proc/diskstats field 17, Linux 4.18",
    ),
    Column::counter(
        "discard_ms",
        Unit::Millisecond,
        "time of all discards",
        "/proc/diskstats field 18, Linux 4.18",
    ),
    Column::counter(
        "flushes",
        Unit::One,
        "flushes that reached the device",
        "/proc/diskstats field 19, Linux 5.5",
    ),
    Column::counter(
        "flush_ms",
        Unit::Millisecond,
        "time of all flushes",
        "/proc/diskstats field 20, Linux 5.5",
    )
    .lower(),
];

#[derive(Debug)]
struct Disk {
    file: Source,
    host: Host,
    /// Known names, and whether they are partitions.
    known: HashMap<Vec<u8>, bool>,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("diskstats", MOUNT_PROC)?;
    Ok(Box::new(Disk {
        file,
        host: host.clone(),
        known: HashMap::new(),
    }))
}

impl Probe for Disk {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let Self { file, host, known } = self;
        let wanted = |name: &[u8]| !is_partition(name, host, known);
        file.parse(|text| parse(text, wanted, rows))
    }
}

/// Whether a device is a partition: it then has a file `partition` in sysfs, which is looked up
/// once. Without sysfs all are devices.
fn is_partition(name: &[u8], host: &Host, known: &mut HashMap<Vec<u8>, bool>) -> bool {
    if let Some(&known) = known.get(name) {
        return known;
    }
    // sysfs has `!` in place of `/` in the name of a device (cciss!c0d0).
    let file = String::from_utf8_lossy(name).replace('/', "!");
    let partition = host.sys(&format!("class/block/{file}/partition")).exists();
    known.insert(name.to_vec(), partition);
    partition
}

/// Parses `/proc/diskstats` (Documentation/admin-guide/iostats.rst); leaves out devices that
/// `wanted` refuses.
///
/// ```text
///  254       0 vda 152238 32674 9375858 81711 62958 91358 9090536 33473 0 21216 118363 32486 22 2534392 2772 11565 405
/// ```
///
/// # Errors
/// When a line has fewer fields than the oldest format or a field is not a number.
pub fn parse(file: &[u8], mut wanted: impl FnMut(&[u8]) -> bool, rows: &mut Rows) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if cursor.uint("major")?.is_some() {
            cursor.need_uint("minor")?;
            let name = cursor
                .word()
                .ok_or_else(|| cursor.error("name", "the line ends before it"))?;
            let mut fields = [None; FIELDS];
            for (index, field) in fields.iter_mut().enumerate() {
                *field = cursor.uint("field")?;
                if field.is_none() && index < FIELDS_AT_LEAST {
                    return Err(cursor.error("field", format!("the line ends after {index} of 11 fields")));
                }
            }
            let idle = || fields.iter().all(|field| field.unwrap_or(0) == 0);
            let memory = name.starts_with(b"loop") || name.starts_with(b"ram");
            if !(memory && idle()) && wanted(name) {
                rows.row(&[name]);
                fields.iter().for_each(|field| rows.uint_or_null(*field));
            }
        }
        Ok(())
    })
}
