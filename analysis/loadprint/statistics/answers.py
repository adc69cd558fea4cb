"""The words for what the interval of a ratio shows, and the one rule for them."""

from __future__ import annotations

from typing import Literal

from loadprint.statistics.several import equivalence
from loadprint.statistics.stats import Estimate

Answer = Literal["differs", "equivalent", "undecided", "not comparable", "not measured"]
EQUIVALENT_WITHIN = 0.02  # of a ratio of 1


def answer(ratio: Estimate, within: float = EQUIVALENT_WITHIN) -> Answer:
    """What an interval shows of "no effect"; a difference that is certain can be small enough for both.

    It is then called equivalent. Without an interval it is undecided.
    """
    if equivalence(ratio, within).equal:
        return "equivalent"
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return "undecided"
    return "differs"
