//! Reads the statistics of a network driver with ioctl(2) (`SIOCETHTOOL`, netdevice(7),
//! `include/uapi/linux/ethtool.h`).

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;

use rustix::net;

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
