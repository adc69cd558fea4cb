"""Holds the intervals that generators report, and computes their rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.reading import bounds
from loadprint.reading.counters import Floats

STATES = ("latency_p95_ms", "backlog", "concurrency")
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

    def some(self, chosen: NDArray[np.bool_]) -> Intervals:
        """The chosen intervals, bool[intervals]."""
        return Intervals(
            self.begins[chosen],
            self.ends[chosen],
            {name: values[chosen] for name, values in self.totals.items()},
            {name: values[chosen] for name, values in self.states.items()},
            self.usual,
        )

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
