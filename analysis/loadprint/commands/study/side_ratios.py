"""Compares two sides of a row: the ratio with its interval, tests of limits, the repeats still needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.commands.study.claim_verdicts import (
    DIFFERS,
    EQUIVALENT,
    FEW,
    HOLDS,
    INCONCLUSIVE,
    LEAST_EFFECT,
    MOST_REPEATS,
    Answer,
    Verdict,
    worst,
)
from loadprint.commands.study.observations import Observations, Values
from loadprint.statistics import stats
from loadprint.statistics.several import equivalence, holm
from loadprint.statistics.stats import Estimate


@dataclass(frozen=True)
class RatioOf:
    """The ratio of two sides of a row; `value` is None where a repeat is 0."""

    label: str
    side: Values
    against: Values
    paired: bool
    value: Estimate | None

    @property
    def text(self) -> str:
        """The ratio with its interval, or both values."""
        if self.value is None:
            return f"{self.side.shown} against {self.against.shown}"
        return with_interval(self.value)

    @property
    def repeats(self) -> int:
        """Repeats of the side that has fewer."""
        return min(len(self.side.repeats), len(self.against.repeats))

    @property
    def inverted(self) -> RatioOf:
        """The ratio of the two sides the other way around."""
        value = (
            stats.ratio(self.against.repeats, self.side.repeats, paired=self.paired) if self.value else None
        )
        return RatioOf(self.label, self.against, self.side, self.paired, value)

    def test(self, limit: float) -> tuple[float, float | None]:
        """Log of the ratio to a limit, or the sign of the difference, and the two-sided p of "equal"."""
        scaled = [limit * value for value in self.against.repeats]
        if self.value is None:
            tested = stats.difference(self.side.repeats, scaled, paired=self.paired)
            # all repeats of both are 0: nothing was tested
            return tested.centre, tested.p if any((*self.side.repeats, *scaled)) else None
        tested = stats.ratio(self.side.repeats, scaled, paired=self.paired)
        return math.log(tested.centre), tested.p

    def more(self, limits: Sequence[float]) -> int | None:
        """Repeats that would decide on which side of every limit it is; None if that is not a plan."""
        if self.value is None:
            return None
        needed = []
        for limit in limits:
            scaled = [limit * value for value in self.against.repeats]
            repeats = stats.repeats_to_decide(self.side.repeats, scaled, paired=self.paired)
            if repeats is None or abs(self.value.centre / limit - 1) < LEAST_EFFECT:
                return None
            needed.append(repeats)
        most = max(needed, default=0)
        return most if 0 < most <= MOST_REPEATS else None


def ratio_of(seen: Observations, row: str, side: str, against: str) -> RatioOf:
    """Compute the ratio of a row of two sides. Raises Absent."""
    x, y = seen.values(row, side), seen.values(row, against)
    paired = seen.paired(side, against) and len(x.repeats) == len(y.repeats)
    positive = min(*x.repeats, *y.repeats) > 0
    value = stats.ratio(x.repeats, y.repeats, paired=paired) if positive else None
    return RatioOf(f"{x.side} / {y.side}", x, y, paired, value)


def with_interval(value: Estimate) -> str:
    """A ratio with its interval, if it has one."""
    if value.low is None or value.high is None:
        return numbers.ratio(value.centre)
    return f"{numbers.ratio(value.centre)} [{numbers.ratio(value.low)}, {numbers.ratio(value.high)}]"


def between(
    ratios: Sequence[RatioOf], low: float | None, high: float | None, bound: float | None = None
) -> Verdict:
    """Whether every ratio is between two limits, one of which may be None; all are tested together (Holm).

    With a `bound`, a ratio that is equivalent to 1 within it is neither.
    """
    limits = [limit for limit in (low, high) if limit]
    answers, p = zip(*(_inside(each, low, high) for each in ratios), strict=True)
    decided = holm([1.0 if value is None else value for value in p])
    final = [_final(*each, bound) for each in zip(ratios, answers, decided, strict=True)]
    answer = worst(final)
    if answer != INCONCLUSIVE:
        return Verdict(answer, figure=_most(ratios, bound) if answer == EQUIVALENT else "")
    open_ones = [each for each, one in zip(ratios, final, strict=True) if one == INCONCLUSIVE]
    if any(value is None for value in p):
        zero = any(not any((*each.side.repeats, *each.against.repeats)) for each in ratios)
        return Verdict(
            INCONCLUSIVE, "both are 0" if zero else FEW, more=_all([one.more(limits) for one in open_ones])
        )
    several = f"{', '.join(each.label for each in open_ones)}, by Holm's test of {len(ratios)} together"
    reason = f"not decided: {several}" if len(ratios) > 1 else ""
    return Verdict(INCONCLUSIVE, reason, more=_all([each.more(limits) for each in open_ones]))


def _inside(ratio: RatioOf, low: float | None, high: float | None) -> tuple[Answer, float | None]:
    """What the centre shows, and the p at which that is decided; None with too few repeats."""
    tests = [(1, *ratio.test(low))] if low else []
    tests += [(-1, *ratio.test(high))] if high else []
    violated = [p for side, distance, p in tests if side * distance < 0]
    needed = violated or [p for _, _, p in tests]
    known = [p for p in needed if p is not None]
    return DIFFERS if violated else HOLDS, max(known) if len(known) == len(needed) and known else None


def _final(ratio: RatioOf, answer: Answer, decided: bool, bound: float | None) -> Answer:
    if bound and ratio.value and equivalence(ratio.value, bound).equal:
        return EQUIVALENT
    return answer if decided else INCONCLUSIVE


def _most(ratios: Sequence[RatioOf], bound: float | None) -> str:
    """The largest difference that the intervals of equivalent ratios leave open."""
    found = [equivalence(each.value, bound or 0.0) for each in ratios if each.value]
    return at_most([each.most for each in found if each.equal and each.most is not None])


def at_most(shares: Sequence[float]) -> str:
    """The text of a largest difference."""
    return f"at most {numbers.brief(100 * max(shares), 2)} % different"


def _all(more: Sequence[int | None]) -> int | None:
    """The largest number of further repeats; None if one is unknown."""
    known = [each for each in more if each is not None]
    return max(known, default=None) if len(known) == len(more) else None
