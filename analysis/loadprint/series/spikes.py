"""Finds checkpoint spikes: seconds of forced flushing because the redo log is nearly full.

A spike lasts two seconds or more, with a checkpoint age above 75 % of the redo capacity and more than three
times the median of pages flushed. It stalls the load if throughput falls by more than 30 % meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.counters import Floats
from loadprint.reading.time_series import Series
from loadprint.statistics import gaps

AGE, CAPACITY, FLUSHED, EVENTS = (
    "mysql.checkpoint_age",
    "mysql.redo_capacity",
    "mysql.pages_flushed",
    "load.events",
)
NEEDED = {FLUSHED: "pages flushed", AGE: "the checkpoint age", CAPACITY: "the redo capacity"}
FULL = 0.75
BURST = 3.0
SHORTEST = 2.0  # seconds
DROP = 0.30
SHORTEST_SERIES = 30  # seconds: for a median and a 99th percentile
STALL, HELD, UNKNOWN = "checkpoint spike", "checkpoint flushing", "checkpoint flushing, throughput unknown"


@dataclass(frozen=True)
class Spike:
    """One spike, in seconds since the start of `measure`.

    `throughput_drop` is the largest fall over two neighbouring seconds as a share of the median (0.4: 40 %
    less); None without a throughput series. `what` is STALL if it exceeds 30 %, else HELD.
    """

    begin_s: float
    end_s: float
    what: str
    throughput_drop: float | None


def find(series: Mapping[str, Series]) -> tuple[Spike, ...]:
    """Spikes of the measure phase, ordered by time; none if `why_no_spikes` gives a reason."""
    if why_no_spikes(series):
        return ()
    _, flushed, edges = _measured(series)
    share = _largest(series[AGE], edges) / _largest(series[CAPACITY], edges)
    with np.errstate(invalid="ignore"):
        hot = (share > FULL) & (flushed > BURST * _usual(flushed))
    return tuple(_spike(series, begin, end) for begin, end in _stretches(hot, edges))


def flush_burst(series: Mapping[str, Series]) -> float | None:
    """99th percentile of pages flushed per second ÷ median; None if `why_no_burst` gives a reason."""
    if why_no_burst(series):
        return None
    _, flushed, _ = _measured(series)
    return float(np.nanquantile(flushed, 0.99) / np.nanmedian(flushed))


def why_no_spikes(series: Mapping[str, Series]) -> str:
    """Reason why spikes cannot be detected; empty if they can."""
    for key, what in NEEDED.items():
        if key not in series:
            return f"no series of {what}: the MySQL probe did not record it"
    return _too_short(series)


def why_no_burst(series: Mapping[str, Series]) -> str:
    """Reason why there is no flush burst; empty if there is one."""
    if FLUSHED not in series:
        return "no series of pages flushed: the MySQL probe did not record it"
    if short := _too_short(series):
        return short
    _, flushed, _ = _measured(series)
    if not np.nanmedian(flushed) > 0:
        return "the median of pages flushed is 0: no page was flushed in half of the seconds"
    return ""


def _measured(series: Mapping[str, Series]) -> tuple[Floats, Floats, Floats]:
    """Midpoints and values of pages flushed in the measure phase, and the edges of their intervals."""
    flushed = series[FLUSHED]
    end = np.inf
    if EVENTS in series:
        events = series[EVENTS]
        end = float((events.seconds + np.maximum(events.half, 0.5)).max(initial=0.0))
    inside = (flushed.seconds >= 0) & (flushed.seconds <= end)
    middle, values = flushed.seconds[inside], flushed.values[inside]
    if not len(middle):
        return middle, values, np.zeros(1)
    between = (middle[1:] + middle[:-1]) / 2
    half = np.median(np.diff(middle)) / 2 if len(middle) > 1 else 0.5
    return middle, values, np.concatenate([[middle[0] - half], between, [middle[-1] + half]])


def _too_short(series: Mapping[str, Series]) -> str:
    _, flushed, edges = _measured(series)
    seconds = float(edges[-1] - edges[0])
    if seconds < SHORTEST_SERIES or np.isfinite(flushed).sum() < SHORTEST_SERIES / 2:
        return f"the series is shorter than {SHORTEST_SERIES} seconds"
    return ""


def _largest(series: Series, edges: Floats) -> Floats:
    """The larger reading of a gauge at the two ends of each interval: flushing lowers the age at once.

    Readings are interpolated; the result is NaN without a reading within two seconds.
    """
    finite = np.isfinite(series.values)
    if not finite.any():
        return np.full(len(edges) - 1, np.nan)
    times = series.seconds[finite]
    at_edges: Floats = np.interp(edges, times, series.values[finite])
    after = np.clip(np.searchsorted(times, edges), 0, len(times) - 1)
    apart = np.minimum(np.abs(times[after] - edges), np.abs(edges - times[np.maximum(after - 1, 0)]))
    at_edges[apart > SHORTEST] = np.nan
    return np.maximum(at_edges[:-1], at_edges[1:])


def _usual(flushed: Floats) -> float:
    """Typical pages flushed per second: the median, or the mean if the median is 0."""
    median = float(np.nanmedian(flushed))
    return median if median > 0 else float(np.nanmean(flushed))


def _stretches(hot: NDArray[np.bool_], edges: Floats) -> Iterator[tuple[float, float]]:
    """Start and end of each stretch of hot intervals that is long enough."""
    steps = np.diff(np.concatenate([[0], hot.astype(int), [0]]))
    for first, last in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True):
        begin, end = float(edges[first]), float(edges[last])
        # two intervals of a second are rarely two seconds exactly
        if end - begin >= SHORTEST * 0.95:
            yield begin, end


def _spike(series: Mapping[str, Series], begin: float, end: float) -> Spike:
    drop = _drop(series.get(EVENTS), begin, end)
    if drop is None:
        return Spike(begin, end, UNKNOWN, None)
    return Spike(begin, end, STALL if drop > DROP else HELD, drop)


def _drop(events: Series | None, begin: float, end: float) -> float | None:
    """Largest fall below the median over two neighbouring seconds of the spike; 0 if there is none."""
    if events is None:
        return None
    rates, _ = gaps.scaled(events.values)
    inside = rates[(events.seconds >= begin - 0.5) & (events.seconds <= end + 0.5)]
    pairs = (inside[1:] + inside[:-1]) / 2
    if not np.isfinite(pairs).any() or not (usual := float(np.nanmedian(rates))) > 0:
        return None
    return max(0.0, 1 - float(np.nanmin(pairs)) / usual)
