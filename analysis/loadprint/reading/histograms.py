"""Histograms of a recording: cumulative buckets subtract exactly, quantiles come from the difference.

A quantile is the middle of its bucket, so it is off by at most half a bucket: 6.25 % for the eBPF tables,
whose bounds are in their metadata (docs/recording-format.md).
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
    """Counts by bucket, and the bounds: one more than there are buckets, the last may be infinity."""

    counts: Counts
    bounds: NDArray[np.float64]

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    def quantile(self, share: float) -> float:
        """Value below which `share` of the values lie, in the unit of the bounds; NaN when there are none.

        Nearest rank. In a bucket without an upper end it is the lower one: the least it can be.
        """
        total = self.total
        if total == 0:
            return float("nan")
        rank = max(1, int(np.ceil(share * total)))
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        low, high = self.bounds[place], self.bounds[place + 1]
        # bounds of integers: the largest value of a bucket is one less than the next one's least
        return float(low) if np.isinf(high) else float((low + max(low, high - 1)) / 2)


def bounds(described: Mapping[str, Any], column: str) -> NDArray[np.float64]:
    """Bounds of a column from a table's metadata; empty when it has none."""
    told = ((described.get("columns") or {}).get(column) or {}).get("bounds") or []
    return np.array([np.inf if bound is None else bound for bound in told], dtype=np.float64)


def difference(
    after: Sequence[int] | Counts, before: Sequence[int] | Counts | None, bounds: NDArray[np.float64]
) -> Histogram | None:
    """What was counted between two readings; `before` is None for an entity that was not there yet.

    None when the counts fell (the source began anew), are no counts, or do not fit the bounds.
    """
    try:
        last = np.asarray(after, dtype=np.uint64)
        first = np.zeros_like(last) if before is None else np.asarray(before, dtype=np.uint64)
    except (TypeError, ValueError, OverflowError):
        return None
    if len(first) != len(last) or len(bounds) != len(last) + 1 or (last < first).any():
        return None
    return Histogram(last - first, bounds)
