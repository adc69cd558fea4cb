"""Defines the values that readers pass to the writer.

pyarrow is slow to import, and not needed for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from loadprint.reading.declared import DECLARED, DeclaredTable, unit_of

if TYPE_CHECKING:
    import pyarrow as pa

Array: TypeAlias = "pa.Array[Any]"
Entity = tuple[str, ...]
# the tables with fixed columns that are filled; those of a later version have more
LAYOUTS: Mapping[str, DeclaredTable] = {
    table: DECLARED[table] for table in ("cpu", "interrupts", "softirqs", "disk", "nic", "pressure")
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


def unit_of_metric(table: str, metric: str) -> str:
    """The declared unit of a metric; of memory all others are in kB, as in /proc/meminfo."""
    return unit_of(table, metric) or ("kB" if table == "memory" else "1")


def columns_of(table: str, rows: Mapping[tuple[Entity, int], Mapping[str, float]]) -> dict[str, list[Any]]:
    """Entity columns, then the value columns of rows by entity and tick; None where a value is missing."""
    entities = LAYOUTS[table].entity if table in LAYOUTS else ("metric",)
    names = dict.fromkeys(name for row in rows.values() for name in row)
    columns: dict[str, list[Any]] = {
        name: [entity[place] for entity, _ in rows] for place, name in enumerate(entities)
    }
    return columns | {name: [row.get(name) for row in rows.values()] for name in names}
