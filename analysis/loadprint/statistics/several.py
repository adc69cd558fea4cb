"""Tests several hypotheses together, which of several sides can be the best, equivalence, and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.statistics.stats import Estimate

ERROR = 0.05


def holm(p: Sequence[float]) -> list[bool]:
    """Which hypotheses are rejected if the chance of any false rejection is at most ERROR (Holm 1979)."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > ERROR / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def best_candidates(count: int, below: Callable[[int, int], float | None]) -> list[bool]:
    """Which of `count` sides can be the best: the best is among them with a chance of 1 − ERROR or more.

    `below(i, j)` is the one-sided p of "side i is not below side j"; None: not known. A side is out if one of
    its simultaneous upper bounds, each at ERROR / (count − 1), is below another side (Gupta 1965, with
    Bonferroni's bound in place of equal variances).
    """
    limit = ERROR / max(1, count - 1)

    def out(side: int) -> bool:
        tested = [below(side, other) for other in range(count) if other != side]
        return any(p is not None and p <= limit for p in tested)

    return [not out(side) for side in range(count)]


def zero_bound(exposure: float, error: float = ERROR / 2) -> float:
    """Upper bound of a rate of which no event was seen during `exposure` (seconds, or windows).

    The exact Poisson bound −ln(error) / exposure (Garwood 1936); 3.69 / exposure is that of a 95 % interval.
    """
    return float(-np.log(error) / exposure)


@dataclass(frozen=True)
class Equivalence:
    """`equal`: the whole interval is within the bound; `unequal`: all of it is beyond. Neither: undecided.

    `most` is the largest difference that the interval leaves open, as a share; None without an interval.
    """

    equal: bool
    unequal: bool
    most: float | None


def equivalence(ratio: Estimate, bound: float) -> Equivalence:
    """Compare the 95 % interval of a ratio with 1 / (1 + `bound`) and 1 + `bound`; 0.01 is one percent.

    The interval is within the bound where two one-sided tests at 2.5 % reject both differences
    (Schuirmann 1987, with the 95 % interval that is printed instead of the usual 90 %).
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return Equivalence(equal=False, unequal=False, most=None)
    most = math.expm1(max(abs(math.log(ratio.low)), abs(math.log(ratio.high))))
    unequal = ratio.low > 1 + bound or ratio.high < 1 / (1 + bound)
    return Equivalence(most <= bound * (1 + 1e-12), unequal, most)


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's coefficient; None where one of the lists does not vary, or below three values."""
    from scipy.stats import spearmanr  # noqa: PLC0415  slow to import

    if len(a) < 3 or min(len(set(a)), len(set(b))) == 1:
        return None
    return float(spearmanr(a, b).statistic)
