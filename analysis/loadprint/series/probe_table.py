"""Gives a series reader the rows of one recorded table and places them on the time grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadprint.reading.counters import size_of
from loadprint.reading.queries import Columns, Store
from loadprint.reading.recording import Run
from loadprint.series.axis import Floats, Grid

SeriesData = tuple[str, Floats, Floats]


@dataclass(frozen=True)
class Table:
    """One probe's table of one recorder, with its grid and the CPU set of a side.

    `names` are the requested series, None for all.
    """

    run: Run
    role: str
    store: Store
    path: Path
    probe: str
    grid: Grid
    side: str
    cpus: Sequence[int] | None
    hz: float
    names: Sequence[str] | None = None

    def roles(self) -> list[str] | None:
        """Requested roles, for keys whose second word is a role; None for all."""
        requested = self._names()
        if requested is None or any("." not in name for name in requested):
            return None
        return sorted({name.split(".")[1] for name in requested})

    def fields(self, known: Iterable[str]) -> list[str]:
        """Those of `known`, last words of this table's keys, that are requested."""
        requested, words = self._names(), list(known)
        last = None if requested is None else {name.rpartition(".")[2] for name in requested}
        return words if last is None or last - set(words) else [word for word in words if word in last]

    def _names(self) -> list[str] | None:
        word = self.probe.removeprefix("ebpf_")
        return None if self.names is None else [n for n in self.names if n.split(".")[0] == word]

    def rows(self, query: str) -> Columns:
        """Rows of a SELECT ordered by tick."""
        return self.store.fetch(self.path, f"{query} ORDER BY tick")

    def counter(self, key: str, rows: Columns, column: str, unit: float) -> SeriesData:
        """Series of one cumulative column."""
        size = size_of(self.store.described(self.path, column))
        return key, self.grid.middle, self.grid.rates(rows["tick"], rows[column], unit, size)

    def gauge(self, key: str, ticks: Floats, values: Floats) -> SeriesData:
        """Series of a reading at the time of the read."""
        return key, self.grid.seconds, self.grid.placed(ticks, values)


def is_requested(key: str, names: Sequence[str] | None) -> bool:
    """Whether a series is requested: its key is one of `names`, or starts with one."""
    return names is None or any(key == name or key.startswith(f"{name}.") for name in names)


def any_requested(prefix: str, names: Sequence[str] | None) -> bool:
    """Whether any series is requested whose key starts with `prefix`."""
    return is_requested(prefix, names) or any(name.startswith(f"{prefix}.") for name in names or ())
