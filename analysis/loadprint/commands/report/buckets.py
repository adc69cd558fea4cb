"""Merges fine histogram buckets into wider ones for a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.rendering.report_data import Floats

PER_DECADE = 30
Fine = tuple[NDArray[Any], Floats]
Shares = tuple[tuple[Floats | None, ...], tuple[int, ...]]


def span(histograms: Sequence[Fine | None]) -> tuple[float, float] | None:
    """Ends of all filled buckets of (counts int[n], edges float64[n + 1]) each; None of nothing.

    A lower end of zero becomes half of the upper one, and an infinite upper end twice the lower one: the axis
    is logarithmic.
    """
    lows, highs = [], []
    for counts, edges in filter(None, histograms):
        filled = np.flatnonzero(counts)
        if not len(filled):
            continue
        low, high = float(edges[filled[0]]), float(edges[filled[-1] + 1])
        lows.append(low if low > 0 else float(edges[filled[0] + 1]) / 2)
        highs.append(high if np.isfinite(high) else 2 * float(edges[filled[-1]]))
    return (min(lows), max(highs)) if lows else None


def evenly(low: float, high: float, per_decade: int = PER_DECADE) -> Floats:
    """Edges that are equally wide on a logarithmic axis, around `low` and `high`."""
    first = np.floor(np.log10(low) * per_decade)
    last = max(first + 1, np.ceil(np.log10(high) * per_decade))
    edges: Floats = 10.0 ** (np.arange(first, last + 1) / per_decade)
    return edges


def every_other(edges: Floats, low: float, high: float) -> Floats:
    """Every second of the given edges around `low` and `high`, so that no fine bucket is divided."""
    finite = edges[np.isfinite(edges) & (edges > 0)][::2]
    first = max(0, int(np.searchsorted(finite, low, "right")) - 1)
    last = min(len(finite) - 1, int(np.searchsorted(finite, high, "left")))
    return finite[first : max(last, first + 1) + 1]


def onto(histograms: Sequence[Fine | None], edges: Floats) -> Shares:
    """Shares float64[m] of each histogram between `edges` float64[m + 1], None where there is none; totals.

    A fine bucket across an edge is divided by width; values outside go to the first or the last bucket.
    """
    shares: list[Floats | None] = []
    for histogram in histograms:
        if histogram is None:
            shares.append(None)
            continue
        counts, fine = histogram
        below = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
        finite = np.where(np.isinf(fine), 2 * fine[-2], fine)
        cumulated = np.interp(edges, finite, below)
        cumulated[0], cumulated[-1] = 0.0, below[-1]
        shares.append(np.diff(cumulated) / max(below[-1], 1.0))
    return tuple(shares), tuple(0 if found is None else int(found[0].sum()) for found in histograms)
