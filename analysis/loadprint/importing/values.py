"""Defines the values that readers pass to the writer, apart from it because pyarrow is slow to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Array: TypeAlias = "pa.Array[Any]"


@dataclass(frozen=True)
class ImportedTable:
    """One probe's table. `columns`: entity and value columns by name, each as long as `ticks`.

    `meanings` has unit, kind and help of value columns (shape table) or of metrics (shape metrics). Tables of
    `LAYOUTS` need no meanings; their columns that are not given are null.
    """

    name: str
    ticks: Sequence[int]
    columns: Mapping[str, Sequence[Any] | Array]
    shape: str = "table"
    entity: tuple[str, ...] = ()
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
