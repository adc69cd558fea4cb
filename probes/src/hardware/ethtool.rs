//! Reads all statistics of network drivers under the driver's names, as `ethtool -S` does.
//!
//! In clouds they show when the limits of an instance delayed or dropped packets:
//! `bw_in_allowance_exceeded`, `bw_out_allowance_exceeded`, `pps_allowance_exceeded`,
//! `conntrack_allowance_exceeded` and `linklocal_allowance_exceeded` of ENA (Amazon), drops of gve
//! (Google) and of mana and netvsc (Azure). Some drivers query their firmware, and hold the lock of
//! all network settings until it answers.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;

use rustix::net;

use loadprint_cpulist::small_files::names;

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ethtool",
    "statistics of the network drivers, including exceeded allowances",
    &SCHEMA,
    open,
)
.read_at(Cadence::Slow)
.live();

/// Metrics are `interface.statistic`; the driver defines their meaning.
static SCHEMA: Schema = Schema::metrics(&[]);

#[derive(Debug)]
struct Ethtool {
    host: Host,
    socket: Interfaces,
    /// The metric names of each interface.
    names: BTreeMap<String, Vec<String>>,
    values: Vec<u64>,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let path = host.sys("class/net");
    let unavailable = |reason: String| NotRunning::Unavailable(format!("{}: {reason}", path.display()));
    let socket = Interfaces::open()
        .map_err(|error| unavailable(format!("{error}; it needs a socket of family AF_INET")))?;
    let mut ethtool = Ethtool {
        host: host.clone(),
        socket,
        names: BTreeMap::new(),
        values: vec![],
    };
    let mut rows = Rows::default();
    ethtool
        .sample(&mut rows)
        .map_err(|error| NotRunning::Unavailable(error.to_string()))?;
    if rows.is_empty() {
        return Err(unavailable(
            "no network driver has statistics; run the recorder in the network namespace of the host's network devices".to_owned(),
        ));
    }
    Ok(Background::spawn("ethtool", move |rows| ethtool.sample(rows)))
}

impl Ethtool {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let interfaces = devices(&self.host);
        self.names.retain(|name, _| interfaces.contains(name));
        let mut failed = None;
        for interface in &interfaces {
            if let Err(error) = self.read(interface, rows) {
                self.names.remove(interface);
                // The interface was removed, or its driver has no statistics.
                if !matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP)) {
                    failed = Some(ProbeError::Read {
                        path: format!("ethtool -S {interface}"),
                        source: error,
                    });
                }
            }
        }
        match failed {
            Some(error) if rows.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    fn read(&mut self, interface: &str, rows: &mut Rows) -> io::Result<()> {
        let count = self.socket.count(interface)?;
        if self.names.get(interface).is_none_or(|names| names.len() != count) {
            let names = self.socket.names(interface, count)?;
            self.names
                .insert(interface.to_owned(), metrics(interface, &names));
        }
        self.socket.values(interface, count, &mut self.values)?;
        for (name, value) in self.names.get(interface).into_iter().flatten().zip(&self.values) {
            rows.row(&[name.as_bytes()]);
            rows.int(value.cast_signed());
        }
        Ok(())
    }
}

/// The interfaces of devices. If there are none, as in a container, all interfaces except `lo`.
fn devices(host: &Host) -> Vec<String> {
    let mut all = names(&host.sys("class/net"));
    all.retain(|name| name != "lo");
    let is_device = |name: &String| host.sys(&format!("class/net/{name}/device")).exists();
    if all.iter().any(is_device) {
        all.retain(is_device);
    }
    all
}

/// The names `interface.statistic`, with a number for a name that the driver uses again.
fn metrics(interface: &str, names: &[String]) -> Vec<String> {
    let mut metrics: Vec<String> = Vec::with_capacity(names.len());
    let mut times = BTreeMap::new();
    for name in names {
        let time = times.entry(name).or_insert(0);
        *time += 1;
        metrics.push(match time {
            1 => format!("{interface}.{name}"),
            _ => format!("{interface}.{name} #{time}"),
        });
    }
    metrics
}

const GSSET_INFO: u32 = 0x37;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
/// The string set with the names of the statistics (`ETH_SS_STATS`).
const SS_STATS: u32 = 1;
/// Bytes of a name, padded with zeros.
const NAME: usize = 32;
/// Spare entries: the kernel writes all statistics that the driver has at the call, which can be
/// more than it counted before.
const SLACK: usize = 4096;
/// Drivers with many queues have thousands.
const MOST: usize = 1 << 20;

/// A socket for these calls; it is never connected.
#[derive(Debug)]
pub struct Interfaces {
    socket: OwnedFd,
}

