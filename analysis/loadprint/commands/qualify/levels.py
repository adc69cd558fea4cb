"""Computes the burst level and the sustained level of an instance, and the steps between them.

A disk or CPU of a cloud may have a credit: it is fast until the credit is exhausted. Steps are
found by binary segmentation with the CUSUM statistic (Vostrikova 1981); its distribution without a
step comes from the residuals, resampled in blocks because seconds are autocorrelated (Huskova &
Kirch 2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps
from loadprint.statistics.block_length import block_length

Floats = NDArray[np.float64]
MIN_SEGMENT = 10  # samples, as all constants without a unit
MIN_SERIES = 30
MAX_POINTS = 600
DRAWS = 199
LEVEL = 0.01
FALL = 0.10  # smaller steps down are not exhaustion
RECOVERED = 0.05  # a later level this close to the old one is a recovery


@dataclass(frozen=True)
class Step:
    """A lasting fall of throughput at `second` of the window, from `before` to `after` (mean levels)."""

    second: int
    before: float
    after: float


@dataclass(frozen=True)
class BurstLevels:
    """Levels of one run, in the series' unit.

    `burst` is the best mean over `burst_s` consecutive seconds; `sustained` is the mean from
    `sustained_from` on: after the last lasting step down, else over the second half.
    """

    burst: float
    burst_s: int
    sustained: float
    sustained_from: int
    steps: tuple[Step, ...]


def levels(series: Floats, burst_s: float, step_s: float = 1.0) -> BurstLevels | None:
    """Return the levels of a series with a sample every `step_s` seconds, or None if too short."""
    filled, n = gaps.filled(series), len(series)
    if filled is None or n < MIN_SEGMENT:
        return None
    shares, unit = filled
    span = max(1, int(min(burst_s / step_s, max(MIN_SEGMENT, n // 2))))
    sums = np.concatenate(([0.0], np.cumsum(shares)))
    burst = float(((sums[span:] - sums[:-span]) / span).max())
    steps = exhaustion(shares)
    settled = steps[-1].second if steps else n // 2

    def seconds(samples: int) -> int:
        return round(samples * step_s)

    return BurstLevels(
        burst * unit,
        seconds(span),
        float(shares[settled:].mean()) * unit,
        seconds(settled),
        tuple(Step(seconds(step.second), step.before * unit, step.after * unit) for step in steps),
    )


def exhaustion(series: Floats) -> tuple[Step, ...]:
    """Return steps down by a tenth or more without a recovery, in order of time.

    `series` has one sample per second, none missing.
    """
    if len(series) < MIN_SERIES:
        return ()
    edges = [0, *changes(series), len(series)]
    means = [float(series[a:b].mean()) for a, b in pairwise(edges)]
    steps = []
    for place in range(1, len(means)):
        before, later = means[place - 1], means[place:]
        if later[0] <= (1 - FALL) * before and max(later) <= (1 - RECOVERED) * before:
            steps.append(Step(edges[place], before, later[0]))
    return tuple(steps)


def changes(series: Floats) -> list[int]:
    """Return the seconds at which the level changes; long series are averaged first."""
    width = -(-len(series) // MAX_POINTS)
    points = gaps.averaged(series, MAX_POINTS)
    min_segment = max(3, math.ceil(MIN_SEGMENT / width))
    found = _segmented(points, 0, min_segment, np.random.default_rng(1))
    return [place * width for place in sorted(found)]


def _segmented(points: Floats, offset: int, min_segment: int, random: np.random.Generator) -> Iterator[int]:
    if len(points) < 2 * min_segment or not np.ptp(points) > 0:
        return
    place, size = _largest(points[None, :], min_segment)
    cut = int(place[0])
    residuals = np.concatenate((points[:cut] - points[:cut].mean(), points[cut:] - points[cut:].mean()))
    without = _largest(_resampled(residuals, random), min_segment)[1]
    if (1 + int((without >= size[0]).sum())) / (DRAWS + 1) > LEVEL:
        return
    yield from _segmented(points[:cut], offset, min_segment, random)
    yield offset + cut
    yield from _segmented(points[cut:], offset + cut, min_segment, random)


def _largest(rows: Floats, min_segment: int) -> tuple[NDArray[np.int64], Floats]:
    """Return place (rows,) and size (rows,) of the largest CUSUM of each row (rows, samples)."""
    n = rows.shape[1]
    k = np.arange(min_segment, n - min_segment + 1)
    sums = np.cumsum(rows, axis=1)
    cusum = np.abs(sums[:, k - 1] - k / n * sums[:, -1:]) * np.sqrt(n / (k * (n - k)))
    best = cusum.argmax(axis=1)
    return k[best], cusum[np.arange(len(rows)), best]


def _resampled(residuals: Floats, random: np.random.Generator) -> Floats:
    """Draw series (DRAWS, samples) of residuals in circular blocks, twice the mean's optimal length."""
    n = len(residuals)
    block = min(n, max(5, math.ceil(2 * block_length(residuals)))) if np.ptp(residuals) > 0 else 1
    starts = random.integers(0, n, size=(DRAWS, -(-n // block)))
    places = (starts[:, :, None] + np.arange(block)) % n
    drawn: Floats = residuals[places.reshape(DRAWS, -1)[:, :n]]
    return drawn
