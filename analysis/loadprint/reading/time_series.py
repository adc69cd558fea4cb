"""Computes the time axis of series (the reads of each probe) and the rates of counters between reads.

Seconds count from the start of phase `measure`; the time of a rate is the middle of its interval. A rate is
the increase of a counter between neighbouring reads; an interval with a missing read is a hole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.counters import Floats, Marks, Numbers, edges
from loadprint.reading.queries import by_entity
from loadprint.reading.recording import Run
from loadprint.reading.stamps import Phase


@dataclass(frozen=True)
class Series:
    """One quantity over time.

    `seconds` and `values` are float64 arrays, shape (intervals,): base units per second of a counter, the
    reading of a gauge. NaN where a tick was missed, a read failed or a counter was reset. `half` is half the
    length of each interval in seconds, shape (intervals,); 0 for a reading. `measured`, of the same shape, is
    the time on an axis of the segments alone, end to end from 0 s; NaN outside of them, such as in a turn of
    another side.
    """

    seconds: Floats
    values: Floats
    half: Floats | float
    measured: Floats

    @property
    def inside(self) -> Marks:
        """Which values are of the measured time, shape (intervals,)."""
        return np.isfinite(self.measured)


@dataclass(frozen=True)
class Grid:
    """The reads of one probe: `ticks` and `seconds`, shape (reads,).

    `holes`, shape (reads - 1,), marks the intervals with a missing read. `segment`, shape (reads,), is the
    number of the segment that a read is entirely inside; -1 if there is none. `measured` is as in `Series`.
    """

    ticks: NDArray[np.int64]
    seconds: Floats
    holes: NDArray[np.bool_]
    segment: Numbers
    measured: Floats

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

    def segments(self, ticks: NDArray[Any]) -> Numbers:
        """The segment of the read at each tick; -1 outside, and where the probe was not read."""
        return np.append(self.segment, -1)[self.places(ticks)]

    @cached_property
    def read(self) -> Numbers:
        """The numbers of the reads inside segments."""
        return np.flatnonzero(self.segment >= 0)

    @cached_property
    def lengths(self) -> Floats:
        """Seconds from the first to the last read of each segment that has reads."""
        first, last = edges(self.segment[self.read])
        return self.seconds[self.read][last] - self.seconds[self.read][first]

    def placed(self, ticks: NDArray[Any], values: Floats, missing: float = np.nan) -> Floats:
        """Values at every read of the grid, `missing` where there is none; shape (reads,)."""
        out, at = np.full(len(self.ticks), missing), self.places(ticks)
        out[at[at >= 0]] = values[at >= 0]
        return out

    def gauge(self, ticks: NDArray[Any], values: Floats) -> Series:
        """Series of a reading at the time of the read."""
        return Series(self.seconds, self.placed(ticks, values), 0.0, self.measured)

    def counter(self, amounts: Floats) -> Series:
        """Increases over the intervals as rates; NaN in holes, and between two reads at the same time."""
        length = 2 * self.half
        usable = ~self.holes & (length > 0)
        rates = np.divide(amounts, length, out=np.full(len(amounts), np.nan), where=usable)
        apart = self.segment[1:] != self.segment[:-1]
        measured = np.where(apart, np.nan, (self.measured[1:] + self.measured[:-1]) / 2)
        return Series(self.middle, rates, self.half, measured)


def grids(
    reads: dict[str, NDArray[Any]], begin_ns: float, segments: Sequence[tuple[float, float]]
) -> dict[str, Grid]:
    """The grid of each probe, from rows of ticks.parquet; seconds count from `begin_ns`.

    `segments` are begins and ends in ns, in order.
    """
    return {probe: _grid(rows, begin_ns, segments) for probe, rows in by_entity(reads, "probe")}


def _grid(rows: dict[str, NDArray[Any]], begin_ns: float, segments: Sequence[tuple[float, float]]) -> Grid:
    """Reads that succeeded. A hole is an interval that is longer than usual without a skipped tick."""
    taken = rows["status"] == "ok"
    # a duplicate tick would be an interval of length 0
    ticks, first = np.unique(rows["tick"][taken].astype(np.int64), return_index=True)
    start, end = rows["start"][taken][first], rows["end"][taken][first]
    skipped = np.sort(rows["tick"][rows["status"] == "skipped"].astype(np.int64))
    apart = np.diff(ticks)
    usual = int(np.median(apart)) if len(apart) else 1
    passed = np.searchsorted(skipped, ticks[1:]) - np.searchsorted(skipped, ticks[:-1])
    holes = (apart > usual) & (passed < apart - 1)
    middle, segment = (start + end) / 2, segments_of(start, end, segments)
    return Grid(ticks, (middle - begin_ns) / 1e9, holes, segment, end_to_end(middle, segment, segments) / 1e9)


def segments_of(begins: Floats, ends: Floats, segments: Sequence[tuple[float, float]]) -> Numbers:
    """The segment that each stretch of time is entirely inside; -1 if there is none. NaN is outside."""
    starts, stops = (np.array([span[end] for span in segments], float) for end in (0, 1))
    at = np.searchsorted(starts, np.nan_to_num(begins, nan=-np.inf), side="right") - 1
    return np.where((at >= 0) & (ends <= np.append(stops, np.nan)[at]), at, -1)


def end_to_end(times: Floats, segment: Numbers, segments: Sequence[tuple[float, float]]) -> Floats:
    """The measured time before each time: that in its segment, and those before; NaN outside of all."""
    begins, ends = (np.array([span[end] for span in segments], float) for end in (0, 1))
    # the last segment may have no end
    since = begins - np.append(0.0, np.cumsum(ends - begins))[: len(begins)]
    return np.where(segment >= 0, times - np.append(since, np.nan)[segment], np.nan)


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


def interval_times(second: Floats, stamps: Floats, measure: Phase) -> tuple[Floats, Floats]:
    """Begins and ends of the generator's intervals, in seconds since the start of `measure`.

    `second` are their numbers in rising order, at least one, `stamps` their ends in CLOCK_MONOTONIC ns. An
    interval begins at the end of the previous one, the last one ends with the phase; a number that is missing
    is a gap.
    """
    window = np.inf if measure.end_ns is None else (measure.end_ns - measure.begin_ns) / 1e9
    ends = np.minimum((stamps - measure.begin_ns) / 1e9, window)
    begins = np.concatenate([[0.0], ends[:-1]])
    missed = np.flatnonzero(np.diff(second, prepend=-1.0) > 1)
    begins[missed] = np.maximum(begins[missed], ends[missed] - np.median(ends - begins))
    return begins, ends
