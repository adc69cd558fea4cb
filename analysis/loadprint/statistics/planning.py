"""How many more repeats would decide, at the spread between runs that was seen. A plan, not a finding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadprint.statistics.student import t_quantile

LEVEL = 0.95
LEAST_REPEATS = 3
MOST_REPEATS = 1000
LARGEST_LOG = 700.0  # exp of more is no double


def repeats_to_decide(
    side: Sequence[float],
    reference: Sequence[float],
    *,
    paired: bool,
    tolerance: float | None = None,
    level: float = LEVEL,
) -> int | None:
    """How many more repeats a side would make the interval of the ratio exclude 1, 0 where it does already.

    With a `tolerance` (0.02 for 2 %) an interval that lies within it decides too. The observed ratio and the
    observed spread between runs are taken as the true ones. None where that takes over a thousand repeats, or
    where a side has fewer than two runs, or a run that is 0: nothing tells the spread.
    """
    found = _spread(side, reference, paired=paired)
    if found is None:
        return None
    centre, variance = found
    distances = [abs(centre)]
    if tolerance is not None:
        distances.append(math.log1p(tolerance) - abs(centre))
    now = min(len(side), len(reference))
    needed = repeats_for(max(distances), variance, paired=paired, least=now, level=level)
    return None if needed is None else needed - now


def apart_with(
    side: Sequence[float],
    reference: Sequence[float],
    repeats: int,
    *,
    paired: bool,
    level: float = LEVEL,
) -> float | None:
    """Smallest difference, as a share, that so many repeats a side tell; None as in `repeats_to_decide`."""
    found = _spread(side, reference, paired=paired)
    if found is None:
        return None
    return math.expm1(min(LARGEST_LOG, half_width(found[1], repeats, paired=paired, level=level)))


def repeats_for(
    distance: float, variance: float, *, paired: bool, least: int = 0, level: float = LEVEL
) -> int | None:
    """Repeats a side whose interval is narrower than `distance` (of logs) on either side of its centre.

    `variance` is that of one repeat's difference of logs. At least three; None where a thousand will not do.
    """
    if distance <= 0:
        return None
    for repeats in range(max(least, LEAST_REPEATS), MOST_REPEATS + 1):
        if half_width(variance, repeats, paired=paired, level=level) < distance:
            return repeats
    return None


def half_width(variance: float, repeats: int, *, paired: bool, level: float = LEVEL) -> float:
    """Half the width of the interval of a difference of logs; `repeats` a side, at least two."""
    freedom = float(repeats - 1 if paired else 2 * (repeats - 1))
    return t_quantile(0.5 + level / 2, freedom) * math.sqrt(variance / repeats)


def _spread(side: Sequence[float], reference: Sequence[float], *, paired: bool) -> tuple[float, float] | None:
    """Difference of log means, and the variance of one repeat's; None where nothing tells it."""
    if min(len(side), len(reference)) < 2 or min(*side, *reference) <= 0:
        return None
    x, y = np.log(np.asarray(side, dtype=float)), np.log(np.asarray(reference, dtype=float))
    variance = float(np.var(x - y, ddof=1) if paired else np.var(x, ddof=1) + np.var(y, ddof=1))
    return float(x.mean() - y.mean()), variance
