//! The one list of probes. A probe is added by its file and its line here; the tests walk the list.

use crate::ProbeEntry;
use crate::ebpf;
use crate::hardware::energy;
use crate::hardware::ethtool;
use crate::hardware::frequency;
use crate::hardware::nvme;
#[cfg(feature = "mysql")]
use crate::mysql;
use crate::perf;
use crate::procfs::cgroup;
use crate::procfs::cpu;
use crate::procfs::diskstats;
use crate::procfs::interrupts;
use crate::procfs::memory;
use crate::procfs::net_dev;
use crate::procfs::pressure;
use crate::procfs::process;
use crate::procfs::snmp;
use crate::procfs::sockets;
use crate::procfs::softnet;
use crate::procfs::threads;
use crate::scrape;

/// All probes, in the order in which they are read at a tick.
pub static PROBES: &[ProbeEntry] = &[
    cpu::ENTRY,
    interrupts::ENTRY,
    interrupts::SOFTIRQS_ENTRY,
    diskstats::ENTRY,
    net_dev::ENTRY,
    softnet::ENTRY,
    snmp::ENTRY,
    memory::MEMORY_ENTRY,
    memory::VMSTAT_ENTRY,
    pressure::ENTRY,
    process::ENTRY,
    threads::ENTRY,
    sockets::ENTRY,
    cgroup::ENTRY,
    energy::ENTRY,
    frequency::ENTRY,
    ethtool::ENTRY,
    nvme::ENTRY,
    ebpf::sched::time::ENTRY,
    ebpf::sched::time::SWITCHES_ENTRY,
    ebpf::sched::states::ENTRY,
    ebpf::sched::exchanges::ENTRY,
    ebpf::block::ENTRY,
    ebpf::block::SIZE_ENTRY,
    ebpf::irq::ENTRY,
    ebpf::tcp::ENTRY,
    ebpf::syscalls::ENTRY,
    ebpf::syscalls::LATENCY,
    ebpf::statements::ENTRY,
    ebpf::profile::ENTRY,
    ebpf::programs::ENTRY,
    #[cfg(feature = "mysql")]
    mysql::status::ENTRY,
    #[cfg(feature = "mysql")]
    mysql::statements::ENTRY,
    #[cfg(feature = "mysql")]
    mysql::digests::ENTRY,
    perf::ENTRY,
    scrape::ENTRY,
];
