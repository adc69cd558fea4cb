//! Creates network namespaces with a veth pair by `ip` (iproute2). A namespace has no name in
//! /run/netns: it exists as long as a descriptor of the daemon or a process in it, so it cannot be
//! left over. To enter it: `nsenter --net=/proc/PID/ns/net`, or `ip netns attach NAME PID`. Neither
//! interface has an IPv6 link-local address: its router solicitations would count as traffic of the
//! load.

use std::fs;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::thread::UnshareFlags;
use rustix::thread::unshare_unsafe;
use serde_json::Value;

/// The interface's name inside the namespace.
pub const PEER_INTERFACE: &str = "veth0";

/// A namespace; it exists as long as this value or a process in it.
#[derive(Debug)]
pub struct NetNs {
    pub name: String,
    /// The interface's name on the host.
    pub host_interface: String,
    pub descriptor: Arc<OwnedFd>,
}

/// An IPv4 address with its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: Ipv4Addr,
    length: u8,
}

impl Cidr {
    /// Parses `198.18.0.1/30`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || format!("address `{text}` is not like 198.18.0.1/30");
        let (address, length) = text.split_once('/').with_context(wrong)?;
        let cidr = Self {
            address: address.parse().with_context(wrong)?,
            length: length.parse().with_context(wrong)?,
        };
        if cidr.length == 0 || cidr.length > 32 {
            bail!(wrong());
        }
        Ok(cidr)
    }

    fn network(self, length: u8) -> u32 {
        u32::from(self.address) >> (32 - length)
    }

    fn overlaps(self, other: Self) -> bool {
        let length = self.length.min(other.length);
        self.network(length) == other.network(length)
    }
}

impl NetNs {
    /// Creates the namespace and the pair; `host_interface` is the name of the interface on the
    /// host.
    pub fn create(name: &str, host_interface: &str, host: &str, peer: &str) -> Result<Self> {
        let (host_cidr, peer_cidr) = (Cidr::parse(host)?, Cidr::parse(peer)?);
        if host_cidr.address == peer_cidr.address || !host_cidr.overlaps(peer_cidr) {
            bail!("{host} and {peer} must be different addresses of the same network");
        }
        refuse_address_in_use(host_cidr, host)?;
        let descriptor = Arc::new(new_namespace()?);
        // `ip` also accepts a path as the name of a namespace.
        let path = format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd());
        ip(
            None,
            &[
                "link",
                "add",
                host_interface,
                "type",
                "veth",
                "peer",
                "name",
                PEER_INTERFACE,
                "netns",
                &path,
            ],
        )?;
        let netns = Self {
            name: name.to_owned(),
            host_interface: host_interface.to_owned(),
            descriptor,
        };
        netns
            .configure(host, peer)
            .inspect_err(|_| drop(remove_interface(host_interface)))?;
        Ok(netns)
    }

    fn configure(&self, host: &str, peer: &str) -> Result<()> {
        let inside = Some(&self.descriptor);
        for (namespace, interface, address) in [
            (None, self.host_interface.as_str(), host),
            (inside, PEER_INTERFACE, peer),
        ] {
            // The kernel refuses it without IPv6 (`ipv6.disable=1`).
            if Path::new("/proc/sys/net/ipv6").exists() {
                ip(namespace, &["link", "set", interface, "addrgenmode", "none"])?;
            }
            ip(namespace, &["address", "add", address, "dev", interface])?;
            ip(namespace, &["link", "set", interface, "up"])?;
        }
        ip(inside, &["link", "set", "lo", "up"])
    }
}

/// Removes a veth pair at once, by the name of its interface on the host; it need not exist. The kernel removes it
/// some time after the last process has exited.
pub fn remove_interface(name: &str) -> Result<()> {
    let exists = || fs::symlink_metadata(format!("/sys/class/net/{name}")).is_ok();
    if !exists() {
        return Ok(());
    }
    // The kernel may remove the pair first, when the namespace's last process exits.
    ip(None, &["link", "delete", name, "type", "veth"])
        .or_else(|error| if exists() { Err(error) } else { Ok(()) })
}

/// Creates a namespace in a temporary thread and returns its descriptor.
fn new_namespace() -> Result<OwnedFd> {
    let enter = || -> io::Result<OwnedFd> {
        // SAFETY: a network namespace leaves the descriptor table alone, which is what makes
        // unshare unsafe.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    match std::thread::spawn(enter).join() {
        Ok(result) => result.context("cannot create a network namespace"),
        Err(_) => bail!("cannot create a network namespace: the thread panicked"),
    }
}

fn refuse_address_in_use(wanted: Cidr, text: &str) -> Result<()> {
    let listing = ip_output(None, &["-json", "address", "show"])?;
    let interfaces: Value = serde_json::from_slice(&listing).context("`ip -json address` is not JSON")?;
    for interface in interfaces.as_array().into_iter().flatten() {
        for info in interface["addr_info"].as_array().into_iter().flatten() {
            let (Some(local), Some(length)) = (info["local"].as_str(), info["prefixlen"].as_u64()) else {
                continue;
            };
            let other = format!("{local}/{length}");
            if Cidr::parse(&other).is_ok_and(|cidr| cidr.overlaps(wanted)) {
                let name = interface["ifname"].as_str().unwrap_or("?");
                bail!("the network of {text} is in use: {name} has {other}; choose another network");
            }
        }
    }
    Ok(())
}

fn ip(namespace: Option<&Arc<OwnedFd>>, arguments: &[&str]) -> Result<()> {
    ip_output(namespace, arguments).map(drop)
}

fn ip_output(namespace: Option<&Arc<OwnedFd>>, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::null());
    if let Some(namespace) = namespace.cloned() {
        // SAFETY: setns is a plain system call on a descriptor that the closure holds.
        unsafe {
            command.pre_exec(
                move || match libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                },
            );
        }
    }
    let output = command
        .output()
        .context("cannot execute `ip`; install iproute2")?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`ip {}`: {}",
            arguments.join(" "),
            message.trim().replace('\n', "; ")
        );
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_by_the_shorter_prefix() {
        let parse = |text| Cidr::parse(text).unwrap();
        assert!(parse("198.18.0.1/30").overlaps(parse("198.18.0.2/30")));
        assert!(parse("198.18.0.1/30").overlaps(parse("198.18.200.1/16")));
        assert!(!parse("198.18.0.1/30").overlaps(parse("198.18.0.5/30")));
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for text in [
            "",
            "198.18.0.1",
            "198.18.0.1/33",
            "198.18.0/30",
            "198.18.0.1/0",
            "fd00::2/64",
            "a/30",
        ] {
            assert!(Cidr::parse(text).is_err(), "{text}");
        }
    }
}
