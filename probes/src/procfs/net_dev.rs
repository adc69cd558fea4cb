//! Reads `/proc/net/dev`: bytes, packets, drops and errors per interface of this network namespace.
//!
//! `lo` counts every byte twice, as received and as sent.

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "nic",
    "bytes, packets, drops and errors per network interface",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("interface")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

static COLUMNS: &[Column] = columns! {
    counter(Byte) "rx_bytes", "received", "/proc/net/dev field 1";
    counter(One) "rx_packets", "packets received", "/proc/net/dev field 2";
    counter(One) "rx_errors", "receive errors", "/proc/net/dev field 3", lower;
    counter(One) "rx_drops", "received and dropped", "/proc/net/dev field 4", lower;
    counter(One) "rx_fifo", "receive overruns", "/proc/net/dev field 5", lower;
    counter(One) "rx_frame", "framing errors", "/proc/net/dev field 6", lower;
    counter(One) "rx_compressed", "compressed packets received", "/proc/net/dev field 7";
    counter(One) "rx_multicast", "multicast packets received", "/proc/net/dev field 8";
    counter(Byte) "tx_bytes", "sent", "/proc/net/dev field 9";
    counter(One) "tx_packets", "packets sent", "/proc/net/dev field 10";
    counter(One) "tx_errors", "send errors", "/proc/net/dev field 11", lower;
    counter(One) "tx_drops", "dropped before they were sent", "/proc/net/dev field 12", lower;
    counter(One) "tx_fifo", "send overruns", "/proc/net/dev field 13", lower;
    counter(One) "tx_collisions", "collisions", "/proc/net/dev field 14", lower;
    counter(One) "tx_carrier", "carrier losses", "/proc/net/dev field 15", lower;
    counter(One) "tx_compressed", "compressed packets sent", "/proc/net/dev field 16";
};

const COLUMNS_OF_LINE: usize = 16;
/// Lines before the first interface.
const HEADINGS: u32 = 2;

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("net/dev", MOUNT_PROC)?;
    Ok(Box::new(Files::default().with(file, parse)))
}

/// Parses `/proc/net/dev` (proc_pid_net(5), `net/core/net-procfs.c`); the first two lines are
/// headings.
///
/// ```text
///   eth0: 756025348   24542    0    0    0     0          0         0  1517337   16058    0    0    0     0       0          0
/// ```
///
/// A name can contain colons, as that of an alias or of a team's port: it ends at the last one.
///
/// # Errors
/// When there is no interface.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let odd = each_line(file, |cursor| {
        if cursor.line() <= HEADINGS || cursor.ends() {
            return;
        }
        let Some(name) = cursor.until_last(b':').map(<[u8]>::trim_ascii) else {
            return cursor.odd_line("no name of an interface");
        };
        rows.row(&[name]);
        let (fields, _): ([_; COLUMNS_OF_LINE], _) = cursor.uints("field");
        fields.iter().for_each(|field| rows.uint_or_null(*field));
    });
    rows.odd_mut().add(&odd);
    not_empty(rows, 0, "interface")
}
