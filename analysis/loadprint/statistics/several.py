"""Tests several hypotheses together: Holm's step-down test, and which of several sides can be the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

ERROR = 0.05


def holm(p: Sequence[float], error: float = ERROR) -> list[bool]:
    """Which hypotheses are rejected if the chance of any false rejection is at most `error` (Holm 1979)."""
    rejected = [False] * len(p)
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > error / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def best_candidates(
    count: int, below: Callable[[int, int], float | None], error: float = ERROR
) -> list[bool]:
    """Which of `count` sides can be the best: the best is among them with a chance of 1 − `error` or more.

    `below(i, j)` is the one-sided p of "side i is not below side j"; None: not known. A side is out if one of
    its simultaneous upper bounds, each at `error` / (count − 1), is below another side (Gupta 1965, with
    Bonferroni's bound in place of equal variances).
    """
    limit = error / max(1, count - 1)

    def out(side: int) -> bool:
        tested = [below(side, other) for other in range(count) if other != side]
        return any(p is not None and p <= limit for p in tested)

    return [not out(side) for side in range(count)]


def zero_bound(exposure: float, error: float = ERROR / 2) -> float:
    """Upper bound of a rate of which no event was seen during `exposure` (seconds, or windows).

    The exact Poisson bound −ln(error) / exposure (Garwood 1936); 3.69 / exposure is that of a 95 % interval.
    """
    return float(-np.log(error) / exposure)
