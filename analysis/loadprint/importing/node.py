"""Maps node_exporter's metrics to columns of the recorder's tables, in the units of the kernel.

node_exporter divides the numbers in /proc (USER_HZ ticks, sectors, kB, ms, µs); multiplying and rounding
restores them. A product that is not close to an integer is not rounded. Version 0.16 renamed most metrics and
changed units (its CHANGELOG.md, docs/V0_16_UPGRADE_GUIDE.md and collector/*_linux.go); both names are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

USER_HZ = 100  # as node_exporter assumes (procfs, userHZ)
SECTOR = 512
MODES = {mode: mode for mode in ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]}
GUESTS = {"user": "guest", "nice": "guest_nice"}
CPU_TIMES = {
    "node_cpu_seconds_total": MODES,
    "node_cpu_guest_seconds_total": GUESTS,
    "node_cpu": MODES | {mode: mode for mode in GUESTS.values()},  # before 0.16, with `cpu0` for CPU 0
}
OF_VERSIONS = frozenset(("cpu", "mode"))  # labels that 0.16 changed


class NodeCell(NamedTuple):
    """Place of a series in a table, the factor to the column's unit, and whether 0.16 renamed it."""

    table: str
    entity: tuple[str, ...]
    column: str
    factor: float
    renamed: bool = False


Words = Mapping[tuple[str, tuple[str, ...], str, str, float], str]
ALL, DEVICE = ("all",), ("",)  # entities: that of the whole host, and the label `device`
RECEIVED = "bytes:rx_bytes packets:rx_packets errs:rx_errors drop:rx_drops fifo:rx_fifo frame:rx_frame"
RECEIVED += " compressed:rx_compressed multicast:rx_multicast"
SENT = "bytes:tx_bytes packets:tx_packets errs:tx_errors drop:tx_drops fifo:tx_fifo"
# table, entity, prefix and suffix of the metrics, factor → `metric` or `metric:column`
_METRICS: Words = {
    ("cpu", ALL, "node_", "", 1): "procs_running procs_blocked",
    ("cpu", ALL, "node_", "_total", 1): "context_switches:ctxt intr forks:processes",
    ("disk", DEVICE, "node_disk_", "_total", 1): """
        reads_completed:reads reads_merged:read_merges writes_completed:writes writes_merged:write_merges
        discards_completed:discards discards_merged:discard_merges discarded_sectors:discard_sectors
        flush_requests:flushes""",
    ("disk", DEVICE, "node_disk_", "", 1): "io_now:in_flight",
    ("disk", DEVICE, "node_disk_", "_bytes_total", 1 / SECTOR): "read:read_sectors written:write_sectors",
    ("disk", DEVICE, "node_disk_", "_seconds_total", 1000): """
        read_time:read_ms write_time:write_ms io_time:io_ms io_time_weighted:weighted_ms
        discard_time:discard_ms flush_requests_time:flush_ms""",
    ("nic", DEVICE, "node_network_receive_", "_total", 1): RECEIVED,
    ("nic", DEVICE, "node_network_transmit_", "_total", 1): f"""
        {SENT} colls:tx_collisions carrier:tx_carrier compressed:tx_compressed""",
}
_BEFORE_0_16: Words = {
    ("cpu", ALL, "node_", "", 1): "context_switches:ctxt intr forks:processes",
    ("disk", DEVICE, "node_disk_", "", 1): """
        reads_completed:reads reads_merged:read_merges writes_completed:writes writes_merged:write_merges
        sectors_read:read_sectors sectors_written:write_sectors read_time_ms:read_ms write_time_ms:write_ms
        io_time_ms:io_ms io_time_weighted:weighted_ms""",
    ("disk", DEVICE, "node_disk_bytes_", "", 1 / SECTOR): "read:read_sectors written:write_sectors",
    ("nic", DEVICE, "node_network_receive_", "", 1): RECEIVED,
    # named by the received side's columns of /proc/net/dev
    ("nic", DEVICE, "node_network_transmit_", "", 1): f"""
        {SENT} frame:tx_collisions compressed:tx_carrier multicast:tx_compressed""",
}
# fields of /proc/meminfo with the unit kB; before 0.16 in bytes, without a suffix
_FIELDS = """
    MemTotal MemFree MemAvailable Buffers Cached SwapCached Active Inactive Active_anon Inactive_anon
    Active_file Inactive_file Unevictable Mlocked HighTotal HighFree LowTotal LowFree MmapCopy SwapTotal
    SwapFree Zswap Zswapped Dirty Writeback AnonPages Mapped Shmem KReclaimable Slab SReclaimable
    SUnreclaim KernelStack ShadowCallStack PageTables SecPageTables Quicklists NFS_Unstable Bounce
    WritebackTmp CommitLimit Committed_AS VmallocTotal VmallocUsed VmallocChunk Percpu EarlyMemtestBad
    HardwareCorrupted AnonHugePages ShmemHugePages ShmemPmdMapped FileHugePages FilePmdMapped CmaTotal
    CmaFree Unaccepted Balloon Hugepagesize Hugetlb DirectMap4k DirectMap2M DirectMap4M DirectMap1G"""
