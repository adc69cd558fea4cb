//! Compares the TCP probe with connections over a veth pair between two private namespaces:
//! round-trip times with those of the sockets, retransmits with the counters of the namespaces,
//! connections with their exact number. Needs root.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::process;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::prelude::*;
use loadprint_recording::histogram::bucket;
use rustix::net::sockopt::set_socket_linger;
use rustix::thread::LinkNameSpaceType;
use rustix::thread::move_into_link_name_space;

/// A port that always has a number. Parallel tests on one port would count the connections of each
/// other. Not 33060: the kernel also assigns it to outgoing connections of other programs.
const PORT: u16 = 3306;
const SECTION: &str = "connections";
const CLIENT: &str = "10.77.60.1";
const SERVER: &str = "10.77.60.2";
/// Addresses of client and server; locally administered.
const MACS: [&str; 2] = ["02:00:00:77:60:01", "02:00:00:77:60:02"];

fn ip(arguments: &str) {
    run(Command::new("ip").args(arguments.split(' ')));
}

/// Two network namespaces with a veth pair between them, removed on drop.
struct Pair {
    client: String,
    server: String,
}

impl Pair {
    fn new() -> Self {
        let pair = Self {
            client: format!("loadprint-client-{}", process::id()),
            server: format!("loadprint-server-{}", process::id()),
        };
        let Self { client, server } = &pair;
        ip(&format!("netns add {client}"));
        ip(&format!("netns add {server}"));
        ip(&format!(
            "link add veth0 address {} netns {client} type veth peer name veth0 address {} netns {server}",
            MACS[0], MACS[1]
        ));
        for (namespace, address) in [(client, CLIENT), (server, SERVER)] {
            ip(&format!("-n {namespace} addr add {address}/24 dev veth0"));
            ip(&format!("-n {namespace} link set veth0 up"));
            ip(&format!("-n {namespace} link set lo up"));
        }
        // Permanent neighbour entries: without ARP there is no "no route to host" while an address
        // is removed.
        for (namespace, address, mac) in [(client, SERVER, MACS[1]), (server, CLIENT, MACS[0])] {
            ip(&format!(
                "-n {namespace} neigh replace {address} lladdr {mac} dev veth0 nud permanent"
            ));
        }
        pair
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.client));
        ip(&format!("netns del {}", self.server));
    }
}

/// Runs `work` on a thread in a namespace.
fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let inside = move || {
            let file = File::open(format!("/run/netns/{namespace}")).unwrap();
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        scope.spawn(inside).join().unwrap()
    })
}

/// Echoes every message of this many connections, on threads in the server's namespace.
fn echo(namespace: &str, connections: usize) {
    let listener = within(namespace, || TcpListener::bind(("0.0.0.0", PORT)).unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut message = [0; 100];
                // The client closes it, in some cases with a reset.
                while stream.read_exact(&mut message).is_ok() {
                    stream.write_all(&message).unwrap();
                }
            });
        }
    });
}

fn exchange(stream: &mut TcpStream) {
    let mut message = [b'x'; 100];
    stream.write_all(&message).unwrap();
    stream.read_exact(&mut message).unwrap();
}

/// The kernel's information about a socket (tcp(7), TCP_INFO).
struct Info {
    /// The smoothed round-trip time in microseconds.
    rtt_us: u64,
    /// Segments received, including SYN and FIN.
    segments: u64,
}

fn info(stream: &TcpStream) -> Info {
    let mut info = [0_u32; 64];
    let mut size = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `info`.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    assert_eq!(result, 0);
    // struct tcp_info (include/uapi/linux/tcp.h): eight bytes, then 24 words, of which tcpi_rtt is
    // the sixteenth, then four numbers of 64 bits, tcpi_segs_out and tcpi_segs_in.
    Info {
        rtt_us: u64::from(info[2 + 15]),
        segments: u64::from(info[2 + 24 + 8 + 1]),
    }
}

fn retransmitted(namespace: &str) -> u64 {
    let snmp = within(namespace, || {
        fs::read_to_string("/proc/thread-self/net/snmp").unwrap()
    });
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
    let names = lines.next().unwrap().split(' ');
    let mut values = names.zip(lines.next().unwrap().split(' '));
    let (_, value) = values.find(|(name, _)| *name == "RetransSegs").unwrap();
    value.parse().unwrap()
}

fn of(before: &Reading, after: &Reading, side: &str, peer: &str) -> Row {
    between(before, after, &format!("{PORT} {side} {peer}"))
}

