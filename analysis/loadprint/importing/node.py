"""Maps node_exporter's metrics to columns of the recorder's tables, in the units of the kernel.

node_exporter divides the numbers in /proc (USER_HZ ticks, sectors, kB, ms, µs); multiplying and rounding
restores them. A product that is not close to an integer is not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

USER_HZ = 100  # as node_exporter assumes (procfs, userHZ)
SECTOR = 512

# metric → column and factor; the entity is the label of the table
DISK: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "node_disk_reads_completed_total": ("reads", 1),
        "node_disk_reads_merged_total": ("read_merges", 1),
        "node_disk_read_bytes_total": ("read_sectors", 1 / SECTOR),
        "node_disk_read_time_seconds_total": ("read_ms", 1000),
        "node_disk_writes_completed_total": ("writes", 1),
        "node_disk_writes_merged_total": ("write_merges", 1),
        "node_disk_written_bytes_total": ("write_sectors", 1 / SECTOR),
        "node_disk_write_time_seconds_total": ("write_ms", 1000),
        "node_disk_io_now": ("in_flight", 1),
        "node_disk_io_time_seconds_total": ("io_ms", 1000),
        "node_disk_io_time_weighted_seconds_total": ("weighted_ms", 1000),
        "node_disk_discards_completed_total": ("discards", 1),
        "node_disk_discards_merged_total": ("discard_merges", 1),
        "node_disk_discarded_sectors_total": ("discard_sectors", 1),
        "node_disk_discard_time_seconds_total": ("discard_ms", 1000),
        "node_disk_flush_requests_total": ("flushes", 1),
        "node_disk_flush_requests_time_seconds_total": ("flush_ms", 1000),
    }
)
_NIC = {
    "receive": ("rx", "bytes packets errs:errors drop:drops fifo frame compressed multicast"),
    "transmit": ("tx", "bytes packets errs:errors drop:drops fifo colls:collisions carrier compressed"),
}
NIC: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        f"node_network_{way}_{name.partition(':')[0]}_total": (f"{short}_{name.partition(':')[2] or name}", 1)
        for way, (short, names) in _NIC.items()
        for name in names.split()
    }
)
CPU_HOST: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "node_context_switches_total": ("ctxt", 1),
        "node_intr_total": ("intr", 1),
        "node_forks_total": ("processes", 1),
        "node_procs_running": ("procs_running", 1),
        "node_procs_blocked": ("procs_blocked", 1),
    }
)
GUESTS = {"user": "guest", "nice": "guest_nice"}
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
PRESSURE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        f"node_pressure_{resource}_{word}_seconds_total": (resource, severity)
        for resource in ("cpu", "io", "memory", "irq")
        for word, severity in (("waiting", "some"), ("stalled", "full"))
    }
)

Cell = tuple[str, tuple[str, ...], str, float]


def cell(name: str, labels: Mapping[str, str]) -> Cell | None:
    """Table, entity, column and factor of one of node_exporter's series; None if no table has it."""
    device = labels.get("device", "")
    cpu, mode = labels.get("cpu", ""), labels.get("mode")
    if name == "node_cpu_seconds_total" and mode in MODES:
        return "cpu", (cpu,), mode, USER_HZ
    if name == "node_cpu_guest_seconds_total" and mode in GUESTS:
        return "cpu", (cpu,), GUESTS[mode], USER_HZ
    return _host(name, device) or _open(name)


def _host(name: str, device: str) -> Cell | None:
    """Cell of the whole host, a disk or an interface."""
    if name in CPU_HOST:
        return "cpu", ("all",), *CPU_HOST[name]
    if name in DISK:
        return "disk", (device,), *DISK[name]
    if name in NIC:
        return "nic", (device,), *NIC[name]
    if name in PRESSURE:
        return "pressure", PRESSURE[name], "total_us", 1e6
    return None


def _open(name: str) -> Cell | None:
    """Cell of a table with an open set of metrics."""
    if name.startswith("node_vmstat_"):
        return "vmstat", (name.removeprefix("node_vmstat_"),), "value", 1
    if name.startswith("node_netstat_"):
        protocol, _, field = name.removeprefix("node_netstat_").partition("_")
        return "tcp", (f"{protocol}.{field}",), "value", 1
    if name.startswith("node_memory_"):
        field = name.removeprefix("node_memory_")
        factor = 1 / 1024 if field.endswith("_bytes") else 1
        field = field.removesuffix("_bytes")
        head, _, kind = field.partition("_")
        if head in ("Active", "Inactive") and kind:
            field = f"{head}({kind})"
        return "memory", (field,), "value", factor
    return None


def whole(value: float, factor: float) -> int | float:
    """Return the kernel's number: an integer if the product is close to one."""
    scaled = value * factor
    if math.isnan(scaled) or abs(scaled) >= 2**63:
        return scaled
    near = round(scaled)
    return near if abs(scaled - near) <= 1e-3 + 1e-12 * abs(scaled) else scaled
