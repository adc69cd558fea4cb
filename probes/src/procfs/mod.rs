//! Reads sources under `/proc`: one module each, with the format quoted above its parser.

pub mod cgroup;
pub mod cpu;
pub mod diskstats;
pub mod fields;
pub mod interrupts;
pub mod meminfo;
pub mod mounts;
pub mod net_dev;
pub mod pressure;
pub mod process;
pub mod snmp;
pub mod sockets;
pub mod softirqs;
pub mod targets;
pub mod threads;
pub mod vmstat;

/// The fix for a file under `/proc` that cannot be opened.
pub(crate) const MOUNT_PROC: &str = "mount /proc, or set its path with --proc-root";
