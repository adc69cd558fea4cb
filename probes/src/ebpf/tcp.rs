//! Measures smoothed TCP round-trip times and counts retransmits and connections opened and closed,
//! by port.
//!
//! The programs cover all network namespaces of the host. If server and load run on one host, both
//! ends of a connection count, each under its side. A value is the smoothed round-trip time of the
//! connection (RFC 6298) at a segment that it receives, one in four at random. Answers carry the
//! acknowledgements, so the round-trip time of a side that waits for the other side's work includes that
//! work, up to the delayed acknowledgement (40 ms): a client's includes the server's time for a
//! statement. An idle connection has no values.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::prelude::*;
use super::skeletons::tcp::TcpSkel;
use super::skeletons::tcp::TcpSkelBuilder;
use super::skeletons::tcp::types::connection_counters;
use super::skeletons::tcp::types::limits as Limits;
use super::skeletons::tcp::types::port_page;
use super::skeletons::tcp::types::slots_of_port as SlotsOfPort;
use crate::lookup::Lookup;
use crate::options::ProcessTarget;
use crate::procfs::targets::Targets;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::ebpf(
    "ebpf_tcp",
    "TCP round-trip times, retransmits and connections by port",
    &SCHEMA,
    open,
)
.on_request();

static ENTITY: &[Text] = &[text("port"), text("side"), text("peer")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
const RTT: &str = "srtt_us of struct tcp_sock at tcp_probe";
static COLUMNS: &[Column] = columns! {
    counter(Nanosecond) "sum_ns",
        "smoothed round-trip times, summed over one in four segments received", RTT, lower;
    buckets(Nanosecond) "buckets",
        "one in four segments received, at random, by the smoothed round-trip time of their connection",
        RTT, lower;
    counter(One) "retransmits",
        "segments retransmitted, SYN and SYN-ACK included",
        "tcp_retransmit_skb, tcp_retransmit_synack", lower;
    counter(One) "opened", "connections established", "inet_sock_set_state to ESTABLISHED";
    counter(One) "closed",
        "connections that left the state ESTABLISHED, ended by either side",
        "inet_sock_set_state from ESTABLISHED";
};

/// Side and peer of each slot of a port.
const SIDES: [(&str, &str); SlotsOfPort::SLOTS_OF_PORT.0 as usize] = {
    const CONNECTED: u32 = SlotsOfPort::CONNECTED.0;
    const ACCEPTED: u32 = SlotsOfPort::ACCEPTED.0;
    const REMOTE: u32 = SlotsOfPort::REMOTE.0;
    const LOOPBACK: u32 = SlotsOfPort::LOOPBACK.0;
    let mut sides = [("", ""); SlotsOfPort::SLOTS_OF_PORT.0 as usize];
    sides[(CONNECTED | REMOTE) as usize] = ("connected", "remote");
    sides[(ACCEPTED | REMOTE) as usize] = ("accepted", "remote");
    sides[(CONNECTED | LOOPBACK) as usize] = ("connected", "loopback");
    sides[(ACCEPTED | LOOPBACK) as usize] = ("accepted", "loopback");
    sides
};
const COUNTERS: [usize; 3] = [
    offset_of!(connection_counters, retransmits),
    offset_of!(connection_counters, opened),
    offset_of!(connection_counters, closed),
];
const SLOTS: usize = Limits::SLOTS.0 as usize;
const PORT_PAGE: usize = Limits::PORT_PAGE.0 as usize;

/// MySQL's ports (IANA). They have numbers also on a host that only connects to them.
const MYSQL: [u16; 2] = [3306, 33060];

struct Programs {
    skeleton: TcpSkel<'static>,
    sets: usize,
}

struct Tcp {
    programs: Rc<Programs>,
    rtt: Histograms,
    counters: MappedArray<connection_counters>,
    /// The port of each number.
    numbered_ports: MappedArray<u64>,
    /// The number of each port.
    port_numbers: MappedArray<port_page>,
    /// The names of the numbered ports.
    names: Vec<String>,
}

fn load(host: &Host, shared: &Shared) -> Result<Programs, NotRunning> {
    let (skeleton, cpus) = load_object(
        host,
        "tcp",
        TcpSkelBuilder::default(),
        |opened, cpus| {
            let sets = shared_sets(cpus);
            if let Some(constants) = opened.maps.rodata_data.as_mut() {
                constants.sets = sets as u32;
            }
            opened.maps.rtt.set_max_entries((SLOTS * sets) as u32)
        },
        Skel::attach,
    )?;
    shared.add_programs("tcp", skeleton.object())?;
    let sets = shared_sets(cpus);
    Ok(Programs { skeleton, sets })
}

fn open(host: &Host, options: &Options, shared: &Rc<Shared>) -> Result<Box<dyn Probe>, NotRunning> {
    let programs = shared.once(|| load(host, shared))?;
    let maps = &programs.skeleton.maps;
    let tcp = Tcp {
        rtt: Histograms::new(&maps.rtt, SLOTS, programs.sets)?,
        counters: MappedArray::new(&maps.connection_counters)?,
        numbered_ports: MappedArray::new(&maps.numbered_ports)?,
        port_numbers: MappedArray::new(&maps.port_numbers)?,
        names: vec!["other".to_owned()],
        programs,
    };
    let (host, processes) = (host.clone(), options.processes.clone());
    let listeners = Lookup::new(move |()| listeners(&host, processes.clone())).ask(());
    // The programs number each port on which a socket starts to listen; the others get their
    // numbers here.
    for port in MYSQL.into_iter().chain(listeners.unwrap_or_default()) {
        tcp.number_port(port);
    }
    Ok(Box::new(tcp))
}

/// The ports on which sockets listen: first those of the watched processes, then in their namespaces, then in that
/// of the recorder, because there are few numbers.
fn listeners(host: &Host, processes: Vec<ProcessTarget>) -> Vec<u16> {
    let processes = Targets::new(host, processes).find();
    let of_processes: Vec<_> = processes.into_iter().map(|(_, pid)| pid.to_string()).collect();
    let descriptors = of_processes
        .iter()
        .flat_map(|pid| fs::read_dir(host.proc(&format!("{pid}/fd"))));
    let links = descriptors
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let own: HashSet<_> = links
        .filter_map(|link| link.to_str().map(str::to_owned))
        .collect();
    let directories = of_processes.into_iter().chain(["self".to_owned()]);
    let files = directories.flat_map(|process| {
        ["tcp", "tcp6"].map(|file| -> PathBuf { host.proc(&format!("{process}/net/{file}")) })
    });
    let mut ports = vec![];
    for file in files {
        // A namespace without IPv6 has no such file, and a process may have exited.
        let table = fs::read_to_string(file).unwrap_or_default();
        ports.extend(table.lines().filter_map(listening_port));
    }
    ports.sort_by_key(|(_, inode)| !own.contains(&format!("socket:[{inode}]")));
    ports.into_iter().map(|(port, _)| port).collect()
}

/// The local port and the inode of a line of `/proc/net/tcp` (`net/ipv4/tcp_ipv4.c`) that is in state LISTEN.
///
/// ```text
///    0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 12345 1 …
/// ```
fn listening_port(line: &str) -> Option<(u16, u64)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    let is_listening = words.nth(1)? == "0A";
    let inode = words.nth(5)?.parse().ok()?;
    is_listening
        .then(|| Some((u16::from_str_radix(port, 16).ok()?, inode)))
        .flatten()
}

