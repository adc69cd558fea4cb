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

    def places(self, ticks: NDArray[Any]) -> NDArray[np.intp]:
        """The number of the read at each tick; -1 where the probe was not read."""
        if not len(self.ticks):
            return np.full(len(ticks), -1)
        at = np.minimum(np.searchsorted(self.ticks, ticks), len(self.ticks) - 1)
        return np.where(self.ticks[at] == ticks, at, -1)

    def times(self, ticks: NDArray[Any]) -> Floats:
        """The time of the read at each tick in seconds; NaN where the probe was not read."""
        return np.append(self.seconds, np.nan)[self.places(ticks)]

    def placed(self, ticks: NDArray[Any], values: Floats, missing: float = np.nan) -> Floats:
        """Values at every read of the grid, `missing` where there is none; shape (reads,)."""
        out, at = np.full(len(self.ticks), missing), self.places(ticks)
        out[at[at >= 0]] = values[at >= 0]
        return out

    def gauge(self, ticks: NDArray[Any], values: Floats) -> Series:
        """Series of a reading at the time of the read."""
        return Series(self.seconds, self.placed(ticks, values))

    def counter(
        self,
        ticks: NDArray[Any],
        readings: Floats,
        unit: float,
        size: float | None = None,
        present: NDArray[np.bool_] | None = None,
    ) -> Series:
        """Rates of a cumulative counter between neighbouring reads, in `unit` per second.

        NaN where it restarted or is not known (counters.py). Of float64[counters, reads] the sum over those
        that are `present` at both reads.
        """
        counters = np.atleast_2d(readings)
        there = np.ones(counters.shape, dtype=bool) if present is None else present
        total, members = np.zeros((2, max(0, len(self.ticks) - 1)))
        for one, at in zip(counters, there, strict=True):
            each, seen = steps(self.placed(ticks, one), size), self.placed(ticks, at, 0.0) > 0
            both = seen[1:] & seen[:-1]
            total[both] += np.where(each.restarted, np.nan, each.amounts)[both]
            members += both
        return self._per_second(np.where(members > 0, total, np.nan) * unit)

    def rises(self, ticks: NDArray[Any], since: Floats, rises: Floats, unit: float) -> Series:
        """Rates from increases from the read at tick `since`, NaN: the one before, to that at `ticks`.

        One over several intervals is divided among them by their lengths; those of one interval are added.
        """
        ends, begins = self.places(ticks), self.places(since)
        begins = np.where(begins < 0, ends - 1, begins)
        known = (begins >= 0) & (begins < ends) & ~np.isnan(rises)
        begins, ends, rises = begins[known], ends[known], rises[known]
        size, single = max(0, len(self.ticks) - 1), ends - begins == 1
        amounts = np.bincount(begins[single], rises[single], size).astype(float)  # int if empty
        seen = np.bincount(begins[single], minlength=size)
        for begin, end, risen in zip(begins[~single], ends[~single], rises[~single], strict=True):
            parts = self.half[begin:end]
            amounts[begin:end] += risen * parts / parts.sum()
            seen[begin:end] += 1
        return self._per_second(np.where(seen > 0, amounts, np.nan) * unit)

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
