//! Reads sockets and connections in the network namespace of each watched process
//! (`/proc/PID/net/{sockstat,sockstat6,snmp}`).
//!
//! Server and load can be in different namespaces, each with its own ports and counters. A load
//! that opens connections faster than TIME_WAIT releases their ports runs out of ports; these
//! metrics show it.

use std::collections::BTreeMap;
use std::fs;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;
use rustix::thread::CapabilitySet;

use super::MOUNT_PROC;
use super::fields::Cursor;
use super::process::is_gone;
use super::targets::Targets;
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
    "sockets",
    "sockets and connections in the network namespaces of the watched processes",
    &SCHEMA,
    open,
)
.every_nth()
.with_capabilities(CapabilitySet::SYS_PTRACE);

static ENTITY: &[Text] = &[text("role"), text("namespace")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const SOCKSTAT: &str = "/proc/PID/net/sockstat";
const SOCKSTAT6: &str = "/proc/PID/net/sockstat6";
const SNMP: &str = "/proc/PID/net/snmp Tcp";

const fn sockets(name: &'static str, help: &'static str, source: &'static str) -> Column {
    Column::gauge(name, Unit::One, help, source)
}

const fn count(name: &'static str, help: &'static str) -> Column {
    Column::counter(name, Unit::One, help, SNMP)
}

static COLUMNS: &[Column] = &[
    sockets(
        "tcp_inuse",
        "TCP sockets in use, without those in TIME_WAIT",
        SOCKSTAT,
    ),
    sockets(
        "tcp_orphan",
        "TCP sockets without a process, of the whole host",
        SOCKSTAT,
    ),
    sockets("tcp_tw", "TCP sockets in TIME_WAIT", SOCKSTAT).lower(),
    sockets("tcp_alloc", "TCP sockets allocated, of the whole host", SOCKSTAT),
    Column::gauge(
        "tcp_mem",
        Unit::Page,
        "memory of TCP sockets, of the whole host",
        SOCKSTAT,
    ),
    sockets("udp_inuse", "UDP sockets in use", SOCKSTAT),
    sockets("tcp6_inuse", "TCP sockets of IPv6 in use", SOCKSTAT6),
    count("active_opens", "connections opened from this namespace"),
    count("passive_opens", "connections accepted"),
    count("attempt_fails", "connections that failed to open").lower(),
    count("estab_resets", "connections that were reset").lower(),
    Column::gauge("curr_estab", Unit::One, "connections established", SNMP),
    count("in_segs", "segments received"),
    count("out_segs", "segments sent, without retransmits"),
    count("retrans_segs", "segments retransmitted").lower(),
];

/// Protocol and key of `sockstat`, in the order of their columns.
const WORDS: [(&[u8], &[u8]); 6] = [
    (b"TCP", b"inuse"),
    (b"TCP", b"orphan"),
    (b"TCP", b"tw"),
    (b"TCP", b"alloc"),
    (b"TCP", b"mem"),
    (b"UDP", b"inuse"),
];

/// Names in `snmp`, in the order of their columns.
const NAMES: [&[u8]; 8] = [
    b"ActiveOpens",
    b"PassiveOpens",
    b"AttemptFails",
    b"EstabResets",
    b"CurrEstab",
    b"InSegs",
    b"OutSegs",
    b"RetransSegs",
];

#[derive(Debug)]
struct Sockets {
    host: Host,
    targets: Targets,
    open: BTreeMap<(String, String), Files>,
}

/// The files of one namespace. An open file keeps the namespace alive, so all are closed when its
/// processes have exited.
#[derive(Debug)]
struct Files {
    seen: bool,
    sockstat: Source,
    sockstat6: Option<Source>,
    snmp: Source,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    host.source("net/sockstat", MOUNT_PROC)?;
    Ok(Box::new(Sockets {
        host: host.clone(),
        targets: Targets::new(host, options.with_recorder()),
        open: BTreeMap::new(),
    }))
}

impl Probe for Sockets {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.open.values_mut().for_each(|files| files.seen = false);
        for (role, pid) in self.targets.find() {
            self.find(role, pid)?;
        }
        self.open.retain(|_, files| files.seen);
        self.open.iter_mut().try_for_each(|((role, namespace), files)| {
            files.sample([role.as_bytes(), namespace.as_bytes()], rows)
        })
    }
}

