"""Computes the time axis of series (the reads of each probe) and the rates of counters between reads.

Seconds count from the start of phase `measure`; the time of a rate is the middle of its interval. A rate is
the increase of a counter between neighbouring reads; an interval with a missing read is a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.counters import steps
from loadprint.reading.queries import by_entity
from loadprint.reading.recording import Run

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """One quantity over time.

    `seconds` and `values` are float64 arrays, shape (intervals,): base units per second of a counter, the
    reading of a gauge. NaN where a tick was missed, a read failed or a counter was reset. `half` is half the
    length of each interval in seconds, shape (intervals,); 0 for a reading.
    """

    seconds: Floats
    values: Floats
    half: Floats | float = 0.0


@dataclass(frozen=True)
class Grid:
    """The reads of one probe: `ticks` and `seconds`, shape (reads,).

    `holes`, shape (reads - 1,), marks the intervals with a missing read.
    """

    ticks: NDArray[np.int64]
    seconds: Floats
    holes: NDArray[np.bool_]

    @cached_property
    def middle(self) -> Floats:
        """Midpoints of the intervals, shape (reads - 1,); all series share them."""
        middle: Floats = (self.seconds[1:] + self.seconds[:-1]) / 2
        return middle

    @cached_property
    def half(self) -> Floats:
        """Half the length of each interval in seconds, shape (reads - 1,)."""
        half: Floats = np.diff(self.seconds) / 2
        return half

    def placed(self, ticks: NDArray[Any], values: Floats) -> Floats:
        """Values at every read of the grid, NaN where one is missing; shape (reads,)."""
        out = np.full(len(self.ticks), np.nan)
        if len(self.ticks):
            at = np.searchsorted(self.ticks, ticks)
            known = (at < len(self.ticks)) & (self.ticks[np.minimum(at, len(self.ticks) - 1)] == ticks)
            out[at[known]] = values[known]
        return out

    def gauge(self, ticks: NDArray[Any], values: Floats) -> Series:
        """Series of a reading at the time of the read."""
        return Series(self.seconds, self.placed(ticks, values))

    def counter(
        self, ticks: NDArray[Any], readings: Floats, unit: float, size: float | None = None
    ) -> Series:
        """Rates of a cumulative counter between neighbouring reads, in `unit` per second.

        NaN where it restarted or is not known (counters.py). Of float64[counters, reads] the sum.
        """
        each = [steps(self.placed(ticks, one), size) for one in np.atleast_2d(readings)]
        amounts = [np.where(one.restarted, np.nan, one.amounts) for one in each]
        empty = np.full(max(0, len(self.ticks) - 1), np.nan)
        return self._per_second(np.sum(amounts, axis=0) * unit if amounts else empty)

    def rises(self, ticks: NDArray[Any], rises: Floats, unit: float) -> Series:
        """Rates from the increase since the previous read, given for each tick."""
        return self._per_second(self.placed(ticks, rises)[1:] * unit)

    def _per_second(self, amounts: Floats) -> Series:
        """Amounts of each interval as rates; NaN in holes and between two reads at the same time."""
        length = 2 * self.half
        usable = ~self.holes & (length > 0)
        rates = np.divide(amounts, length, out=np.full(len(amounts), np.nan), where=usable)
        return Series(self.middle, rates, self.half)


def grids(reads: dict[str, NDArray[Any]], begin_ns: float) -> dict[str, Grid]:
    """The grid of each probe, from rows of ticks.parquet; seconds count from `begin_ns`."""
    return {probe: _grid(rows, begin_ns) for probe, rows in by_entity(reads, "probe")}


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


@dataclass(frozen=True)
class Span:
    """A phase of the load on the axis of the series; `end_s` is None without an end."""

    name: str
    begin_s: float
    end_s: float | None


def phases(run: Run) -> tuple[Span, ...]:
    """Phases in the order of their start, in seconds since the start of `measure`; empty without a load."""
    measure = run.phase("measure")
    if measure is None:
        return ()
    zero = measure.begin_ns
    return tuple(
        Span(
            phase.name,
            (phase.begin_ns - zero) / 1e9,
            None if phase.end_ns is None else (phase.end_ns - zero) / 1e9,
        )
        for phase in run.phases
    )
