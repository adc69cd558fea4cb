"""One row judged: is the candidate at most so much worse than the baseline? Plain values in and out.

Non-inferiority on the log of the ratio (Schuirmann 1987 for the one-sided bounds): pass when the one-sided
bound of the interval is not beyond the tolerance, fail when the whole interval is, else nobody can tell. The
unit is the run for an instance, and the instance for a type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit  # four times quicker to import than scipy.stats

Verdict = Literal["pass", "fail", "cannot tell"]
PASS: Verdict = "pass"
FAIL: Verdict = "fail"
CANNOT_TELL: Verdict = "cannot tell"

LEAST_FREEDOM = 2  # three runs of one instance, or three instances
MOST_MORE = 1000


@dataclass(frozen=True)
class Level:
    """Where a side lies: mean of logs, variance of that mean, its degrees of freedom, and how many units."""

    mean: float
    variance: float
    freedom: float
    units: int


@dataclass(frozen=True)
class Judgement:
    """What one row says. `ratio` is candidate / baseline, `low` and `high` its one-sided bounds.

    `limit` is the ratio at which the candidate is just as much worse as is allowed. `better`: the interval
    lies wholly on the good side of 1. `more`: units (repeats or instances) that each side would need besides.
    """

    verdict: Verdict
    limit: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    better: bool = False
    more: int | None = None


def of_runs(values: Sequence[Sequence[float]]) -> Level | None:
    """Level of exactly these instances: positive values of the runs of each; the run is the unit.

    Instances weigh the same; the spread is that of the runs about their own instance, pooled. None where the
    runs leave fewer than two degrees of freedom.
    """
    logs = [np.log(np.asarray(runs, dtype=float)) for runs in values if len(runs)]
    count = sum(map(len, logs))
    freedom = count - len(logs)
    if freedom < LEAST_FREEDOM:
        return None
    spread = sum(float(((runs - runs.mean()) ** 2).sum()) for runs in logs) / freedom
    mean = math.fsum(float(runs.mean()) for runs in logs) / len(logs)
    weight = math.fsum(1 / len(runs) for runs in logs) / len(logs) ** 2
    return Level(mean, spread * weight, freedom, count)


def of_instances(values: Sequence[Sequence[float]]) -> Level | None:
    """Level of the type that instances are drawn from; the instance is the unit. None below three of them."""
    means = np.array([float(np.mean(np.log(runs))) for runs in values if len(runs)])
    if len(means) <= LEAST_FREEDOM:
        return None
    return Level(float(means.mean()), float(means.var(ddof=1)) / len(means), len(means) - 1, len(means))


def limit_of(tolerance: float, better: str) -> float:
    """Ratio at which a candidate is `tolerance` (a share) worse; `better` is `higher` or `lower`."""
    return 1 - tolerance if better == "higher" else 1 + tolerance


def judge(baseline: Level, candidate: Level, tolerance: float, better: str, confidence: float) -> Judgement:
    """Judge a row. `confidence` is that of each one-sided bound."""
    limit = limit_of(tolerance, better)
    centre = candidate.mean - baseline.mean
    half = _half(baseline, candidate, confidence, 0)
    low, high = centre - half, centre + half
    edge = math.log(limit)
    # the ends of the interval, seen so that larger is better
    worst, best, allowed = (low, high, edge) if better == "higher" else (-high, -low, -edge)
    # equal values are not set apart by the last digit of a logarithm
    verdict = PASS if worst >= allowed - 1e-12 else FAIL if best < allowed - 1e-12 else CANNOT_TELL
    more = None
    if verdict == CANNOT_TELL:
        more = _more(baseline, candidate, abs(centre - edge), confidence)
    return Judgement(verdict, limit, _exp(centre), _exp(low), _exp(high), worst > 1e-12, more)


def interval(level: Level, confidence: float) -> tuple[float, float, float]:
    """Geometric mean of a side, and its two one-sided bounds."""
    half = float(stdtrit(level.freedom, confidence)) * math.sqrt(level.variance)
    return _exp(level.mean), _exp(level.mean - half), _exp(level.mean + half)


def _exp(log: float) -> float:
    """Exponential function; what is wider than doubles are stays at their end."""
    return math.exp(min(log, 700.0))


def _half(one: Level, other: Level, confidence: float, more: int) -> float:
    """Half width of the difference, had each side `more` units of the spread that was seen.

    Degrees of freedom by Welch and Satterthwaite.
    """
    total, below = 0.0, 0.0
    for level in (one, other):
        variance = level.variance * level.units / (level.units + more)
        total += variance
        below += variance**2 / (level.freedom + more)
    if total <= 0:
        return 0.0
    return float(stdtrit(total**2 / below, confidence)) * math.sqrt(total)


def _more(one: Level, other: Level, distance: float, confidence: float) -> int | None:
    """Fewest further units a side whose interval no longer reaches the limit; None beyond a thousand."""
    if _half(one, other, confidence, MOST_MORE) >= distance:
        return None
    low, high = 0, MOST_MORE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _half(one, other, confidence, middle) < distance else (middle, high)
    return high
