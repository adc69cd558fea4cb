"""Lists the columns of the recorder's tables, for imports of the same quantities.

A column that the other tool does not record is null. A test compares the list with `loadprint-collect
probes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Layout:
    """One table: its entity columns, and each value column's unit and kind."""

    entity: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]


def _columns(unit: str, names: str, kind: str = "counter") -> dict[str, tuple[str, str]]:
    return dict.fromkeys(names.split(), (unit, kind))


def _layout(entity: str, *columns: Mapping[str, tuple[str, str]]) -> Layout:
    merged = {name: meaning for part in columns for name, meaning in part.items()}
    return Layout(tuple(entity.split()), MappingProxyType(merged))


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "cpu": _layout(
            "cpu",
            _columns("tick", "user nice system idle iowait irq softirq steal guest guest_nice"),
            _columns("1", "ctxt intr softirqs processes"),
            _columns("1", "procs_running procs_blocked", "gauge"),
        ),
        "interrupts": _layout("line cpus", _columns("1", "count"), _columns("1", "description", "info")),
        "softirqs": _layout("kind cpus", _columns("1", "count")),
        "disk": _layout(
            "device",
            _columns("1", "reads read_merges"),
            _columns("sector", "read_sectors"),
            _columns("ms", "read_ms"),
            _columns("1", "writes write_merges"),
            _columns("sector", "write_sectors"),
            _columns("ms", "write_ms"),
            _columns("1", "in_flight", "gauge"),
            _columns("ms", "io_ms weighted_ms"),
            _columns("1", "discards discard_merges"),
            _columns("sector", "discard_sectors"),
            _columns("ms", "discard_ms"),
            _columns("1", "flushes"),
            _columns("ms", "flush_ms"),
        ),
        "nic": _layout(
            "interface",
            _columns("B", "rx_bytes"),
            _columns("1", "rx_packets rx_errors rx_drops rx_fifo rx_frame rx_compressed rx_multicast"),
            _columns("B", "tx_bytes"),
            _columns("1", "tx_packets tx_errors tx_drops tx_fifo tx_collisions tx_carrier tx_compressed"),
        ),
        "pressure": _layout(
            "resource severity",
            _columns("us", "total_us"),
            _columns("percent", "avg10 avg60 avg300", "gauge"),
        ),
    }
)
