"""Computes how many more repeats would give a verdict, at the observed spread between runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadprint.statistics.student import t_quantile

LEVEL = 0.95
MIN_REPEATS = 3
MAX_REPEATS = 1000
LARGEST_LOG = 700.0  # exp of more overflows a double


def repeats_to_decide(
    side: Sequence[float],
    reference: Sequence[float],
    *,
    paired: bool,
    tolerance: float | None = None,
    level: float = LEVEL,
) -> int | None:
    """Further repeats per side after which the interval of the ratio excludes 1; 0 where it already does.

    With a `tolerance` (0.02 for 2 %) an interval within the tolerance is a verdict too. The observed ratio
    and the observed spread between runs are taken as the true ones. None above a thousand repeats, and where
    the spread is unknown: a side has fewer than two runs, or a run is 0.
    """
    observed = _spread(side, reference, paired=paired)
    if observed is None:
        return None
    centre, variance = observed
    distances = [abs(centre)]
    if tolerance is not None:
        distances.append(math.log1p(tolerance) - abs(centre))
    current = min(len(side), len(reference))
    needed = repeats_for(max(distances), variance, paired=paired, at_least=current, level=level)
    return None if needed is None else needed - current


def detectable_difference(
    side: Sequence[float],
    reference: Sequence[float],
    repeats: int,
    *,
    paired: bool,
    level: float = LEVEL,
) -> float | None:
    """Smallest difference, as a share, that this many repeats per side detect; None where it is unknown."""
    observed = _spread(side, reference, paired=paired)
    if observed is None:
        return None
    return math.expm1(min(LARGEST_LOG, half_width(observed[1], repeats, paired=paired, level=level)))


def repeats_for(
    distance: float, variance: float, *, paired: bool, at_least: int = 0, level: float = LEVEL
) -> int | None:
    """Repeats per side whose interval of the log ratio has a half width below `distance`.

    `variance` is that of one repeat's difference of logs. At least three; None above a thousand.
    """
    if distance <= 0:
        return None
    for repeats in range(max(at_least, MIN_REPEATS), MAX_REPEATS + 1):
        if half_width(variance, repeats, paired=paired, level=level) < distance:
            return repeats
    return None


def half_width(variance: float, repeats: int, *, paired: bool, level: float = LEVEL) -> float:
    """Half the width of the interval of a difference of logs, for at least two `repeats` per side."""
    freedom = float(repeats - 1 if paired else 2 * (repeats - 1))
    return t_quantile(0.5 + level / 2, freedom) * math.sqrt(variance / repeats)


def _spread(side: Sequence[float], reference: Sequence[float], *, paired: bool) -> tuple[float, float] | None:
    """Difference of log means, and the variance of one repeat's; None where it is unknown."""
    if min(len(side), len(reference)) < 2 or min(*side, *reference) <= 0:
        return None
    x, y = np.log(np.asarray(side, dtype=float)), np.log(np.asarray(reference, dtype=float))
    variance = float(np.var(x - y, ddof=1) if paired else np.var(x, ddof=1) + np.var(y, ddof=1))
    return float(x.mean() - y.mean()), variance
