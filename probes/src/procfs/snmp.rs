//! Reads IP, TCP, UDP and socket counters of this network namespace (`/proc/net/snmp`,
//! `/proc/net/netstat`, `/proc/net/sockstat`).
//!
//! Metrics have the names of nstat(8) with a dot: `Tcp.RetransSegs`, `TcpExt.TCPTimeouts`; sockets
//! as `sockstat.TCP.tw`.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Unit;

use super::MOUNT_PROC;
use super::fields::Cursor;
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
    "tcp",
    "IP, TCP, UDP and socket counters, including retransmits",
    &SCHEMA,
    open,
);

static SCHEMA: Schema = Schema::metrics(METRICS);

const fn count(name: &'static str, help: &'static str, source: &'static str) -> Column {
    Column::counter(name, Unit::One, help, source)
}

const SNMP: &str = "/proc/net/snmp";
const NETSTAT: &str = "/proc/net/netstat";
const SOCKSTAT: &str = "/proc/net/sockstat";

static METRICS: &[Column] = &[
    count("Ip.InReceives", "packets received", SNMP),
    count("Ip.OutRequests", "packets sent by local protocols", SNMP),
    count("Tcp.ActiveOpens", "connections opened by this host", SNMP),
    count("Tcp.PassiveOpens", "connections accepted", SNMP),
    count("Tcp.AttemptFails", "connections that failed to open", SNMP).lower(),
    count("Tcp.EstabResets", "connections reset", SNMP).lower(),
    Column::gauge("Tcp.CurrEstab", Unit::One, "connections open", SNMP),
    count("Tcp.InSegs", "segments received", SNMP),
    count("Tcp.OutSegs", "segments sent, without retransmits", SNMP),
    count("Tcp.RetransSegs", "segments retransmitted", SNMP).lower(),
    count("Tcp.InErrs", "bad segments received", SNMP).lower(),
    count("Tcp.OutRsts", "resets sent", SNMP),
    count("Udp.InDatagrams", "datagrams received", SNMP),
    count("Udp.OutDatagrams", "datagrams sent", SNMP),
    count("TcpExt.TW", "sockets that left TIME_WAIT by its timer", NETSTAT),
    count(
        "TcpExt.ListenOverflows",
        "connections dropped, queue full",
        NETSTAT,
    )
    .lower(),
    count("TcpExt.ListenDrops", "connections dropped", NETSTAT).lower(),
    count("TcpExt.DelayedACKs", "delayed acknowledgements sent", NETSTAT),
    count("TcpExt.TCPTimeouts", "retransmission timeouts", NETSTAT).lower(),
    count("TcpExt.TCPLostRetransmit", "retransmits lost", NETSTAT).lower(),
    count("TcpExt.TCPFastRetrans", "fast retransmits", NETSTAT).lower(),
    count("TcpExt.TCPAutoCorking", "small writes that were corked", NETSTAT),
    count("TcpExt.TCPOrigDataSent", "data segments sent", NETSTAT),
    Column::counter("IpExt.InOctets", Unit::Byte, "received", NETSTAT),
    Column::counter("IpExt.OutOctets", Unit::Byte, "sent", NETSTAT),
    Column::gauge("sockstat.TCP.inuse", Unit::One, "TCP sockets in use", SOCKSTAT),
    Column::gauge(
        "sockstat.TCP.orphan",
        Unit::One,
        "TCP sockets without a process",
        SOCKSTAT,
    ),
    Column::gauge("sockstat.TCP.tw", Unit::One, "TCP sockets in TIME_WAIT", SOCKSTAT),
    Column::gauge("sockstat.TCP.alloc", Unit::One, "TCP sockets allocated", SOCKSTAT),
    Column::gauge("sockstat.TCP.mem", Unit::Page, "memory of TCP sockets", SOCKSTAT),
];

#[derive(Debug)]
struct Tcp {
    snmp: Source,
    netstat: Source,
    sockstat: Source,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let snmp = host.source("net/snmp", MOUNT_PROC)?.in_one_read();
    let netstat = host.source("net/netstat", MOUNT_PROC)?.in_one_read();
    let sockstat = host.source("net/sockstat", MOUNT_PROC)?.in_one_read();
    Ok(Box::new(Tcp {
        snmp,
        netstat,
        sockstat,
    }))
}

impl Probe for Tcp {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.snmp.parse(|text| parse(text, rows))?;
        self.netstat.parse(|text| parse(text, rows))?;
        self.sockstat.parse(|text| parse_sockstat(text, rows))
    }
}

/// Parses `/proc/net/snmp` or `/proc/net/netstat` (`net/ipv4/proc.c`; meanings in RFC 1213 and
/// Documentation/networking/snmp_counter.rst): a line of names, then a line of numbers, each after
/// the protocol.
///
/// ```text
/// Tcp: RtoAlgorithm RtoMin RtoMax MaxConn …
/// Tcp: 1 200 120000 -1 …
/// ```
///
/// # Errors
/// When the two lines do not match, or a value is not a number.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    let mut names = Cursor::new(file);
    while !names.at_end() {
        let mut values = names.clone();
        values.next_line();
        let Some(protocol) = names.until(b':') else { break };
        if values.until(b':') != Some(protocol) {
            return Err(values.error("protocol", "the line of numbers is missing"));
        }
        while let Some(name) = names.word() {
            rows.row_joined(&[protocol, b".", name]);
            rows.int(values.need_int("value")?);
        }
        values.next_line();
        names = values;
    }
    if rows.len() == before {
        Err(empty("Ip"))
    } else {
        Ok(())
    }
}

/// Parses `/proc/net/sockstat` (`net/ipv4/proc.c`): alternating names and numbers.
///
/// ```text
/// TCP: inuse 4 orphan 0 tw 2 alloc 5 mem 1
/// ```
///
/// # Errors
/// When a name has no number.
pub fn parse_sockstat(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if let Some(protocol) = cursor.until(b':') {
            while let Some(name) = cursor.word() {
                rows.row_joined(&[b"sockstat.", protocol, b".", name]);
                rows.int(cursor.need_int("value")?);
            }
        }
        Ok(())
    })
}
