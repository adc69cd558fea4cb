"""Holds the intervals that generators report, computes their rates, and adds those of several load hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.reading import bounds
from loadprint.series.axis import Floats

STATES = ("latency_p95_ms", "backlog", "concurrency")
WORST = ("latency_p95_ms",)  # of several hosts; the other states are added
SHORT = 0.5  # of the usual length: a late report shortens the next interval; the last can be partial
WHOLE = 0.9  # of the usual length: the first report of a window can count from before it


@dataclass(frozen=True)
class Intervals:
    """The generator's intervals of the measure phase, ordered by time; arrays (intervals,).

    `begins` and `ends` are seconds since the start of the phase. `totals` are counts of all transaction types
    together, `states` the worst of them; NaN where an interval reports none. `usual` is the median length in
    seconds.
    """

    begins: Floats
    ends: Floats
    totals: Mapping[str, Floats]
    states: Mapping[str, Floats]
    usual: float

    @property
    def lengths(self) -> Floats:
        """Lengths in seconds."""
        return self.ends - self.begins

    def rates(self, name: str) -> Floats:
        """A count per second of each interval; NaN where it is unknown."""
        lengths = self.lengths
        whole = lengths > 0
        whole[:1] &= lengths[:1] >= WHOLE * self.usual
        rates: Floats = np.divide(self.totals[name], lengths, out=np.full(len(whole), np.nan), where=whole)
        return rates

    def samples(self, name: str) -> Floats:
        """Rates at steps of `usual` seconds from the start of the phase to the last known rate; NaN in gaps.

        Empty if no rate is known, or if the lengths differ too much for common steps.
        """
        rates = self.rates(name)
        if not np.isfinite(rates).any():
            return np.empty(0)
        gaps = np.diff(self.begins, prepend=0.0)
        gaps[1:] = self.begins[1:] - self.ends[:-1]
        values = np.column_stack((np.full(len(rates), np.nan), rates)).ravel()
        steps = np.column_stack(
            (np.round(gaps / self.usual), np.maximum(np.round(self.lengths / self.usual), 1))
        )
        steps = np.clip(np.nan_to_num(steps.ravel()), 0, bounds.POINTS)
        if steps.sum() > bounds.POINTS:
            return np.empty(0)
        even = np.repeat(values, steps.astype(int))
        return even[: np.flatnonzero(np.isfinite(even))[-1] + 1]


def added(parts: Sequence[tuple[Intervals, float]]) -> Intervals:
    """Sums of the intervals of several hosts, (intervals, seconds from the common zero to their start).

    The hosts' intervals end at different times: each one's counts are spread evenly over its interval, then
    counted in common intervals of the usual length. Totals are kept. A common interval in which a host has a
    gap is NaN.
    """
    usual = max(part.usual for part, _ in parts)
    end = max(float(part.ends[-1]) + shift for part, shift in parts)
    steps = min(max(1, round(end / usual)), bounds.POINTS)
    edges = np.append(np.arange(steps) * usual, end)
    names = [name for name in parts[0][0].totals if all(name in part.totals for part, _ in parts)]
    totals = {
        name: np.sum([_counted(part, shift, name, edges) for part, shift in parts], axis=0) for name in names
    }
    middle = (edges[1:] + edges[:-1]) / 2
    states = {}
    for name in parts[0][0].states:
        if all(name in part.states for part, _ in parts):
            seen = [_state(part, shift, name, middle) for part, shift in parts]
            states[name] = np.max(seen, axis=0) if name in WORST else np.sum(seen, axis=0)
    return Intervals(edges[:-1], edges[1:], totals, states, usual)


def _counted(part: Intervals, shift: float, name: str, edges: Floats) -> Floats:
    """Counts of one host between common edges."""
    begins, ends, counts = part.begins + shift, part.ends + shift, part.totals[name]
    times = np.column_stack((begins, ends)).ravel()
    risen = np.cumsum(np.nan_to_num(counts))
    readings = np.column_stack((np.append(0.0, risen[:-1]), risen)).ravel()
    # intervals are ordered; rounding can put an end behind the next start
    sums: Floats = np.diff(np.interp(edges, np.maximum.accumulate(times), readings))
    gaps = [(begins[at], ends[at]) for at in np.flatnonzero(np.isnan(counts))]
    gaps += [(ends[at], begins[at + 1]) for at in np.flatnonzero(begins[1:] - ends[:-1] > SHORT * part.usual)]
    for begin, end in gaps:
        sums[(edges[1:] > begin) & (edges[:-1] < end)] = np.nan
    return sums


def _state(part: Intervals, shift: float, name: str, times: Floats) -> Floats:
    """A host's state at some times: that of the interval around each; NaN outside of all."""
    at = np.clip(np.searchsorted(part.ends + shift, times), 0, len(part.ends) - 1)
    values: Floats = part.states[name][at]
    return values
