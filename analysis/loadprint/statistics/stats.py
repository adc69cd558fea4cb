"""Computes means, ratios and differences of runs with their intervals. The unit is the run, not the second.

Intervals are Student's t of log run means: paired within blocks, otherwise Welch's. At the observed spread
between runs, plans give the repeats that would decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]
LEVEL = 0.95
NORMAL = NormalDist().inv_cdf(0.5 + LEVEL / 2)
MIN_REPEATS, MAX_REPEATS = 3, 1000
APART, MOST_MORE = 0.05, 30  # the difference that further repeats are planned for; more of them are no plan
LARGEST_LOG = 700.0  # exp of more overflows a double


@dataclass(frozen=True)
class Estimate:
    """A centre, its 95 % interval and the two-sided p of "no effect"; all but the centre may be None."""

    centre: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    def widened(self, factor: float) -> Estimate:
        """The same with an interval that is `factor` times as wide, and no p."""
        if self.low is None or self.high is None:
            return self
        low, high = (self.centre + factor * (bound - self.centre) for bound in (self.low, self.high))
        return Estimate(self.centre, low, high)


def mean(values: Iterable[float | None]) -> float | None:
    """Arithmetic mean of the known values; None without one."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def t_tail(t: float, df: float) -> float:
    """P(T > t) of Student's t for `df` > 0 degrees of freedom, not necessarily an integer."""
    return float(stdtr(df, -t))


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The value t with P(T < t) = `p`, 0 < p < 1, of Student's t."""
    return float(stdtrit(df, p))


def t_interval(values: Sequence[float] | Floats, *, level: float = LEVEL) -> Estimate:
    """Mean of run means with its Student's t interval. No interval below three values, and no `p`."""
    data = np.asarray(values, dtype=float)
    centre = float(data.mean())
    if len(data) < MIN_REPEATS:
        return Estimate(centre)
    half = t_quantile(0.5 + level / 2, len(data) - 1.0) * float(data.std(ddof=1)) / math.sqrt(len(data))
    return Estimate(centre, centre - half, centre + half)


def jackknife(whole: float, without_one: Sequence[float]) -> Estimate:
    """A figure with its t interval from the values that it has without one of the runs each (Tukey 1958)."""
    # the pseudo-values, up to a constant and their sign
    scaled = t_interval((len(without_one) - 1) * np.asarray(without_one, dtype=float))
    if scaled.high is None:
        return Estimate(whole)
    half = scaled.high - scaled.centre
    return Estimate(whole, whole - half, whole + half)


def ratio(  # noqa: PLR0913  one for each part of the error
    side: Sequence[float],
    reference: Sequence[float],
    *,
    paired: bool,
    rounding: float = 0.0,
    sampling: float = 0.0,
    wider: float = 1.0,
) -> Estimate:
    """Ratio of geometric means of two lists of positive run means.

    An interval needs three or more runs per side. With `paired`, equal positions are pairs. `rounding` is the
    largest error of each value as a share of it. It can have the same sign in every run, so no interval is
    narrower than the rounding of both sides. `sampling` is the standard error of the log ratio that the
    sampling inside of the runs causes. The spread of the runs contains it, so it is not added: no interval is
    narrower than that of the sampling alone. `wider` is the factor of the standard error (`stopping.wider`).
    """
    x, y = np.log(np.asarray(side)), np.log(np.asarray(reference))
    log = _difference(x, y, paired, -2 * math.log1p(-rounding), sampling, wider)
    low, high = (None if bound is None else exp(bound) for bound in (log.low, log.high))
    return Estimate(exp(log.centre), low, high, log.p)


def exp(log: float) -> float:
    """The ratio of a log, clamped to the range of a double."""
    return math.exp(max(-LARGEST_LOG, min(LARGEST_LOG, log)))


def difference(
    side: Sequence[float],
    reference: Sequence[float],
    *,
    paired: bool,
    sampling: float = 0.0,
    wider: float = 1.0,
) -> Estimate:
    """Difference of arithmetic means in the unit of the values, with the interval as in `ratio`."""
    x, y = np.asarray(side, dtype=float), np.asarray(reference, dtype=float)
    return _difference(x, y, paired, 0.0, sampling, wider)


