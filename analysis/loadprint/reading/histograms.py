"""Subtracts cumulative histograms and computes quantiles of the difference.

A quantile is the middle of its bucket. Its error is at most half a bucket: 6.25 % in the eBPF tables, whose
bounds are in their metadata (docs/recording-format.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.run_documents import ColumnMeaning, TableMeaning

Counts = NDArray[np.uint64]


@dataclass(frozen=True)
class Histogram:
    """Counts by bucket, and the buckets' bounds: one more than counts, the last may be infinity."""

    counts: Counts
    bounds: NDArray[np.float64]

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    def quantile(self, share: float) -> float:
        """Nearest-rank quantile in the unit of the bounds; NaN without values.

        In a bucket without an upper bound it is the lower bound.
        """
        total = self.total
        if total == 0:
            return float("nan")
        rank = max(1, int(np.ceil(share * total)))
        return float(self._middles()[np.searchsorted(np.cumsum(self.counts), rank)])

    def mean(self) -> float:
        """Mean in the unit of the bounds, each value in the middle of its bucket; NaN without values."""
        total = self.total
        return float(self._middles() @ self.counts.astype(float)) / total if total else float("nan")

    def _middles(self) -> NDArray[np.float64]:
        """The middle of each bucket; of one without an upper bound its lower bound."""
        low, high = self.bounds[:-1], self.bounds[1:]
        # integers: the largest value of a bucket is one less than the next bound
        return np.where(np.isinf(high), low, (low + np.maximum(low, high - 1)) / 2)


def bounds(described: TableMeaning) -> NDArray[np.float64]:
    """Bounds of the column `buckets` from a table's metadata; empty without, or if they do not increase."""
    declared = described.meanings.get("buckets", ColumnMeaning()).bounds
    edges = np.array([np.inf if bound is None else bound for bound in declared], dtype=np.float64)
    return edges if (edges[1:] > edges[:-1]).all() else np.empty(0)


def increase(
    readings: Sequence[Sequence[int] | Counts],
    bounds: NDArray[np.float64],
    of: Sequence[float] | NDArray[Any] | None = None,
) -> Histogram | None:
    """Values counted over some readings, by the rule of counters.py; a reset sets all buckets to zero.

    `of` are the segments of the readings. None if it is not known, or the readings do not match the bounds.
    """
    counts = np.array(readings, dtype=np.uint64)
    if len(bounds) != counts.shape[1] + 1:
        return None
    same = np.ones(len(counts) - 1, bool) if of is None else np.diff(np.asarray(of)) == 0
    before, after = counts[:-1][same], counts[1:][same]
    reset = np.any(after < before, axis=1, keepdims=True)
    if reset.all():
        return None
    return Histogram(np.where(reset, after, after - before).sum(axis=0), bounds)
