"""Computes the time axis of series (reads of each probe) and the rates of counters.

Seconds count from the start of phase `measure`. A rate is the increase of a counter between neighbouring
reads; an interval with a missing read is a hole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.counters import steps
from loadprint.reading.queries import Store, among, by_entity
from loadprint.reading.recording import Run
from loadprint.reading.window import STAMPS, measure_start

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """The reads of one probe: `ticks` and `seconds`, shape (reads,).

    `holes`, shape (reads - 1,), marks the intervals with a missing read.
    """

    ticks: NDArray[np.int64]
    seconds: Floats
    holes: NDArray[np.bool_]

    @property
    def middle(self) -> Floats:
        """Midpoints of the intervals, shape (reads - 1,)."""
        middle: Floats = (self.seconds[1:] + self.seconds[:-1]) / 2
        return middle

    def placed(self, ticks: NDArray[Any], values: Floats) -> Floats:
        """Values at every read of the grid, NaN where one is missing; shape (reads,)."""
        out = np.full(len(self.ticks), np.nan)
        if len(self.ticks):
            at = np.searchsorted(self.ticks, ticks)
            known = (at < len(self.ticks)) & (self.ticks[np.minimum(at, len(self.ticks) - 1)] == ticks)
            out[at[known]] = values[known]
        return out

    def rates(self, ticks: NDArray[Any], readings: Floats, unit: float, size: float | None = None) -> Floats:
        """Rates of a cumulative counter between neighbouring reads, in `unit` per second; shape (reads - 1,).

        NaN where it restarted or is not known (reading/counters.py). Of float64[counters, reads] the sum.
        """
        each = [steps(self.placed(ticks, one), size) for one in np.atleast_2d(readings)]
        amounts = [np.where(one.restarted, np.nan, one.amounts) for one in each]
        if not amounts:
            return np.full(max(0, len(self.ticks) - 1), np.nan)
        return self.per_second(np.sum(amounts, axis=0) * unit)

    def rates_of_rises(self, ticks: Floats, rises: Floats, unit: float) -> Floats:
        """Rates from the increase since the previous read, given for each tick; shape (reads - 1,)."""
        return self.per_second(self.placed(ticks, rises)[1:] * unit)

    def per_second(self, amounts: Floats) -> Floats:
        """Amounts of each interval as rates; NaN in holes and between two reads at the same time."""
        length = np.diff(self.seconds)
        usable = ~self.holes & (length > 0)
        out: Floats = np.divide(amounts, length, out=np.full(len(amounts), np.nan), where=usable)
        return out


@dataclass(frozen=True)
class Axis:
    """The reads of every probe of one recorder."""

    grids: dict[str, Grid]


def read_axis(run: Run, role: str, store: Store, probes: Sequence[str]) -> Axis | None:
    """The axis of some probes of a role's recorder; None without a phase `measure`. Raises InputError."""
    begin = measure_start(run, role, store)
    if begin is None:
        return None
    path = run.path / role / "ticks.parquet"
    rows = store.fetch(
        path, f"SELECT probe, status, {STAMPS} FROM t WHERE probe IN {among(probes)} ORDER BY tick"
    )
    return Axis({probe: _grid(reads, begin) for probe, reads in by_entity(rows, "probe")})


def _grid(rows: dict[str, NDArray[Any]], begin_ns: float) -> Grid:
    """Reads that succeeded. A hole is an interval that is longer than usual without a skipped tick."""
    taken = rows["status"] == "ok"
    # a duplicate tick would be an interval of length 0
    ticks, first = np.unique(rows["tick"][taken].astype(np.int64), return_index=True)
    seconds = ((rows["start"][taken] + rows["end"][taken])[first] / 2 - begin_ns) / 1e9
    skipped = np.sort(rows["tick"][rows["status"] == "skipped"].astype(np.int64))
    apart = np.diff(ticks)
    usual = int(np.median(apart)) if len(apart) else 1
    passed = np.searchsorted(skipped, ticks[1:]) - np.searchsorted(skipped, ticks[:-1])
    return Grid(ticks, seconds, (apart > usual) & (passed < apart - 1))
