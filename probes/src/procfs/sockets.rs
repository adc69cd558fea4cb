//! Reads sockets and connections in the network namespace of each watched process
//! (`/proc/PID/net/{sockstat,snmp}`).
//!
//! Server and load can be in different namespaces, each with its own ports and counters. A load
//! that opens connections faster than TIME_WAIT releases their ports runs out of ports; these
//! metrics show it.

use std::fs;

use super::entities::Entities;
use super::snmp::each_column;
use super::snmp::each_pair;
use super::targets::Targets;
use loadprint_recording::rows::Odd;

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "sockets",
    "sockets and connections in the network namespaces of the watched processes",
    &SCHEMA,
    open,
)
.read_at(Cadence::Nth);

static ENTITY: &[Text] = &[text("role"), text("namespace")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const SOCKSTAT: &str = "/proc/PID/net/sockstat";
const SNMP: &str = "/proc/PID/net/snmp Tcp";

static COLUMNS: &[Column] = columns! {
    gauge(One) "tcp_tw", "TCP sockets in TIME_WAIT", SOCKSTAT, lower;
    counter(One) "active_opens", "connections opened from this namespace", SNMP;
    counter(One) "retrans_segs", "segments retransmitted", SNMP, lower;
};

/// Protocol and name of the values, in the order of their columns.
const VALUES: [(&str, &str); 3] = [("TCP", "tw"), ("Tcp", "ActiveOpens"), ("Tcp", "RetransSegs")];

#[derive(Debug)]
struct Sockets {
    host: Host,
    targets: Targets,
    /// By role and namespace.
    open: Entities<(String, String), Files>,
}

/// The files of one namespace. An open file keeps the namespace alive, so all are closed when its
/// processes have exited.
#[derive(Debug)]
struct Files {
    sockstat: Source,
    snmp: Source,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    host.source("net/sockstat", MOUNT_PROC)?;
    let mut sockets = Sockets {
        host: host.clone(),
        targets: Targets::new(host, options.with_recorder()),
        open: Entities::default(),
    };
    Ok(Background::spawn("sockets", move |rows| sockets.sample(rows)))
}

impl Sockets {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        for (role, pid) in self.targets.find() {
            // The namespace can change while the process runs.
            let key = (role, namespace(&self.host, pid));
            self.open.find(key, |_| Files::open(&self.host, pid))?;
        }
        self.open
            .sample(rows, COLUMNS.len(), |(role, namespace), files, rows| {
                let cells = files.read(rows.odd_mut())?;
                rows.row(&[role.as_bytes(), namespace.as_bytes()]);
                cells.iter().for_each(|cell| rows.uint_or_null(*cell));
                Ok(())
            })
    }
}

/// The network namespace of a process; `?` for processes of other users, where it is unreadable.
fn namespace(host: &Host, pid: u32) -> String {
    // `net:[4026531840]`
    let link = fs::read_link(host.proc(&format!("{pid}/ns/net"))).unwrap_or_default();
    let text = link.to_string_lossy();
    let number = text.strip_prefix("net:[").and_then(|rest| rest.strip_suffix(']'));
    number.unwrap_or("?").to_owned()
}

impl Files {
    fn open(host: &Host, pid: u32) -> Result<Self, ProbeError> {
        let file = |name: &str, size| {
            let path = host.proc(&format!("{pid}/net/{name}"));
            Source::sized(path, size).map(Source::in_one_read)
        };
        Ok(Self {
            sockstat: file("sockstat", 1024)?,
            snmp: file("snmp", 4096)?,
        })
    }

    fn read(&mut self, odd: &mut Odd) -> Result<Cells, ProbeError> {
        let mut cells = [None; VALUES.len()];
        parse_sockstat(self.sockstat.read()?, &mut cells, odd);
        parse_snmp(self.snmp.read()?, &mut cells, odd);
        Ok(cells)
    }
}

/// The values of one namespace; `None` for those that the kernel does not print.
pub type Cells = [Option<u64>; VALUES.len()];

/// Parses `sockstat`.
pub fn parse_sockstat(file: &[u8], cells: &mut Cells, odd: &mut Odd) {
    let mut negative = Odd::default();
    odd.add(&each_pair(file, |protocol, name, value| {
        set(cells, protocol, name, value, &mut negative);
    }));
    odd.add(&negative);
}

/// Parses `snmp`.
pub fn parse_snmp(file: &[u8], cells: &mut Cells, odd: &mut Odd) {
    let mut negative = Odd::default();
    let is_wanted = |protocol: &[u8]| protocol == b"Tcp";
    odd.add(&each_column(file, is_wanted, |protocol, name, value| {
        set(cells, protocol, name, value, &mut negative);
    }));
    odd.add(&negative);
}

fn set(cells: &mut Cells, protocol: &[u8], name: &[u8], value: Option<i64>, odd: &mut Odd) {
    let of_value = |(of, key): &(&str, &str)| of.as_bytes() == protocol && key.as_bytes() == name;
    if let Some(index) = VALUES.iter().position(of_value) {
        cells[index] = value.and_then(|value| value.try_into().ok());
        if let (Some(value), None) = (value, cells[index]) {
            odd.cell(|| format!("{}: `{value}` is not its value", VALUES[index].1));
        }
    }
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
        let mut read = |rows: &mut Rows| {
            rows.clear();
            probe.begin();
            probe.wait(std::time::Duration::from_secs(60));
            probe.sample(rows).unwrap();
        };
        read(&mut rows);
        assert_eq!(rows.len(), 2);
        let role = |row| String::from_utf8_lossy(rows.entity(row).next().unwrap()).into_owned();
        assert_eq!((role(0).as_str(), role(1).as_str()), ("load", "recorder"));
        assert_ne!(rows.entity(0).nth(1), rows.entity(1).nth(1));
        // Nothing has ever connected in that namespace.
        let width = COLUMNS.len();
        assert_eq!(rows.value(0, 1, width), loadprint_recording::rows::Value::Bits(0));
        drop(child.stdin.take());
        child.wait().unwrap();
        read(&mut rows);
        assert_eq!(
            rows.len(),
            1,
            "the files of a namespace without processes are closed"
        );
    }
}
