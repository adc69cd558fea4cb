"""Sums the latencies of a run's intervals by transaction type (load/latency.parquet).

A row of the table counts the latencies of one interval and type in one bucket of HdrHistogram with three
significant digits. It has no row for an empty bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.reading import bounds
from loadprint.reading.columns import NANOSECOND
from loadprint.reading.counters import Floats
from loadprint.reading.names import LOAD
from loadprint.reading.queries import FIX, Store, by_entity
from loadprint.reading.recording import Run
from loadprint.reading.time_series import interval_times
from loadprint.reading.window import measured_times

EXACT = 1 << 53  # a double is exact for integers up to it
SUMS = f"""
SELECT type, from_ns::DOUBLE AS from_ns, to_ns::DOUBLE AS to_ns, sum(count)::DOUBLE AS count
FROM (SELECT type, second, from_ns::BIGINT AS from_ns, to_ns::BIGINT AS to_ns, count::BIGINT AS count FROM t)
WHERE from_ns >= 0 AND to_ns > from_ns AND to_ns <= {EXACT} AND count BETWEEN 1 AND {EXACT} {{inside}}
GROUP BY ALL HAVING sum(count) <= {EXACT} ORDER BY from_ns, to_ns
"""


@dataclass(frozen=True)
class LatencyHistogram:
    """Counts by bucket, int64[n], none of them 0, and the buckets' bounds in seconds, float64[n], ascending.

    A bucket has the values from its `lowers` to less than its `uppers`. HdrHistogram reports a value as the
    highest of its bucket, a nanosecond below `uppers`, and the smallest of all as the lowest of its bucket.
    """

    counts: NDArray[np.int64]
    lowers: Floats
    uppers: Floats

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    @property
    def minimum(self) -> float:
        """The smallest value in seconds, as HdrHistogram reports it; NaN without values."""
        return float(self.lowers[0]) if len(self.counts) else np.nan

    @property
    def maximum(self) -> float:
        """The largest value in seconds, as HdrHistogram reports it; NaN without values."""
        return float(self.uppers[-1]) - NANOSECOND if len(self.counts) else np.nan

    @property
    def mean(self) -> float:
        """The mean in seconds, each value in the middle of its bucket: within 0.05 %; NaN without values."""
        highest = self.uppers - NANOSECOND
        return float((self.lowers + highest) / 2 @ self.counts) / self.total if self.total else np.nan

    def quantiles(self, shares: Floats) -> Floats:
        """The value of each share in seconds, as HdrHistogram reports it; NaN without values."""
        if not self.total:
            return np.full(len(shares), np.nan)
        ranks = np.maximum(1, np.ceil(shares * self.total))
        places = np.searchsorted(np.cumsum(self.counts), ranks)
        values: Floats = self.uppers[np.minimum(places, len(self.counts) - 1)] - NANOSECOND
        return values


def added(several: Sequence[LatencyHistogram]) -> LatencyHistogram:
    """The values of one or more histograms; all have the buckets of HdrHistogram."""
    every = np.concatenate([one.lowers for one in several])
    lowers, first, places = np.unique(every, return_index=True, return_inverse=True)
    counts = np.bincount(places, np.concatenate([one.counts for one in several]), len(lowers))
    uppers = np.concatenate([one.uppers for one in several])[first]
    return LatencyHistogram(counts.astype(np.int64), lowers, uppers)


def read(run: Run, store: Store) -> dict[str, LatencyHistogram]:
    """Latencies of the run's segments by transaction type; empty without the table, or without values.

    Of a run with segments only intervals that are entirely inside of one of them count. Raises InputError.
    """
    path = run.table(LOAD, "latency")
    if path is None:
        return {}
    inside = "" if run.segments is None else f"AND second IN ({_seconds(path, run, store) or 'NULL'})"
    rows = store.fetch(path, SUMS.format(inside=inside))
    if len(rows["type"]) > bounds.BUCKETS:
        raise InputError(path, f"more than {bounds.BUCKETS:,} different buckets", FIX)
    return {
        kind: LatencyHistogram(
            of["count"].astype(np.int64), of["from_ns"] * NANOSECOND, of["to_ns"] * NANOSECOND
        )
        for kind, of in by_entity(rows, "type")
    }


def _seconds(path: Path, run: Run, store: Store) -> str:
    """The numbers of the intervals inside of the segments, as a list of SQL. Raises InputError."""
    measure = run.phase("measure")
    second, stamps = _intervals(path, store)
    if measure is None or not len(second):
        return ""
    every, begins, ends = second, *interval_times(second, stamps, measure)
    throughput = run.table(LOAD, "throughput")
    if throughput and "monotonic_ns" in store.columns(throughput):
        # it also has the intervals without latencies, at whose ends others begin
        every, stamps = _intervals(throughput, store)
        begins, _ = interval_times(every, stamps, measure)
    begins = np.append(begins, np.nan)[np.where(np.isin(second, every), np.searchsorted(every, second), -1)]
    inside = np.isfinite(measured_times(run, store, begins, ends)) & (begins < ends)
    return ", ".join(f"{number:.0f}" for number in second[inside])


def _intervals(path: Path, store: Store) -> tuple[Floats, Floats]:
    """The numbers of a table's intervals, and the stamps of their ends in ns. Raises InputError."""
    query = "SELECT second::DOUBLE AS second, max(monotonic_ns::DOUBLE) AS monotonic_ns FROM t"
    rows = store.fetch(path, f"{query} GROUP BY ALL ORDER BY second")
    if len(rows["second"]) > bounds.POINTS:
        raise InputError(path, f"more than {bounds.POINTS:,} seconds", FIX)
    return rows["second"], rows["monotonic_ns"]