impl Tcp {
    /// Gives a port its number, as the program does when a socket starts to listen on it.
    fn number_port(&self, port: u16) {
        let page = self.port_numbers.bytes(usize::from(port) / PORT_PAGE);
        let Some(entry) = page.get(usize::from(port) % PORT_PAGE) else {
            return;
        };
        if entry.load(Ordering::Relaxed) != 0 {
            return;
        }
        let owner = u32::from(port).to_ne_bytes();
        let owners = &self.programs.skeleton.maps.number_owners;
        let free = (1..Limits::PORTS.0).find(|number| {
            owners
                .update(&number.to_ne_bytes(), &owner, MapFlags::NO_EXIST)
                .is_ok()
        });
        if let Some(numbered) = free.and_then(|number| self.numbered_ports.words(number as usize).first()) {
            numbered.store(u64::from(port), Ordering::Relaxed);
        }
        entry.store(free.unwrap_or(Limits::UNNUMBERED.0) as u8, Ordering::Relaxed);
    }

    /// Adds the names of new numbered ports.
    fn update_names(&mut self) {
        while let Some(port) = self.numbered_ports.counter(self.names.len(), 0) {
            if port == 0 {
                break;
            }
            self.names.push(port.to_string());
        }
    }
}

impl Probe for Tcp {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.update_names();
        for (number, port) in self.names.iter().enumerate() {
            for (index, (side, peer)) in SIDES.iter().enumerate() {
                let slot = number * SIDES.len() + index;
                let counts = COUNTERS.map(|offset| self.counters.counter(slot, offset).unwrap_or(0));
                let is_used = counts.iter().any(|count| *count > 0);
                if is_used || self.rtt.sum(slot) > 0 {
                    rows.row(&[port.as_bytes(), side.as_bytes(), peer.as_bytes()]);
                    let (sum, buckets) = self.rtt.merged(slot);
                    histogram_cells(rows, sum, buckets);
                    counts.into_iter().for_each(|count| rows.uint(count));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_ports_are_found() {
        let line = |state| {
            format!(
                "   0: 00000000000000000000000000000000:0CEA 00000000:0000 {state} 0:0 00:0 0 1000 0 12345 1"
            )
        };
        assert_eq!(listening_port(&line("0A")), Some((3306, 12345)));
        assert_eq!(listening_port(&line("01")), None);
        assert_eq!(
            listening_port("  sl  local_address rem_address   st tx_queue"),
            None
        );
        assert_eq!(listening_port(""), None);
    }
}
