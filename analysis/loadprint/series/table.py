"""One table of a recording as a series reader sees it: its rows, and the grid of time they are laid on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadprint.reading.queries import Columns, Query, Store, grouped
from loadprint.reading.recording import Run
from loadprint.series.axis import Floats, Grid

Found = tuple[str, Floats, Floats]


@dataclass(frozen=True)
class Table:
    """One probe's table of one recorder, with its grid and the CPU set that stands for a side.

    `names` are the series that are asked for, None for all: a reader of many metrics may read fewer.
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

    def rows(self, query: Query) -> Columns:
        """Rows of the table in the order of ticks."""
        return self.store.fetch(self.path, lambda t: query(t).order_by("tick"))

    def counter(
        self, key: str, rows: Columns, column: str, unit: float, *, may_step_back: bool = False
    ) -> Found:
        """Series of one cumulative column."""
        rates = self.grid.rates(rows["tick"], rows[column], unit, may_step_back=may_step_back)
        return key, self.grid.middle, rates

    def gauge(self, key: str, ticks: Floats, values: Floats) -> Found:
        """Series of a reading as it is, at the time it was read."""
        return key, self.grid.seconds, self.grid.placed(ticks, values)


def split(rows: Columns, key: str) -> Iterator[tuple[str, Columns]]:
    """Rows by an entity column, still in the order of ticks."""
    for name, places in grouped(rows[key]):
        yield name, {column: values[places] for column, values in rows.items()}
