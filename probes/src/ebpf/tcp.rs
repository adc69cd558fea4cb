//! TCP as the kernel sees it: smoothed round-trip times, retransmits, connections opened and closed, by port.
//!
//! All network namespaces of the host: where server and load share one, both ends of a connection are seen, each under its side.
//! A round-trip time is what the connection has smoothed it to (RFC 6298), taken at each segment that it receives. Answers carry
//! the acknowledgements, so that a side which waits for the other's work counts that work, up to the delayed acknowledgement
//! (40 ms): a client's includes the server's time for a statement. On an idle connection nothing is counted.

use std::fmt::Debug;
use std::fmt::Formatter;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use libbpf_rs::MapCore;
use libbpf_rs::MapFlags;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::skel::Skel;
use libbpf_rs::skel::SkelBuilder;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Histograms;
use super::Words;
use super::histogram_cells;
use super::loaded;
use super::object;
use super::programs::size_calls;
use super::roles::unmapped;
use super::skeletons::tcp::TcpSkel;
use super::skeletons::tcp::TcpSkelBuilder;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::procfs::targets::Targets;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ebpf_tcp",
    "TCP round-trip times, retransmits and connections by port",
    &SCHEMA,
    open,
)
.live();

static ENTITY: &[Text] = &[text("port"), text("side"), text("peer")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
const RTT: &str = "srtt_us of struct tcp_sock at tcp_probe";
static COLUMNS: &[Column] = &[
    Column::counter(
        "sum_ns",
        Unit::Nanosecond,
        "smoothed round-trip times, summed over segments received",
        RTT,
    )
    .lower(),
    Column::buckets(
        "buckets",
        Unit::Nanosecond,
        "segments received, by the smoothed round-trip time of their connection",
        RTT,
    )
    .lower(),
    Column::counter(
        "retransmits",
        Unit::One,
        "segments sent again, SYN and SYN-ACK included",
        "tcp_retransmit_skb, tcp_retransmit_synack",
    )
    .lower(),
    Column::counter(
        "opened",
        Unit::One,
        "connections established",
        "inet_sock_set_state to ESTABLISHED",
    ),
    Column::counter(
        "closed",
        Unit::One,
        "connections no longer established, whoever ended them",
        "inet_sock_set_state from ESTABLISHED",
    ),
];

/// As in `tcp.bpf.c`: ports with "other", places of a port, and the pages of the table by port.
const PORTS: usize = 16;
const PLACES: [(&str, &str); 4] = [
    ("connected", "remote"),
    ("accepted", "remote"),
    ("connected", "loopback"),
    ("accepted", "loopback"),
];
const PORT_PAGE: usize = 4096;
const UNNUMBERED: u8 = 255;

/// MySQL's ports (IANA): known also on a host that only connects to them.
const MYSQL: [u16; 2] = [3306, 33060];

/// Sets of histograms at the most.
const MAX_SETS: usize = 16;

struct Tcp {
    programs: TcpSkel<'static>,
    rtt: Histograms,
    counted: Words,
    known: Words,
    numbers: Words,
    /// `known` in words, once a port has its number.
    names: Vec<String>,
}

impl Debug for Tcp {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tcp").finish_non_exhaustive()
    }
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let load = |cpus: usize| {
        let sets = cpus.next_power_of_two().min(MAX_SETS);
        let mut opened = TcpSkelBuilder::default().open(object())?;
        size_calls(opened.open_object_mut(), cpus)?;
        if let Some(constants) = opened.maps.rodata_data.as_mut() {
            constants.sets = sets as u32;
        }
        let slots = PORTS * PLACES.len();
        opened.maps.rtt.set_max_entries((slots * sets) as u32)?;
        let mut programs = opened.load()?;
        programs.attach()?;
        Ok((programs, slots, sets))
    };
    let (programs, slots, sets) = loaded(host, "tcp", load)?;
    options.ebpf.account("tcp", programs.object())?;
    let mapped = |maps: &TcpSkel<'_>| -> io::Result<_> {
        let maps = &maps.maps;
        Ok((
            Histograms::new(&maps.rtt, slots, sets)?,
            Words::new(&maps.counted)?,
            Words::new(&maps.known)?,
            Words::new(&maps.numbers)?,
        ))
    };
    let (rtt, counted, known, numbers) = mapped(&programs).map_err(|error| unmapped(&error))?;
    let tcp = Tcp {
        programs,
        rtt,
        counted,
        known,
        numbers,
        names: vec!["other".to_owned()],
    };
    // The programs see who begins to listen from here on; those who listen already have their numbers now.
    for port in MYSQL.into_iter().chain(listeners(host, options)) {
        tcp.number(port);
    }
    Ok(Box::new(tcp))
}