impl Sockets {
    /// Opens the files of the current namespace of a process, which can change while the process
    /// runs.
    fn find(&mut self, role: String, pid: u32) -> Result<(), ProbeError> {
        let path = |name: &str| self.host.proc(&format!("{pid}/net/{name}"));
        // `net:[4026531840]`; unreadable for processes of other users.
        let link = fs::read_link(self.host.proc(&format!("{pid}/ns/net"))).unwrap_or_default();
        let namespace = link.to_string_lossy();
        let namespace = namespace
            .strip_prefix("net:[")
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or("?");
        let key = (role, namespace.to_owned());
        if let Some(files) = self.open.get_mut(&key) {
            files.seen = true;
            return Ok(());
        }
        let files = Source::sized(path("sockstat"), 1024).and_then(|sockstat| {
            Ok(Files {
                seen: true,
                sockstat: sockstat.in_one_read(),
                // A kernel without IPv6 does not have the file.
                sockstat6: Source::sized(path("sockstat6"), 1024)
                    .ok()
                    .map(Source::in_one_read),
                snmp: Source::open(path("snmp"))?.in_one_read(),
            })
        });
        match files {
            Ok(files) => {
                self.open.insert(key, files);
                Ok(())
            }
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Files {
    fn sample(&mut self, entity: [&[u8]; 2], rows: &mut Rows) -> Result<(), ProbeError> {
        let four = self.sockstat.parse(|text| parse_sockstat(text, &WORDS))?;
        let six = match &mut self.sockstat6 {
            Some(file) => file.parse(|text| parse_sockstat(text, &[(b"TCP6", b"inuse")]))?,
            None => [None],
        };
        let snmp = self.snmp.parse(parse_snmp)?;
        rows.row(&entity);
        four.iter()
            .chain(&six)
            .chain(&snmp)
            .for_each(|cell| rows.uint_or_null(*cell));
        Ok(())
    }
}

/// Parses the values of the `wanted` keys of `sockstat` or `sockstat6` (`net/ipv4/proc.c`,
/// `net/ipv6/proc.c`).
///
/// ```text
/// TCP: inuse 4 orphan 0 tw 2 alloc 5 mem 1
/// ```
///
/// # Errors
/// When a name has no number.
pub fn parse_sockstat<const N: usize>(
    file: &[u8],
    wanted: &[(&[u8], &[u8]); N],
) -> Result<[Option<u64>; N], ParseError> {
    let mut cells = [None; N];
    let mut cursor = Cursor::new(file);
    while !cursor.at_end() {
        if let Some(protocol) = cursor.until(b':') {
            while let Some(name) = cursor.word() {
                let value = cursor.need_uint("value")?;
                if let Some(index) = wanted.iter().position(|word| *word == (protocol, name)) {
                    cells[index] = Some(value);
                }
            }
        }
        cursor.next_line();
    }
    Ok(cells)
}

/// Parses the values of `NAMES` in the two lines `Tcp:` of `snmp` (`net/ipv4/proc.c`).
///
/// ```text
/// Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens …
/// Tcp: 1 200 120000 -1 3 …
/// ```
///
/// # Errors
/// When the numbers of names and values differ, or a value is not a number.
pub fn parse_snmp(file: &[u8]) -> Result<[Option<u64>; NAMES.len()], ParseError> {
    let mut cells = [None; NAMES.len()];
    let mut names = Cursor::new(file);
    while !names.at_end() {
        if names.until(b':') == Some(b"Tcp") {
            let mut values = names.clone();
            values.next_line();
            if values.until(b':') != Some(b"Tcp") {
                return Err(values.error("Tcp", "the line of names has no line of values"));
            }
            while let Some(name) = names.word() {
                let value = values.need_int("value")?;
                if let Some(index) = NAMES.iter().position(|wanted| *wanted == name) {
                    cells[index] = u64::try_from(value).ok();
                }
            }
            return Ok(cells);
        }
        names.next_line();
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    /// A process in another namespace has other counters.
    #[test]
    fn every_namespace_has_its_own_row() {
        let mut child = Command::new("unshare")
            .args(["--net", "cat"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let options = Options {
            processes: vec![format!("load={}", child.id()).parse().unwrap()],
            ..Options::default()
        };
        let mut probe = open(&Host::default(), &options).unwrap();
        let mut rows = Rows::default();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        let theirs = format!("/proc/{}/ns/net", child.id());
        while fs::read_link(&theirs).unwrap() == ours {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        probe.sample(&mut rows).unwrap();
        assert_eq!(rows.len(), 2);
        let role = |row| String::from_utf8_lossy(rows.entity(row).next().unwrap()).into_owned();
        assert_eq!((role(0).as_str(), role(1).as_str()), ("load", "recorder"));
        assert_ne!(rows.entity(0).nth(1), rows.entity(1).nth(1));
        // Nothing has ever connected in that namespace.
        let width = COLUMNS.len();
        assert_eq!(rows.value(0, 7, width), loadprint_recording::rows::Value::Bits(0));
        drop(child.stdin.take());
        child.wait().unwrap();
        rows.clear();
        probe.sample(&mut rows).unwrap();
        assert_eq!(
            rows.len(),
            1,
            "the files of a namespace without processes are closed"
        );
    }
}
