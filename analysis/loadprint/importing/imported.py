"""Defines the values that readers pass to the writer, and the columns of the recorder's tables.

pyarrow is slow to import, and not needed for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from loadprint.reading.units import unit_of

if TYPE_CHECKING:
    import pyarrow as pa

Array: TypeAlias = "pa.Array[Any]"
Entity = tuple[str, ...]
GAUGES = ("procs_running", "procs_blocked", "in_flight")
KINDS = {**dict.fromkeys(GAUGES, "gauge"), "description": "info"}


class TableLayout(NamedTuple):
    """One table: its entity columns, and each value column's unit and kind."""

    entity: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]


# table and entity columns → value columns; a test compares them with `loadprint-collect probes`
_TABLES = {
    "cpu cpu": """
        user nice system idle iowait irq softirq steal guest guest_nice
        ctxt intr softirqs processes procs_running procs_blocked""",
    "interrupts line cpus": "count description",
    "softirqs kind cpus": "count",
    "disk device": """
        reads read_merges read_sectors read_ms writes write_merges write_sectors write_ms in_flight
        io_ms weighted_ms discards discard_merges discard_sectors discard_ms flushes flush_ms""",
    "nic interface": """
        rx_bytes rx_packets rx_errors rx_drops rx_fifo rx_frame rx_compressed rx_multicast
        tx_bytes tx_packets tx_errors tx_drops tx_fifo tx_collisions tx_carrier tx_compressed""",
    "pressure resource severity": "total_us",
}
LAYOUTS: Mapping[str, TableLayout] = {
    table: TableLayout(
        tuple(entity),
        {name: (unit_of(table, name), KINDS.get(name, "counter")) for name in names.split()},
    )
    for (table, *entity), names in ((heads.split(), names) for heads, names in _TABLES.items())
}


@dataclass(frozen=True)
class ImportedTable:
    """One probe's table. `columns`: entity and value columns by name, each as long as `ticks`.

    `meanings` has unit, kind and help of value columns. Tables of `LAYOUTS` need none; their columns that are
    not given are null. Other tables have the shape metrics, and meanings of metrics.
    """

    name: str
    ticks: Sequence[int]
    columns: Mapping[str, Sequence[Any] | Array]
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Imported:
    """A recording of another tool. `realtime_ns`: increasing times; a table's ticks are indexes into them."""

    kind: str
    sources: Sequence[str]
    realtime_ns: Sequence[int]
    tables: Sequence[ImportedTable]
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the fingerprint
    meta: Mapping[str, Any] = field(default_factory=dict)  # further keys of run.json
    measure: tuple[int, int] | None = None  # first and last tick of the measure phase; None: all
    notes: Sequence[str] = ()  # messages for the user


def columns_of(table: str, rows: Mapping[tuple[Entity, int], Mapping[str, float]]) -> dict[str, list[Any]]:
    """Entity columns, then the value columns of rows by entity and tick; None where a value is missing."""
    entities = LAYOUTS[table].entity if table in LAYOUTS else ("metric",)
    names = dict.fromkeys(name for row in rows.values() for name in row)
    columns: dict[str, list[Any]] = {
        name: [entity[place] for entity, _ in rows] for place, name in enumerate(entities)
    }
    return columns | {name: [row.get(name) for row in rows.values()] for name in names}