/// The ports that somebody listens on: those of the watched processes' namespaces first, then those of the recorder's.
fn listeners(host: &Host, options: &Options) -> Vec<u16> {
    let processes = Targets::new(host, options.processes.clone()).find();
    let of_processes = processes.into_iter().map(|(_, pid)| pid.to_string());
    let directories = of_processes.chain(["self".to_owned()]);
    let files = directories.flat_map(|process| {
        ["tcp", "tcp6"].map(|file| -> PathBuf { host.proc(&format!("{process}/net/{file}")) })
    });
    let mut ports = vec![];
    for file in files {
        // A namespace without IPv6 has no such file, and a process may be gone.
        let table = fs::read_to_string(file).unwrap_or_default();
        ports.extend(table.lines().filter_map(listening_port));
    }
    ports
}

/// The local port of a line of `/proc/net/tcp` (`net/ipv4/tcp_ipv4.c`) that is in state LISTEN.
///
/// ```text
///    0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 12345 1 …
/// ```
fn listening_port(line: &str) -> Option<u16> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    let is_listening = words.nth(1)? == "0A";
    is_listening.then(|| u16::from_str_radix(port, 16).ok()).flatten()
}

impl Tcp {
    /// Gives a port a number, as the program does for one that is listened on later; more than fifteen share "other".
    fn number(&self, port: u16) {
        let page = self.numbers.element(usize::from(port) / PORT_PAGE);
        let Some(word) = page.get(usize::from(port) % PORT_PAGE / 8) else {
            return;
        };
        let byte = usize::from(port) % 8;
        if word.load(Ordering::Relaxed).to_ne_bytes()[byte] != 0 {
            return;
        }
        let owner = u32::from(port).to_ne_bytes();
        let owners = &self.programs.maps.owners;
        let free = (1..PORTS as u8).find(|number| {
            owners
                .update(&u32::from(*number).to_ne_bytes(), &owner, MapFlags::NO_EXIST)
                .is_ok()
        });
        if let Some(place) = free.and_then(|number| self.known.element(usize::from(number)).first()) {
            place.store(u64::from(port), Ordering::Relaxed);
        }
        let mut bytes = [0; 8];
        bytes[byte] = free.unwrap_or(UNNUMBERED);
        word.fetch_or(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }

    /// The names of the ports that have a number, "other" first.
    fn update_names(&mut self) {
        while let Some(port) = self.known.element(self.names.len()).first() {
            match port.load(Ordering::Relaxed) {
                0 => break,
                port => self.names.push(port.to_string()),
            }
        }
    }
}

impl Probe for Tcp {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.update_names();
        for (number, port) in self.names.iter().enumerate() {
            for (place, (side, peer)) in PLACES.iter().enumerate() {
                let slot = number * PLACES.len() + place;
                let counts = self.counted.element(slot);
                let is_used = counts.iter().any(|count| count.load(Ordering::Relaxed) > 0);
                if is_used || self.rtt.sum(slot) > 0 {
                    rows.row(&[port.as_bytes(), side.as_bytes(), peer.as_bytes()]);
                    let (sum, buckets) = self.rtt.merged(slot);
                    histogram_cells(rows, sum, buckets);
                    for count in counts {
                        rows.uint(count.load(Ordering::Relaxed));
                    }
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
    fn only_those_who_listen_are_found() {
        let of =
            |state| format!("   0: 00000000000000000000000000000000:0CEA 00000000:0000 {state} 0:0 00:0 0");
        assert_eq!(listening_port(&of("0A")), Some(3306));
        assert_eq!(listening_port(&of("01")), None);
        assert_eq!(
            listening_port("  sl  local_address rem_address   st tx_queue"),
            None
        );
        assert_eq!(listening_port(""), None);
    }
}
