"""Lists the columns of the recorder's tables, for imports of the same quantities.

A column that the other tool does not record is null. A test compares the list with `loadprint-collect
probes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from loadprint.reading.units import unit_of


@dataclass(frozen=True)
class Layout:
    """One table: its entity columns, and each value column's unit and kind."""

    entity: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]


GAUGES = ("procs_running", "procs_blocked", "in_flight")
KINDS = {**dict.fromkeys(GAUGES, "gauge"), "description": "info"}


def _layout(table: str, entity: str, names: str) -> Layout:
    columns = {name: (unit_of(table, name) or "1", KINDS.get(name, "counter")) for name in names.split()}
    return Layout(tuple(entity.split()), MappingProxyType(columns))


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        table: _layout(table, entity, names)
        for table, entity, names in (
            (
                "cpu",
                "cpu",
                "user nice system idle iowait irq softirq steal guest guest_nice "
                "ctxt intr softirqs processes procs_running procs_blocked",
            ),
            ("interrupts", "line cpus", "count description"),
            ("softirqs", "kind cpus", "count"),
            (
                "disk",
                "device",
                "reads read_merges read_sectors read_ms writes write_merges write_sectors write_ms in_flight "
                "io_ms weighted_ms discards discard_merges discard_sectors discard_ms flushes flush_ms",
            ),
            (
                "nic",
                "interface",
                "rx_bytes rx_packets rx_errors rx_drops rx_fifo rx_frame rx_compressed rx_multicast "
                "tx_bytes tx_packets tx_errors tx_drops tx_fifo tx_collisions tx_carrier tx_compressed",
            ),
            ("pressure", "resource severity", "total_us"),
        )
    }
)
