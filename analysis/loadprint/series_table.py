"""One table of a recording as a series reader sees it: its rows, and the grid of time they are laid on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadprint.axis import Floats, Grid
from loadprint.queries import Columns, Query, Store
from loadprint.recording import Run

Found = tuple[str, Floats, Floats]


@dataclass(frozen=True)
class Table:
    """One probe's table of one recorder, with its grid and the CPU set that stands for a side."""

    run: Run
    role: str
    store: Store
    path: Path
    probe: str
    grid: Grid
    side: str
    cpus: Sequence[int] | None
    hz: float

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
    """Rows by an entity column, still in the order of ticks; one sort for all entities."""
    names, place = np.unique(rows[key].astype(str), return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(names) + 1))
    for name, begin, end in zip(names.tolist(), ends[:-1], ends[1:], strict=True):
        chosen = order[begin:end]
        yield name, {column: values[chosen] for column, values in rows.items()}
