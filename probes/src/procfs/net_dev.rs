//! Reads `/proc/net/dev`: bytes, packets, drops and errors per interface of this network namespace.
//!
//! `lo` counts every byte twice, as received and as sent.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

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
    "nic",
    "bytes, packets, drops and errors per network interface",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("interface")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

static COLUMNS: &[Column] = &[
    Column::counter("rx_bytes", Unit::Byte, "received", "/proc/net/dev field 1"),
    Column::counter(
        "rx_packets",
        Unit::One,
        "packets received",
        "/proc/net/dev field 2",
    ),
    Column::counter("rx_errors", Unit::One, "receive errors", "/proc/net/dev field 3").lower(),
    Column::counter(
        "rx_drops",
        Unit::One,
        "received and dropped",
        "/proc/net/dev field 4",
    )
    .lower(),
    Column::counter("rx_fifo", Unit::One, "receive overruns", "/proc/net/dev field 5").lower(),
    Column::counter("rx_frame", Unit::One, "framing errors", "/proc/net/dev field 6").lower(),
    Column::counter(
        "rx_compressed",
        Unit::One,
        "compressed packets received",
        "/proc/net/dev field 7",
    ),
    Column::counter(
        "rx_multicast",
        Unit::One,
        "multicast packets received",
        "/proc/net/dev field 8",
    ),
    Column::counter("tx_bytes", Unit::Byte, "sent", "/proc/net/dev field 9"),
    Column::counter("tx_packets", Unit::One, "packets sent", "/proc/net/dev field 10"),
    Column::counter("tx_errors", Unit::One, "send errors", "/proc/net/dev field 11").lower(),
    Column::counter(
        "tx_drops",
        Unit::One,
        "dropped before they were sent",
        "/proc/net/dev field 12",
    )
    .lower(),
    Column::counter("tx_fifo", Unit::One, "send overruns", "/proc/net/dev field 13").lower(),
    Column::counter("tx_collisions", Unit::One, "collisions", "/proc/net/dev field 14").lower(),
    Column::counter(
        "tx_carrier",
        Unit::One,
        "carrier losses",
        "/proc/net/dev field 15",
    )
    .lower(),
    Column::counter(
        "tx_compressed",
        Unit::One,
        "compressed packets sent",
        "/proc/net/dev field 16",
    ),
];

/// Lines before the first interface.
const HEADINGS: u32 = 2;

#[derive(Debug)]
struct Nic {
    file: Source,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    Ok(Box::new(Nic {
        // A name has 15 bytes, and sixteen numbers have at most 20 digits each.
        file: host.source("net/dev", MOUNT_PROC)?.records_below(512),
    }))
}

impl Probe for Nic {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.file.parse(|text| parse(text, rows))
    }
}

/// Parses `/proc/net/dev` (proc_pid_net(5), `net/core/net-procfs.c`); the first two lines are
/// headings.
///
/// ```text
///   eth0: 756025348   24542    0    0    0     0          0         0  1517337   16058    0    0    0     0       0          0
/// ```
///
/// # Errors
/// When there is no interface, or a line does not have sixteen numbers.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if cursor.line() > HEADINGS
            && let Some(name) = cursor.until(b':')
        {
            rows.row(&[name.trim_ascii()]);
            for _ in COLUMNS {
                rows.uint(cursor.need_uint("interface field")?);
            }
        }
        Ok(())
    })?;
    if rows.is_empty() {
        Err(empty("interface"))
    } else {
        Ok(())
    }
}