def _difference(  # noqa: PLR0913, PLR0917
    x: Floats, y: Floats, paired: bool, least: float, sampling: float, wider: float
) -> Estimate:
    centre = float(x.mean() - y.mean())
    if min(len(x), len(y)) < MIN_REPEATS:
        return Estimate(centre)
    if paired:
        error, freedom = float(np.std(x - y, ddof=1)) / math.sqrt(len(x)), float(len(x) - 1)
    else:
        error, freedom = welch(*((float(side.var(ddof=1)) / len(side), len(side) - 1.0) for side in (x, y)))
    quantile = t_quantile(0.5 + LEVEL / 2, freedom)
    error = max(error * wider, least / quantile)
    half = max(quantile * error, NORMAL * sampling)
    nothing = 1e-12 * max(1.0, abs(centre))
    if half <= nothing:
        return Estimate(centre, centre, centre, 0.0 if centre else 1.0)
    of_runs = 2 * t_tail(abs(centre) / error, freedom) if error > nothing else 0.0
    of_samples = math.erfc(abs(centre) / sampling / math.sqrt(2)) if sampling else 0.0
    return Estimate(centre, centre - half, centre + half, max(of_runs, of_samples))


def welch(*means: tuple[float, float]) -> tuple[float, float]:
    """Standard error of a sum or difference of means, and its degrees of freedom (Welch, Satterthwaite).

    Each mean has its variance and the degrees of freedom of that variance.
    """
    variance = sum(of_mean for of_mean, _ in means)
    if variance <= 0:
        return 0.0, 1.0
    return math.sqrt(variance), variance**2 / sum(of_mean**2 / freedom for of_mean, freedom in means)


def benjamini_hochberg(p: Sequence[float]) -> list[bool]:
    """Which hypotheses are rejected at a false discovery rate of 5 % (Benjamini & Hochberg 1995)."""
    order = np.argsort(p, kind="stable")
    ranked = np.asarray(p, dtype=float)[order]
    passed = np.flatnonzero(ranked <= 0.05 * np.arange(1, len(ranked) + 1) / max(1, len(ranked)))
    rejected = np.zeros(len(ranked), dtype=bool)
    if len(passed):
        rejected[order[: passed[-1] + 1]] = True
    return [bool(flag) for flag in rejected]


def repeats_to_decide(
    side: Sequence[float],
    reference: Sequence[float],
    *,
    paired: bool,
    level: float = LEVEL,
    widened: Callable[[int], float] = lambda _: 1.0,
) -> int | None:
    """Further repeats per side after which the interval of the ratio excludes 1; 0 where it already does.

    `level` is that of the interval. The observed ratio is taken as the true one. None where `more_repeats`
    has none, and where the spread is unknown: a side has fewer than two runs, or a run is 0.
    """
    if min(len(side), len(reference)) < 2 or min(*side, *reference) <= 0:
        return None
    x, y = np.log(side), np.log(reference)
    variance = float(np.var(x - y, ddof=1) if paired else np.var(x, ddof=1) + np.var(y, ddof=1))
    repeats, distance = min(len(side), len(reference)), abs(float(x.mean() - y.mean()))
    if not distance:
        return None
    half = half_width(variance, repeats, paired=paired, level=level) * widened(repeats)
    return more_repeats(half, repeats, distance, paired=paired, widened=widened, level=level)


def more_repeats(  # noqa: PLR0913
    half: float,
    repeats: int,
    wanted: float,
    *,
    paired: bool,
    least: int = MIN_REPEATS,
    widened: Callable[[int], float] = lambda _: 1.0,
    level: float = LEVEL,
) -> int | None:
    """Further repeats per side after which the half-width `half` of an interval of logs is `wanted`.

    The observed spread between repeats is taken as the true one. 0 if it is narrow enough with `least`
    repeats; None above a thousand. `widened` is the factor of an interval by its repeats.
    """
    seen = half_width(1.0, repeats, paired=paired, level=level) * widened(repeats)
    for needed in range(max(repeats, least), MAX_REPEATS + 1):
        if half * half_width(1.0, needed, paired=paired, level=level) * widened(needed) <= wanted * seen:
            return needed - repeats
    return None


def repeats_to_show(low: float, high: float, repeats: int, *, paired: bool) -> int | None:
    """Further repeats per side after which the interval of a ratio would show a difference of `APART`.

    0 if it would already; None if that takes more than `MOST_MORE`.
    """
    more = more_repeats(math.log(high / low) / 2, repeats, math.log1p(APART), paired=paired)
    return more if more is not None and more <= MOST_MORE else None


def half_width(variance: float, repeats: int, *, paired: bool, level: float = LEVEL) -> float:
    """Half the width of the interval of a difference of logs, for at least two `repeats` per side."""
    freedom = float(repeats - 1 if paired else 2 * (repeats - 1))
    return t_quantile(0.5 + level / 2, freedom) * math.sqrt(variance / repeats)
