//! Reads IP, TCP, UDP and socket counters of this network namespace (`/proc/net/snmp`,
//! `/proc/net/netstat`, `/proc/net/sockstat`).
//!
//! Metrics have the names of nstat(8) with a dot: `Tcp.RetransSegs`, `TcpExt.TCPTimeouts`; sockets
//! as `sockstat.TCP.tw`.

use super::Files;
use super::MOUNT_PROC;
use super::fields::Cursor;
use super::fields::each_line;
use super::fields::not_empty;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "tcp",
    "IP, TCP, UDP and socket counters, including retransmits",
    &SCHEMA,
    open,
);

static SCHEMA: Schema = Schema::metrics(METRICS);

const SNMP: &str = "/proc/net/snmp";
const NETSTAT: &str = "/proc/net/netstat";
const SOCKSTAT: &str = "/proc/net/sockstat";

static METRICS: &[Column] = columns! {
    counter(One) "Ip.InReceives", "packets received", SNMP;
    counter(One) "Ip.OutRequests", "packets sent by local protocols", SNMP;
    counter(One) "Tcp.ActiveOpens", "connections opened by this host", SNMP;
    counter(One) "Tcp.PassiveOpens", "connections accepted", SNMP;
    counter(One) "Tcp.AttemptFails", "connections that failed to open", SNMP, lower;
    counter(One) "Tcp.EstabResets", "connections reset", SNMP, lower;
    gauge(One) "Tcp.CurrEstab", "connections open", SNMP;
    counter(One) "Tcp.InSegs", "segments received", SNMP;
    counter(One) "Tcp.OutSegs", "segments sent, without retransmits", SNMP;
    counter(One) "Tcp.RetransSegs", "segments retransmitted", SNMP, lower;
    counter(One) "Tcp.InErrs", "bad segments received", SNMP, lower;
    counter(One) "Tcp.OutRsts", "resets sent", SNMP;
    counter(One) "Udp.InDatagrams", "datagrams received", SNMP;
    counter(One) "Udp.OutDatagrams", "datagrams sent", SNMP;
    counter(One) "TcpExt.TW", "sockets that left TIME_WAIT by its timer", NETSTAT;
    counter(One) "TcpExt.ListenOverflows", "connections dropped, queue full", NETSTAT, lower;
    counter(One) "TcpExt.ListenDrops", "connections dropped", NETSTAT, lower;
    counter(One) "TcpExt.DelayedACKs", "delayed acknowledgements sent", NETSTAT;
    counter(One) "TcpExt.TCPTimeouts", "retransmission timeouts", NETSTAT, lower;
    counter(One) "TcpExt.TCPLostRetransmit", "retransmits lost", NETSTAT, lower;
    counter(One) "TcpExt.TCPFastRetrans", "fast retransmits", NETSTAT, lower;
    counter(One) "TcpExt.TCPAutoCorking", "small writes that were corked", NETSTAT;
    counter(One) "TcpExt.TCPOrigDataSent", "data segments sent", NETSTAT;
    counter(Byte) "IpExt.InOctets", "received", NETSTAT;
    counter(Byte) "IpExt.OutOctets", "sent", NETSTAT;
    gauge(One) "sockstat.TCP.inuse", "TCP sockets in use", SOCKSTAT;
    gauge(One) "sockstat.TCP.orphan", "TCP sockets without a process", SOCKSTAT;
    gauge(One) "sockstat.TCP.tw", "TCP sockets in TIME_WAIT", SOCKSTAT;
    gauge(One) "sockstat.TCP.alloc", "TCP sockets allocated", SOCKSTAT;
    gauge(Page) "sockstat.TCP.mem", "memory of TCP sockets", SOCKSTAT;
};

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = |name| Ok(host.source(name, MOUNT_PROC)?.in_one_read());
    let files = Files::default()
        .with(file("net/snmp")?, parse)
        .with(file("net/netstat")?, parse)
        .with(file("net/sockstat")?, parse_sockstat);
    Ok(Box::new(files))
}

/// Parses `/proc/net/snmp` or `/proc/net/netstat`.
///
/// # Errors
/// Those of [`each_column`], and when the file is empty.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    let all = |_: &[u8]| true;
    each_column(file, all, |protocol, name, value| {
        rows.row_joined(&[protocol, b".", name]);
        rows.int(value);
    })?;
    not_empty(rows, before, "Ip")
}

/// Parses `/proc/net/sockstat`.
///
/// # Errors
/// Those of [`each_pair`].
pub fn parse_sockstat(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    each_pair(file, |protocol, name, value| {
        rows.row_joined(&[b"sockstat.", protocol, b".", name]);
        rows.int(value);
    })
}

/// Calls `take` with protocol, name and value of each column of the wanted protocols in `snmp` or
/// `netstat` (`net/ipv4/proc.c`; meanings in RFC 1213 and
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
pub fn each_column(
    file: &[u8],
    is_wanted: impl Fn(&[u8]) -> bool,
    mut take: impl FnMut(&[u8], &[u8], i64),
) -> Result<(), ParseError> {
    let mut names = Cursor::new(file);
    while !names.at_end() {
        let mut values = names.clone();
        values.next_line();
        let Some(protocol) = names.until(b':') else { break };
        if values.until(b':') != Some(protocol) {
            return Err(values.error("protocol", "the line of numbers is missing"));
        }
        if is_wanted(protocol) {
            while let Some(name) = names.word() {
                take(protocol, name, values.need_int("value")?);
            }
        }
        values.next_line();
        names = values;
    }
    Ok(())
}

/// Calls `take` with protocol, name and value of each pair of `sockstat` or `sockstat6`
/// (`net/ipv4/proc.c`, `net/ipv6/proc.c`).
///
/// ```text
/// TCP: inuse 4 orphan 0 tw 2 alloc 5 mem 1
/// ```
///
/// # Errors
/// When a name has no number.
pub fn each_pair(file: &[u8], mut take: impl FnMut(&[u8], &[u8], i64)) -> Result<(), ParseError> {
    each_line(file, |cursor| {
        if let Some(protocol) = cursor.until(b':') {
            while let Some(name) = cursor.word() {
                take(protocol, name, cursor.need_int("value")?);
            }
        }
        Ok(())
    })
}
