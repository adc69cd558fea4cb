"""What an instance gives at first and what it keeps up: burst, sustained level, and the step between them.

Bought performance may be a credit: a disk or a CPU is quick until it is used up. Steps are found by binary
segmentation with the CUSUM statistic (Vostrikova 1981); how large it grows without any step is taken from the
residuals, resampled in blocks because seconds depend on each other (Huskova & Kirch 2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps
from loadprint.statistics.bootstrap import block_length

Floats = NDArray[np.float64]
LEAST_SEGMENT = 10  # samples, as all that has no unit here
LEAST_SERIES = 30
MOST_POINTS = 600
DRAWS = 199
LEVEL = 0.01
FALL = 0.10  # a smaller step down is not called exhaustion
RECOVERED = 0.05  # nor is one after which a level comes this near to the old one


@dataclass(frozen=True)
class Step:
    """Throughput fell at `second` of the window, from `before` to `after` (mean levels), for good."""

    second: int
    before: float
    after: float


@dataclass(frozen=True)
class Levels:
    """Levels of one run, in the series' unit.

    `burst` is the best mean over `burst_s` seconds in a row, which began at `burst_from`; `sustained` is the
    mean from `sustained_from` on: after the last lasting step down, else over the second half.
    """

    seconds: int
    burst: float
    burst_s: int
    burst_from: int
    sustained: float
    sustained_from: int
    steps: tuple[Step, ...]


def levels(series: Floats, burst_s: float, step_s: float = 1.0) -> Levels | None:
    """Levels of a series with a sample every `step_s` seconds; None below ten samples or with many gaps."""
    found, n = gaps.filled(series), len(series)
    if found is None or n < LEAST_SEGMENT:
        return None
    shares, unit = found
    span = max(1, int(min(burst_s / step_s, max(LEAST_SEGMENT, n // 2))))
    sums = np.concatenate(([0.0], np.cumsum(shares)))
    moving = (sums[span:] - sums[:-span]) / span
    first = int(np.argmax(moving))
    steps = exhaustion(shares)
    settled = steps[-1].second if steps else n // 2

    def seconds(samples: int) -> int:
        return round(samples * step_s)

    return Levels(
        seconds(n),
        float(moving[first]) * unit,
        seconds(span),
        seconds(first),
        float(shares[settled:].mean()) * unit,
        seconds(settled),
        tuple(Step(seconds(step.second), step.before * unit, step.after * unit) for step in steps),
    )


def exhaustion(series: Floats, seed: int = 1) -> tuple[Step, ...]:
    """Steps down by a tenth or more from which throughput does not come back, in order of time.

    `series` has a sample each second, none missing.
    """
    if len(series) < LEAST_SERIES:
        return ()
    edges = [0, *changes(series, seed), len(series)]
    means = [float(series[a:b].mean()) for a, b in pairwise(edges)]
    found = []
    for place in range(1, len(means)):
        before, later = means[place - 1], means[place:]
        if later[0] <= (1 - FALL) * before and max(later) <= (1 - RECOVERED) * before:
            found.append(Step(edges[place], before, later[0]))
    return tuple(found)


def changes(series: Floats, seed: int = 1) -> list[int]:
    """Seconds at which the level changes. Long series are looked at in means of some seconds."""
    width = -(-len(series) // MOST_POINTS)
    points = series[: len(series) // width * width].reshape(-1, width).mean(axis=1)
    least = max(3, math.ceil(LEAST_SEGMENT / width))
    random = np.random.default_rng(seed)
    return [place * width for place in sorted(_segmented(points, 0, least, random))]


def _segmented(points: Floats, offset: int, least: int, random: np.random.Generator) -> Iterator[int]:
    if len(points) < 2 * least or not np.ptp(points) > 0:
        return
    place, size = _largest(points[None, :], least)
    cut = int(place[0])
    residuals = np.concatenate((points[:cut] - points[:cut].mean(), points[cut:] - points[cut:].mean()))
    without = _largest(_resampled(residuals, random), least)[1]
    if (1 + int((without >= size[0]).sum())) / (DRAWS + 1) > LEVEL:
        return
    yield from _segmented(points[:cut], offset, least, random)
    yield offset + cut
    yield from _segmented(points[cut:], offset + cut, least, random)


def _largest(rows: Floats, least: int) -> tuple[NDArray[np.int64], Floats]:
    """Place (rows,) and size (rows,) of the largest CUSUM of each row (rows, samples)."""
    n = rows.shape[1]
    k = np.arange(least, n - least + 1)
    sums = np.cumsum(rows, axis=1)
    apart = np.abs(sums[:, k - 1] - k / n * sums[:, -1:]) * np.sqrt(n / (k * (n - k)))
    best = apart.argmax(axis=1)
    return k[best], apart[np.arange(len(rows)), best]


def _resampled(residuals: Floats, random: np.random.Generator) -> Floats:
    """Series (DRAWS, samples) of residuals in circular blocks, twice as long as the mean's best length."""
    n = len(residuals)
    block = min(n, max(5, math.ceil(2 * block_length(residuals)))) if np.ptp(residuals) > 0 else 1
    starts = random.integers(0, n, size=(DRAWS, -(-n // block)))
    places = (starts[:, :, None] + np.arange(block)) % n
    drawn: Floats = residuals[places.reshape(DRAWS, -1)[:, :n]]
    return drawn
