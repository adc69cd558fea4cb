"""Estimates variance components: between instances, runs of one instance, seconds of one run.

One-way random effects on the logs of run means, log y = level + instance + run, fitted by
restricted maximum likelihood (Patterson & Thompson 1971). With equal numbers of runs: the analysis
of variance, cut off at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps

Floats = NDArray[np.float64]
GRID = np.linspace(-14.0, 14.0, 113)  # log of the ratio of variances
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Components:
    """Coefficients of variation, as shares: between instances, between runs of one, between its seconds.

    None if not estimable: one instance, one run of each, no throughput by seconds. The part of the
    runs includes the remaining noise of the seconds in a mean over the window.
    """

    instances: float | None
    runs: float | None
    seconds: float | None


def components(values: Sequence[Sequence[float]], seconds: Sequence[Floats] = ()) -> Components:
    """Return the spread of positive run means by instance, and of series of seconds (one per run)."""
    groups = [np.log(np.asarray(runs, dtype=float)) for runs in values if len(runs)]
    count = sum(map(len, groups))
    between, within = None, None
    if len(groups) == 1 and count > 1:
        within = float(np.var(groups[0], ddof=1))
    elif len(groups) > 1 and count > len(groups):
        between, within = reml(groups)
    return Components(_cv(between), _cv(within), _pooled(seconds))


def reml(groups: Sequence[Floats]) -> tuple[float, float]:
    """Return the variances (between, within) of two or more groups, at least one with two values."""
    sizes = np.array([len(group) for group in groups], dtype=float)
    means = np.array([float(group.mean()) for group in groups])
    inside = math.fsum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    freedom = float(sizes.sum()) - 1
    scale = float(means.var()) + inside
    if inside <= 1e-24 * max(1.0, scale):
        return float(means.var(ddof=1)), 0.0

    def profile(ratio: float) -> tuple[float, float]:
        """Return twice the restricted log likelihood, and the variance within."""
        weights = sizes / (1 + sizes * ratio)
        level = float(weights @ means / weights.sum())
        variance = (inside + float(weights @ (means - level) ** 2)) / freedom
        spread = float(np.log1p(sizes * ratio).sum()) + math.log(float(weights.sum()))
        return -(freedom * math.log(variance) + spread), variance

    best = int(np.argmax([profile(math.exp(at))[0] for at in GRID]))
    low, high = float(GRID[max(0, best - 1)]), float(GRID[min(len(GRID) - 1, best + 1)])
    while high - low > 1e-9:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if profile(math.exp(left))[0] < profile(math.exp(right))[0]:
            low = left
        else:
            high = right
    ratio = math.exp((low + high) / 2)
    if profile(0.0)[0] >= profile(ratio)[0]:
        ratio = 0.0
    within = profile(ratio)[1]
    return ratio * within, within


def _cv(variance: float | None) -> float | None:
    """Return the coefficient of variation of a lognormal value from the variance of its log."""
    return None if variance is None else math.sqrt(math.expm1(variance))


def _pooled(series: Sequence[Floats]) -> float | None:
    """Return the root mean square of the coefficients of variation of series."""
    shares = [gaps.known(each) for each in series]
    known = [each for each in shares if len(each) > 1 and each.mean() > 0]
    if not known:
        return None
    return math.sqrt(
        math.fsum(float(each.var(ddof=1)) / float(each.mean()) ** 2 for each in known) / len(known)
    )
