"""Lists the columns of the recorded tables and their factors to base units."""

from __future__ import annotations

import re

from loadprint.reading.recording import Run

SECTOR = 512  # bytes, for every block size of the device (Documentation/block/stat.rst)
VETH = "veth"
# the supervisor names its end of a veth pair after its process id, which differs in each run
SUPERVISOR_VETH = re.compile(r"lp\d+n\d+")
PRESSURE = "SELECT tick, total_us::DOUBLE AS total, resource || '_' || severity AS kind FROM t"
NUMBER = "^[0-9]+$"  # a CPU in a column `cpus`, not a set of CPUs
MILLISECOND, MICROSECOND, NANOSECOND = 1e-3, 1e-6, 1e-9
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
CPU_HOST_FIELDS = ("ctxt", "intr", "softirqs", "processes")
DISK_UNITS = {
    "reads": 1.0,
    "read_merges": 1.0,
    "read_sectors": SECTOR,
    "read_ms": MILLISECOND,
    "writes": 1.0,
    "write_merges": 1.0,
    "write_sectors": SECTOR,
    "write_ms": MILLISECOND,
    "io_ms": MILLISECOND,
    "weighted_ms": MILLISECOND,
    "discards": 1.0,
    "discard_sectors": SECTOR,
    "discard_ms": MILLISECOND,
    "flushes": 1.0,
    "flush_ms": MILLISECOND,
}
TRANSFER_UNITS = {"transfers": 1.0, "transfer_ms": MILLISECOND}
TRANSFERS = {
    "transfers": ("reads", "writes", "discards"),
    "transfer_ms": ("read_ms", "write_ms", "discard_ms"),
}
NIC_FIELDS = (
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_drops",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_drops",
)
THREAD_UNITS = {
    "voluntary_ctxt_switches": 1.0,
    "nonvoluntary_ctxt_switches": 1.0,
    "on_cpu_ns": NANOSECOND,
    "run_delay_ns": NANOSECOND,
}
# entity columns of the tables with a histogram of times, and entity and counter columns of the others
EBPF_HISTOGRAMS = {
    "ebpf_sched": ("role", "state"),
    "ebpf_block": ("device", "operation", "stage"),
    "ebpf_irq": ("kind",),
    "ebpf_syscall_latency": ("role", "syscall"),
    "ebpf_statements": ("role", "command"),
}
EBPF_COUNTERS = {
    "ebpf_switches": (("role",), ("voluntary", "involuntary", "migrations")),
    "ebpf_syscalls": (("role", "syscall"), ("count", "errors")),
}
TCP_METRICS = ("Tcp.RetransSegs", "Tcp.OutSegs", "Tcp.InSegs", "Tcp.ActiveOpens")


def stable_name(interface: str) -> str:
    """Interface name that is the same in every run of a campaign."""
    return VETH if SUPERVISOR_VETH.fullmatch(interface) else interface


def page_size(run: Run, role: str) -> float:
    """Bytes of a page, the unit of `rss` (/proc/PID/stat)."""
    return float(run.fingerprint(role).get("page_size") or 4096)
