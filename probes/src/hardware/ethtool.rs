//! Reads all statistics of network drivers under the driver's names, as `ethtool -S` does.
//!
//! In clouds they show when the limits of an instance delayed or dropped packets:
//! `bw_in_allowance_exceeded`, `bw_out_allowance_exceeded`, `pps_allowance_exceeded`,
//! `conntrack_allowance_exceeded` and `linklocal_allowance_exceeded` of ENA (Amazon), drops of gve
//! (Google) and of mana and netvsc (Azure). Some drivers query their firmware, and hold the lock of
//! all network settings until it answers.

use std::collections::BTreeMap;
use std::fs;

use super::ioctl::Interfaces;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "ethtool",
    "statistics of the network drivers, including exceeded allowances",
    &SCHEMA,
    open,
)
.slowly()
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

    fn read(&mut self, interface: &str, rows: &mut Rows) -> std::io::Result<()> {
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
    let Ok(entries) = fs::read_dir(host.sys("class/net")) else {
        return vec![];
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut all: Vec<_> = names.filter(|name| name != "lo").collect();
    all.sort();
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

#[cfg(test)]
mod tests {
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
