//! Reads IP, TCP, UDP and socket counters of this network namespace (`/proc/net/snmp`,
//! `/proc/net/netstat`, `/proc/net/sockstat`).
//!
//! Metrics have the names of nstat(8) with a dot: `Tcp.RetransSegs`, `TcpExt.TCPTimeouts`; sockets
//! as `sockstat.TCP.tw`.

use loadprint_recording::rows::Odd;

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
    let mut files = Files::default();
    let mut unavailable = None;
    let parsers = [
        ("snmp", parse as Parser),
        ("netstat", parse),
        ("sockstat", parse_sockstat),
    ];
    for (name, parse) in parsers {
        match host.source(&format!("net/{name}"), MOUNT_PROC) {
            Ok(file) => files = files.with(file.in_one_read(), parse),
            Err(error) => drop(unavailable.get_or_insert(error)),
        }
    }
    files.opened(unavailable)
}

type Parser = fn(&[u8], &mut Rows) -> Result<(), ParseError>;

/// Parses `/proc/net/snmp` or `/proc/net/netstat`.
///
/// # Errors
/// When the file has no such lines.
pub fn parse(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    let all = |_: &[u8]| true;
    let odd = each_column(file, all, |protocol, name, value| {
        rows.row_joined(&[protocol, b".", name]);
        rows.int_or_null(value);
    });
    rows.odd_mut().add(&odd);
    not_empty(rows, before, "Ip")
}

/// Parses `/proc/net/sockstat`.
///
/// # Errors
/// None.
pub fn parse_sockstat(file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
    let odd = each_pair(file, |protocol, name, value| {
        rows.row_joined(&[b"sockstat.", protocol, b".", name]);
        rows.int_or_null(value);
    });
    rows.odd_mut().add(&odd);
    Ok(())
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
/// Returns what was not read: lines of names without their numbers.
pub fn each_column(
    file: &[u8],
    is_wanted: impl Fn(&[u8]) -> bool,
    mut take: impl FnMut(&[u8], &[u8], Option<i64>),
) -> Odd {
    let mut odd = Odd::default();
    let mut names = Cursor::new(file);
    while !names.at_end() {
        let mut values = Cursor::new(names.rest());
        values.next_line();
        let Some(protocol) = names.until(b':') else {
            names.odd_line("no name of a protocol");
            names.next_line();
            continue;
        };
        if values.until(b':') != Some(protocol) {
            names.odd_line("the line of numbers is missing");
            names.next_line();
            continue;
        }
        if is_wanted(protocol) {
            while let Some(name) = names.word() {
                take(protocol, name, values.int("value"));
            }
        }
        names.next_line();
        names.next_line();
        odd.add(&values.into_odd());
    }
    odd.add(&names.into_odd());
    odd
}

/// Calls `take` with protocol, name and value of each pair of `sockstat`
/// (`net/ipv4/proc.c`).
///
/// ```text
/// TCP: inuse 4 orphan 0 tw 2 alloc 5 mem 1
/// ```
///
/// Returns what was not read.
pub fn each_pair(file: &[u8], mut take: impl FnMut(&[u8], &[u8], Option<i64>)) -> Odd {
    each_line(file, |cursor| {
        if cursor.ends() {
            return;
        }
        let Some(protocol) = cursor.until(b':') else {
            return cursor.odd_line("no name of a protocol");
        };
        while let Some(name) = cursor.word() {
            if cursor.ends() {
                return cursor.odd_line("a name without a number");
            }
            let value = cursor.int("value");
            take(protocol, name, value);
        }
    })
}