impl Interfaces {
    /// Opens the socket, in the network namespace of this thread.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn open() -> io::Result<Self> {
        let socket = net::socket_with(
            net::AddressFamily::INET,
            net::SocketType::DGRAM,
            net::SocketFlags::CLOEXEC,
            None,
        )?;
        Ok(Self { socket })
    }

    /// The number of statistics of the driver.
    ///
    /// # Errors
    /// When the interface does not exist, or its driver has no statistics.
    pub fn count(&self, interface: &str) -> io::Result<usize> {
        // Command and padding, a mask of sets, then a word with the count of the one set.
        let mut words = vec![0u64; 3];
        words[0] = u64::from(GSSET_INFO);
        words[1] = 1 << SS_STATS;
        self.call(interface, &mut words)?;
        if words[1] == 0 {
            return Ok(0);
        }
        let [first, second, third, fourth, ..] = words[2].to_ne_bytes();
        let count = u32::from_ne_bytes([first, second, third, fourth]) as usize;
        if count > MOST {
            return Err(io::Error::other(format!(
                "the driver reports {count} statistics, more than any driver has"
            )));
        }
        Ok(count)
    }

    /// The names of the statistics.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn names(&self, interface: &str, count: usize) -> io::Result<Vec<String>> {
        // Command, set, count, then the names: twelve bytes before them.
        let mut words = vec![0u64; 2 + (count + SLACK) * NAME / 8];
        words[0] = pair(GSTRINGS, SS_STATS);
        words[1] = pair(count as u32, 0);
        self.call(interface, &mut words)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(bytes[12..].chunks_exact(NAME).take(count).map(name).collect())
    }

    /// The current values.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn values(&self, interface: &str, count: usize, values: &mut Vec<u64>) -> io::Result<()> {
        values.clear();
        values.resize(1 + count + SLACK, 0);
        values[0] = pair(GSTATS, count as u32);
        self.call(interface, values)?;
        values.remove(0);
        values.truncate(count);
        Ok(())
    }

    fn call(&self, interface: &str, words: &mut [u64]) -> io::Result<()> {
        // SAFETY: all zeros are a valid ifreq without a name.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the name ends with a zero; the kernel reads and writes only what the command in
        // `words` asks for, `words` has room for more than that, and the kernel stores no pointer.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// Packs two consecutive 32-bit fields into one word.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The name up to its first zero.
#[must_use]
pub fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::sync::Mutex;
    use std::sync::PoisonError;
    use std::time::Duration;

    use loadprint_recording::rows::Value;

    use super::*;

    /// One test creates interfaces that the other must not see.
    static INTERFACES: Mutex<()> = Mutex::new(());

    #[test]
    fn duplicate_names_are_separate_metrics() {
        let names = ["rx".to_owned(), "tx".to_owned(), "rx".to_owned()];
        assert_eq!(metrics("eth0", &names), ["eth0.rx", "eth0.tx", "eth0.rx #2"]);
    }

    /// A real veth pair: its statistic `peer_ifindex` is the interface index of the peer.
    #[test]
    fn statistics_of_a_real_driver() {
        let _turn = INTERFACES.lock().unwrap_or_else(PoisonError::into_inner);
        let (near, far) = (
            format!("lpe{}", std::process::id() % 100_000),
            format!("lpf{}", std::process::id() % 100_000),
        );
        let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far]);
        let index = fs::read_to_string(format!("/sys/class/net/{far}/ifindex")).unwrap();
        let mut ethtool = Ethtool {
            host: Host::default(),
            socket: Interfaces::open().unwrap(),
            names: BTreeMap::new(),
            values: vec![],
        };
        let mut rows = Rows::default();
        ethtool.read(&near, &mut rows).unwrap();
        ip(&["link", "del", &near]);
        let wanted = format!("{near}.peer_ifindex");
        let row = (0..rows.len())
            .find(|row| rows.entity(*row).next() == Some(wanted.as_bytes()))
            .unwrap();
        assert_eq!(rows.value(row, 0, 1), Value::Bits(index.trim().parse().unwrap()));
        assert_eq!(
            ethtool.read(&near, &mut rows).unwrap_err().raw_os_error(),
            Some(libc::ENODEV)
        );
    }

    #[test]
    fn loopback_has_no_statistics_and_a_host_without_devices_is_an_error() {
        let _turn = INTERFACES.lock().unwrap_or_else(PoisonError::into_inner);
        let error = open(&Host::new("/nonexistent", "/nonexistent"), &Options::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/nonexistent/class/net: "), "{error}");
        let socket = Interfaces::open().unwrap();
        assert_eq!(socket.count("lo").unwrap_or(0), 0);
        // On this host the probe runs or reports why it does not.
        if let Ok(mut probe) = open(&Host::default(), &Options::default()) {
            let mut rows = Rows::default();
            probe.begin();
            probe.wait(Duration::from_secs(60));
            probe.sample(&mut rows).unwrap();
            assert!(!rows.is_empty());
        }
    }
}
