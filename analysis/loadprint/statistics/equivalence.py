"""Judges whether a ratio is equivalent to 1 within a bound, by its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadprint.statistics.stats import Estimate


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
