"""Subtracts cumulative histograms and computes quantiles of the difference.

A quantile is the middle of its bucket. Its error is at most half a bucket: 6.25 % in the eBPF tables, whose
bounds are in their metadata (docs/recording-format.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def bounds(described: Mapping[str, Any], column: str) -> NDArray[np.float64]:
    """Bounds of a column from a table's metadata; empty if it has none."""
    values = ((described.get("columns") or {}).get(column) or {}).get("bounds") or []
    return np.array([np.inf if bound is None else bound for bound in values], dtype=np.float64)


def difference(
    after: Sequence[int] | Counts, before: Sequence[int] | Counts | None, bounds: NDArray[np.float64]
) -> Histogram | None:
    """Values counted between two readings; `before` is None for an entity that did not exist then.

    None if the counts decreased (the source restarted), are not counts, or do not match the bounds.
    """
    try:
        last = np.asarray(after, dtype=np.uint64)
        first = np.zeros_like(last) if before is None else np.asarray(before, dtype=np.uint64)
    except (TypeError, ValueError, OverflowError):
        return None
    if len(first) != len(last) or len(bounds) != len(last) + 1 or (last < first).any():
        return None
    return Histogram(last - first, bounds)
