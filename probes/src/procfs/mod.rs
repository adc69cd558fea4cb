//! Reads sources under `/proc`: one module each, with the format quoted above its parser.

pub mod cgroup;
pub mod cpu;
pub mod diskstats;
mod entities;
pub mod fields;
pub mod interrupts;
pub mod memory;
pub mod mounts;
pub mod net_dev;
pub mod pressure;
pub mod process;
pub mod snmp;
pub mod sockets;
pub mod softnet;
pub mod targets;
pub mod threads;
