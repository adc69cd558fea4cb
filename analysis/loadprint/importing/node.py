"""Maps node_exporter's metrics to columns of the recorder's tables, in the units of the kernel.

node_exporter divides the numbers in /proc (USER_HZ ticks, sectors, kB, ms, µs); multiplying and rounding
restores them. A product that is not close to an integer is not rounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

USER_HZ = 100  # as node_exporter assumes (procfs, userHZ)
SECTOR = 512
MODES = {mode: mode for mode in ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]}
GUESTS = {"user": "guest", "nice": "guest_nice"}

Cell = tuple[str, tuple[str, ...], str, float]
ALL, DEVICE = ("all",), ("",)  # entities: that of the whole host, and the label `device`
# table, entity, prefix and suffix of the metrics, factor → `metric` or `metric:column`
_METRICS: Mapping[tuple[str, tuple[str, ...], str, str, float], str] = {
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
    ("nic", DEVICE, "node_network_receive_", "_total", 1): """
        bytes:rx_bytes packets:rx_packets errs:rx_errors drop:rx_drops fifo:rx_fifo frame:rx_frame
        compressed:rx_compressed multicast:rx_multicast""",
    ("nic", DEVICE, "node_network_transmit_", "_total", 1): """
        bytes:tx_bytes packets:tx_packets errs:tx_errors drop:tx_drops fifo:tx_fifo colls:tx_collisions
        carrier:tx_carrier compressed:tx_compressed""",
}
_CELLS: dict[str, Cell] = {
    f"{prefix}{metric}{suffix}": (table, entity, column or metric, factor)
    for (table, entity, prefix, suffix, factor), words in _METRICS.items()
    for metric, _, column in (word.partition(":") for word in words.split())
} | {
    f"node_pressure_{resource}_{word}_seconds_total": ("pressure", (resource, severity), "total_us", 1e6)
    for resource in ("cpu", "io", "memory", "irq")
    for word, severity in (("waiting", "some"), ("stalled", "full"))
}


def cell(name: str, labels: Mapping[str, str]) -> Cell | None:
    """Table, entity, column and factor of one of node_exporter's series; None if no table has it."""
    mode = labels.get("mode")
    modes = {"node_cpu_seconds_total": MODES, "node_cpu_guest_seconds_total": GUESTS}.get(name, {})
    if mode in modes:
        return "cpu", (labels.get("cpu", ""),), modes[mode], USER_HZ
    if name in _CELLS:
        table, entity, column, factor = _CELLS[name]
        return table, (labels.get("device", ""),) if entity is DEVICE else entity, column, factor
    return _metric(name)


def _metric(name: str) -> Cell | None:
    """Cell of a table with an open set of metrics."""
    if name.startswith("node_vmstat_"):
        return "vmstat", (name.removeprefix("node_vmstat_"),), "value", 1
    if name.startswith("node_netstat_"):
        return "tcp", (name.removeprefix("node_netstat_").replace("_", ".", 1),), "value", 1
    # those of `numa` are per node, with its label
    if name.startswith("node_memory_") and not name.startswith("node_memory_numa_"):
        field = name.removeprefix("node_memory_").removesuffix("_bytes")
        field = re.sub(r"^(Active|Inactive)_(.+)$", r"\1(\2)", field)
        return "memory", (field,), "value", 1 / 1024 if name.endswith("_bytes") else 1
    return None


def whole(value: float, factor: float) -> int | float:
    """Return the kernel's number: an integer if the product is close to one."""
    scaled = value * factor
    if math.isnan(scaled) or abs(scaled) >= 2**63:
        return scaled
    near = round(scaled)
    return near if abs(scaled - near) <= 1e-3 + 1e-12 * abs(scaled) else scaled
