"""Tests one row for non-inferiority: the candidate may be worse by at most the tolerance.

The test is on the log of the ratio (Schuirmann 1987 for the one-sided bounds). Pass: the one-sided
bound of the interval is within the tolerance; fail: the whole interval is beyond it; else
undecided. The unit is the run for an instance, and the instance for a type.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadprint.statistics.stats import exp, t_quantile, welch
from loadprint.statistics.stopping import wider

Verdict = Literal["pass", "fail", "undecided"]
PASS: Verdict = "pass"
FAIL: Verdict = "fail"
UNDECIDED: Verdict = "undecided"

MIN_FREEDOM = 2  # degrees of freedom: three runs of one instance, or three instances
MAX_MORE = 1000


@dataclass(frozen=True)
class PartyLevel:
    """The level of a side: mean of logs, variance of this mean, degrees of freedom, units."""

    mean: float
    variance: float
    freedom: float
    units: int


@dataclass(frozen=True)
class RowJudgement:
    """The result for one row. `ratio` is candidate / baseline, `low` and `high` are its one-sided bounds.

    `limit` is the ratio of a candidate that is worse by exactly the tolerance. `is_better`: the whole
    interval is on the better side of 1. `more`: units (repeats or instances) that each side needs
    in addition.
    """

    verdict: Verdict
    limit: float
    ratio: float
    low: float
    high: float
    is_better: bool
    more: int | None


def of_runs(values: Sequence[Sequence[float]], *, by_precision: bool) -> PartyLevel | None:
    """Return the level of exactly these instances, from positive values of their runs; the unit is the run.

    Instances have equal weights; the variance is that of runs within their instance, pooled, with the
    factor of campaigns in which a precision decided on the number of runs. None with fewer than two degrees
    of freedom.
    """
    logs = [np.log(np.asarray(runs, dtype=float)) for runs in values if len(runs)]
    count = sum(map(len, logs))
    freedom = count - len(logs)
    if freedom < MIN_FREEDOM:
        return None
    spread = sum(float(((runs - runs.mean()) ** 2).sum()) for runs in logs) / freedom
    mean = math.fsum(float(runs.mean()) for runs in logs) / len(logs)
    weight = math.fsum(1 / len(runs) for runs in logs) / len(logs) ** 2
    factor = wider(max(map(len, logs)), by_precision=by_precision)
    return PartyLevel(mean, spread * weight * factor**2, freedom, count)


def of_instances(values: Sequence[Sequence[float]]) -> PartyLevel | None:
    """Return the level of a type; the unit is the instance. None with fewer than three instances."""
    means = np.array([float(np.mean(np.log(runs))) for runs in values if len(runs)])
    if len(means) <= MIN_FREEDOM:
        return None
    return PartyLevel(float(means.mean()), float(means.var(ddof=1)) / len(means), len(means) - 1, len(means))


def limit_of(tolerance: float, better: str) -> float:
    """Return the ratio of a candidate that is worse by `tolerance` (a share)."""
    return 1 - tolerance if better == "higher" else 1 + tolerance


def judge(
    baseline: PartyLevel, candidate: PartyLevel, tolerance: float, better: str, confidence: float
) -> RowJudgement:
    """Judge a row. `confidence` is that of each one-sided bound."""
    limit = limit_of(tolerance, better)
    centre = candidate.mean - baseline.mean
    half = _half(baseline, candidate, confidence, 0)
    low, high = centre - half, centre + half
    edge = math.log(limit)
    # the ends of the interval, mirrored if needed so that larger is better
    worst, best, allowed = (low, high, edge) if better == "higher" else (-high, -low, -edge)
    # rounding of the logarithm must not make equal values differ
    verdict = PASS if worst >= allowed - 1e-12 else FAIL if best < allowed - 1e-12 else UNDECIDED
    more = None
    if verdict == UNDECIDED:
        more = _more(baseline, candidate, abs(centre - edge), confidence)
    return RowJudgement(verdict, limit, exp(centre), exp(low), exp(high), worst > 1e-12, more)


def interval(level: PartyLevel, confidence: float) -> tuple[float, float]:
    """Return the two one-sided bounds of the geometric mean of a side."""
    half = t_quantile(confidence, level.freedom) * math.sqrt(level.variance)
    return exp(level.mean - half), exp(level.mean + half)


def _half(one: PartyLevel, other: PartyLevel, confidence: float, more: int) -> float:
    """Return the half width of the difference if each side had `more` further units of the same variance."""
    error, freedom = welch(
        *(
            (level.variance * level.units / (level.units + more), level.freedom + more)
            for level in (one, other)
        )
    )
    return t_quantile(confidence, freedom) * error


def _more(one: PartyLevel, other: PartyLevel, distance: float, confidence: float) -> int | None:
    """Return the further units per side that exclude the limit from the interval; None over 1000."""
    tried = range(MAX_MORE + 1)
    more = bisect_left(tried, True, lo=1, key=lambda units: _half(one, other, confidence, units) < distance)
    return more if more in tried else None