#[test]
fn connections_and_their_round_trip_times_are_counted_on_both_sides() {
    let _alone = alone(SECTION);
    let pair = Pair::new();
    let mut probe = Live::open("ebpf_tcp", &Options::default());
    let before = probe.read();
    echo(&pair.server, 7);
    // Seven connections with thirteen exchanges each; the last two end with a reset.
    let (reported, unread) = within(&pair.client, || {
        let (mut reported, mut unread) = (vec![], 0);
        for connection in 0..7 {
            let mut stream = TcpStream::connect((SERVER, PORT)).unwrap();
            let mut last = info(&stream);
            for _ in 0..13 {
                exchange(&mut stream);
                let next = info(&stream);
                // The answer is one segment, unless the server is late: then its kernel
                // acknowledges first, or the client retransmits.
                unread += next.segments - last.segments - 1;
                reported.push(last.rtt_us);
                last = next;
            }
            reported.push(last.rtt_us);
            if connection >= 5 {
                set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            }
        }
        (reported, unread)
    });
    let after = eventually("both ends of all connections are closed", || {
        let after = probe.read();
        let closed = |side| of(&before, &after, side, "remote")["closed"];
        (closed("connected") == 7 && closed("accepted") == 7).then_some(after)
    });
    for side in ["connected", "accepted"] {
        let counted = of(&before, &after, side, "remote");
        assert_eq!(counted["opened"], 7, "{side}");
        // One segment in four is measured.
        assert!(counted.count() >= 7, "{side}: {counted:?}");
        let nothing = of(&before, &after, side, "loopback");
        assert_eq!((nothing.count(), nothing["opened"]), (0, 0), "{side}");
    }
    // The probe reads the value at each segment, so it is the one that the socket reported after
    // the previous segment. Between two segments of one exchange the test does not read it. The
    // socket reports whole microseconds, the histogram eighths.
    let known: BTreeSet<_> = reported
        .iter()
        .flat_map(|us| bucket(us * 1000)..=bucket(us * 1000 + 875))
        .collect();
    let counted = of(&before, &after, "connected", "remote");
    let places = counted.buckets.iter().enumerate();
    let unknown: u64 = places
        .filter(|(place, _)| !known.contains(place))
        .map(|(_, count)| count)
        .sum();
    assert!(
        unknown <= unread,
        "{unknown} times of {unread} unread segments: {:?}, reported {reported:?}",
        counted.filled()
    );
}

#[test]
fn loopback_has_separate_rows() {
    let _alone = alone(SECTION);
    let pair = Pair::new();
    let mut probe = Live::open("ebpf_tcp", &Options::default());
    let before = probe.read();
    echo(&pair.server, 5);
    within(&pair.server, || {
        // Connections to an address of the host are loopback, as those to 127.0.0.1.
        for address in ["127.0.0.1", "127.0.0.1", "127.0.0.1", SERVER, SERVER] {
            exchange(&mut TcpStream::connect((address, PORT)).unwrap());
        }
    });
    let after = probe.read();
    for side in ["connected", "accepted"] {
        assert_eq!(of(&before, &after, side, "loopback")["opened"], 5, "{side}");
        assert_eq!(of(&before, &after, side, "remote")["opened"], 0, "{side}");
    }
}

#[test]
fn retransmits_equal_the_counters_of_the_namespaces() {
    let _alone = alone(SECTION);
    let pair = Pair::new();
    let mut probe = Live::open("ebpf_tcp", &Options::default());
    let before = probe.read();
    echo(&pair.server, 2);
    let (mut kept, server) = within(&pair.client, || {
        let mut stream = TcpStream::connect((SERVER, PORT)).unwrap();
        exchange(&mut stream);
        (stream, pair.server.as_str())
    });
    // The server's namespace drops packets for its address, so the client retransmits.
    ip(&format!("-n {server} addr del {SERVER}/24 dev veth0"));
    kept.write_all(&[b'x'; 100]).unwrap();
    let syn = thread::scope(|scope| {
        let lost = scope.spawn(|| within(&pair.client, || TcpStream::connect((SERVER, PORT)).unwrap()));
        eventually("three retransmits", || {
            (retransmitted(&pair.client) >= 3).then_some(())
        });
        ip(&format!("-n {server} addr add {SERVER}/24 dev veth0"));
        lost.join().unwrap()
    });
    kept.read_exact(&mut [0; 100]).unwrap();
    drop((kept, syn));
    let after = eventually("the count of the namespaces", || {
        let in_both = retransmitted(&pair.client) + retransmitted(&pair.server);
        let after = probe.read();
        let sides = ["connected", "accepted"].map(|side| of(&before, &after, side, "remote"));
        let counted: u64 = sides.iter().map(|side| side["retransmits"]).sum();
        (counted == in_both).then_some(after)
    });
    assert!(of(&before, &after, "connected", "remote")["retransmits"] >= 3);
}
