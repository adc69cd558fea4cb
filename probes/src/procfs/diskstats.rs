//! Reads `/proc/diskstats`: reads, writes, discards and flushes per block device, time in flight
//! and queue.
//!
//! It records whole devices, device mapper and md, but no partitions: their I/O counts for their
//! disk. RAM and loop devices without any I/O are left out. A time counts on completion:
//! requests in flight are not included.

use std::collections::HashMap;

use crate::prelude::*;

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

static COLUMNS: &[Column] = columns! {
    counter(One) "reads", "reads completed", "/proc/diskstats field 4";
    counter(One) "read_merges", "reads merged before they were queued", "/proc/diskstats field 5";
    counter(Sector) "read_sectors", "read", "/proc/diskstats field 6";
    counter(Millisecond) "read_ms", "time of all reads", "/proc/diskstats field 7", lower, bits(32);
    counter(One) "writes", "writes completed", "/proc/diskstats field 8";
    counter(One) "write_merges", "writes merged before they were queued", "/proc/diskstats field 9";
    counter(Sector) "write_sectors", "written", "/proc/diskstats field 10";
    counter(Millisecond) "write_ms", "time of all writes", "/proc/diskstats field 11", lower, bits(32);
    gauge(One) "in_flight", "requests in flight", "/proc/diskstats field 12";
    counter(Millisecond) "io_ms", "time with a request in flight", "/proc/diskstats field 13", bits(32);
    counter(Millisecond) "weighted_ms",
        "time in flight, summed over requests", "/proc/diskstats field 14", lower, bits(32);
    counter(One) "discards", "discards completed", "/proc/diskstats field 15, Linux 4.18";
    counter(One) "discard_merges", "discards merged", "/proc/diskstats field 16, Linux 4.18";
    counter(Sector) "discard_sectors", "discarded", "/proc/diskstats field 17, Linux 4.18";
    counter(Millisecond) "discard_ms", "time of all discards", "/proc/diskstats field 18, Linux 4.18", bits(32);
    counter(One) "flushes", "flushes that reached the device", "/proc/diskstats field 19, Linux 5.5";
    counter(Millisecond) "flush_ms", "time of all flushes", "/proc/diskstats field 20, Linux 5.5", lower, bits(32);
};

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("diskstats", MOUNT_PROC)?;
    let host = host.clone();
    // Known names, and whether they are partitions.
    let mut known = HashMap::new();
    let parse = move |text: &[u8], rows: &mut Rows| {
        let wanted = |name: &[u8]| !is_partition(name, &host, &mut known);
        parse(text, wanted, rows)
    };
    Ok(Box::new(Files::default().with(file, parse)))
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
/// A line with fewer fields than the oldest format is not of a whole device, or of a later one.
///
/// # Errors
/// None.
pub fn parse(file: &[u8], mut wanted: impl FnMut(&[u8]) -> bool, rows: &mut Rows) -> Result<(), ParseError> {
    let odd = each_line(file, |cursor| {
        if cursor.ends() {
            return;
        }
        let (_, _, name) = (cursor.word(), cursor.word(), cursor.word());
        let Some(name) = name else {
            return cursor.odd_line("no name of a device");
        };
        let (fields, count): ([_; FIELDS], _) = cursor.uints("field");
        if count < FIELDS_AT_LEAST {
            return cursor.odd_line("fewer fields than a device has");
        }
        let idle = || fields.iter().all(|field| field.unwrap_or(0) == 0);
        let memory = name.starts_with(b"loop") || name.starts_with(b"ram");
        if !(memory && idle()) && wanted(name) {
            rows.row(&[name]);
            fields.iter().for_each(|field| rows.uint_or_null(*field));
        }
    });
    rows.odd_mut().add(&odd);
    Ok(())
}