_MEMINFO = frozenset(_FIELDS.split())
_CELLS: dict[str, NodeCell] = {
    f"{prefix}{metric}{suffix}": NodeCell(table, entity, column or metric, factor, renamed)
    for metrics, renamed in ((_METRICS, False), (_BEFORE_0_16, True))
    for (table, entity, prefix, suffix, factor), words in metrics.items()
    for metric, _, column in (word.partition(":") for word in words.split())
} | {
    f"node_pressure_{resource}_{word}_seconds_total": NodeCell(
        "pressure", (resource, severity), "total_us", 1e6
    )
    for resource in ("cpu", "io", "memory", "irq")
    for word, severity in (("waiting", "some"), ("stalled", "full"))
}
# families that fill the tables, without recording rules and metrics of which no table has a column
_FAMILIES = re.compile(
    r"node_(cpu|cpu_(guest_)?seconds\w*|(context_switches|forks|intr|procs_running|procs_blocked)\w*"
    r"|pressure_\w+|disk_(reads?|writes?|written|io|discards?|discarded|flush|bytes|sectors)_\w+|memory_(?!numa_)\w+"
    r"|network_(receive|transmit)_(?!nohandler|queue_length)\w+)"
)


def cell(name: str, labels: Mapping[str, str]) -> NodeCell | None:
    """Place of one of node_exporter's series; None if no table has it."""
    modes, mode = CPU_TIMES.get(name, {}), labels.get("mode")
    if mode in modes:
        return NodeCell(
            "cpu", (labels.get("cpu", "").removeprefix("cpu"),), modes[mode], USER_HZ, name == "node_cpu"
        )
    if cell := _CELLS.get(name):
        return cell._replace(entity=(labels.get("device", ""),)) if cell.entity is DEVICE else cell
    return _metric(name)


def is_left_out(name: str) -> bool:
    """Whether a metric without a cell has the name of a family that fills the tables."""
    return _FAMILIES.fullmatch(name) is not None


def _metric(name: str) -> NodeCell | None:
    """NodeCell of a table with an open set of metrics. Memory of which the unit is not known has none."""
    if name.startswith("node_vmstat_"):
        return NodeCell("vmstat", (name.removeprefix("node_vmstat_"),), "value", 1)
    if name.startswith("node_netstat_"):
        return NodeCell("tcp", (name.removeprefix("node_netstat_").replace("_", ".", 1),), "value", 1)
    # those of `numa` are per node, with its label
    if name.startswith("node_memory_") and not name.startswith("node_memory_numa_"):
        bare = name.removeprefix("node_memory_")
        field = re.sub(r"^(Active|Inactive)_(.+)$", r"\1(\2)", bare.removesuffix("_bytes"))
        if bare.startswith("HugePages_"):
            return NodeCell("memory", (field,), "value", 1)
        if bare.endswith("_bytes") or bare in _MEMINFO:
            return NodeCell("memory", (field,), "value", 1 / 1024, bare in _MEMINFO)
    return None


def whole(value: float, factor: float) -> int | float:
    """Return the kernel's number: an integer if the product is close to one."""
    scaled = value * factor
    if math.isnan(scaled) or abs(scaled) >= 2**63:
        return scaled
    near = round(scaled)
    return near if abs(scaled - near) <= 1e-3 + 1e-12 * abs(scaled) else scaled
