"""Compares two sides of a row: the ratio with its interval, tests of limits, the repeats still needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from loadprint import numbers
from loadprint.commands.study.claim_verdicts import FEW, Answer, ClaimVerdict, Judged, worst
from loadprint.commands.study.observations import Observations, Values
from loadprint.statistics import stats
from loadprint.statistics.several import ERROR, equivalence, holm
from loadprint.statistics.stats import Estimate

LEAST_EFFECT = 0.01  # a smaller difference is not worth repeats


@dataclass(frozen=True)
class RatioOf:
    """The ratio of two sides of a row."""

    label: str
    side: Values
    against: Values
    paired: bool

    @cached_property
    def value(self) -> Estimate | None:
        """The ratio with its interval; None where a repeat is 0."""
        side, against = self.side.repeats, self.against.repeats
        if min(*side, *against) <= 0:
            return None
        return stats.ratio(side, against, paired=self.paired, wider=self.wider)

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
    def wider(self) -> float:
        """The factor of its intervals."""
        return self.side.widened(self.repeats)

    @property
    def inverted(self) -> RatioOf:
        """The ratio of the two sides the other way around."""
        return replace(self, side=self.against, against=self.side)

    def test(self, limit: float) -> tuple[float, float | None]:
        """Log of the ratio to a limit, or the sign of the difference, and the two-sided p of "equal"."""
        scaled = [limit * value for value in self.against.repeats]
        if self.value is None:
            tested = stats.difference(self.side.repeats, scaled, paired=self.paired, wider=self.wider)
            # all repeats of both are 0: nothing was tested
            return tested.centre, tested.p if any((*self.side.repeats, *scaled)) else None
        tested = stats.ratio(self.side.repeats, scaled, paired=self.paired, wider=self.wider)
        return math.log(tested.centre), tested.p

    def more(self, limits: Sequence[float], error: float) -> int | None:
        """Repeats that would decide on which side of every limit it is; None if that is not a plan.

        `error` is the two-sided one of a decision.
        """
        if self.value is None:
            return None
        needed = []
        for limit in limits:
            scaled = [limit * value for value in self.against.repeats]
            repeats = stats.repeats_to_decide(
                self.side.repeats, scaled, paired=self.paired, level=1 - error, widened=self.side.widened
            )
            if repeats is None or abs(self.value.centre / limit - 1) < LEAST_EFFECT:
                return None
            needed.append(repeats)
        most = max(needed)
        return most if 0 < most <= stats.MOST_MORE else None


def ratio_of(seen: Observations, row: str, side: str, against: str) -> RatioOf:
    """Compute the ratio of a row of two sides. Raises Absent."""
    x, y = seen.values(row, side), seen.values(row, against)
    paired = seen.paired(side, against) and x.complete and y.complete
    return RatioOf(f"{x.side} / {y.side}", x, y, paired)


def judged(
    ratios: Sequence[RatioOf], direction: ClaimVerdict | None, size: ClaimVerdict | None = None
) -> Judged:
    """A claim about these ratios with its verdicts."""
    text = "; ".join(f"{ratio.label} {ratio.text}" for ratio in ratios)
    return Judged(text, direction, size, min(ratio.repeats for ratio in ratios))


def with_interval(value: Estimate) -> str:
    """A ratio with its interval, if it has one."""
    if value.low is None or value.high is None:
        return numbers.ratio(value.centre)
    return f"{numbers.ratio(value.centre)} [{numbers.ratio(value.low)}, {numbers.ratio(value.high)}]"


def on_side_of_1(ratios: Sequence[RatioOf], higher: bool, bound: float | None = None) -> ClaimVerdict:
    """Whether every ratio is above 1, or below it; all are tested together."""
    return between(ratios, 1.0, None, bound) if higher else between(ratios, None, 1.0, bound)


def between(
    ratios: Sequence[RatioOf], low: float | None, high: float | None, bound: float | None = None
) -> ClaimVerdict:
    """Whether every ratio is between two limits, one of which may be None; all are tested together (Holm).

    With a `bound`, a ratio that is equivalent to 1 within it is neither.
    """
    limits = [limit for limit in (low, high) if limit]
    answers, p = zip(*(_inside(ratio, low, high) for ratio in ratios), strict=True)
    decided = holm([1.0 if value is None else value for value in p])
    equal = [equivalence(ratio.value, bound) if bound and ratio.value else None for ratio in ratios]
    final: list[Answer] = [
        "equivalent" if same and same.equal else answer if one else "undecided"
        for same, answer, one in zip(equal, answers, decided, strict=True)
    ]
    answer = worst(final)
    if answer == "equivalent":
        return ClaimVerdict(
            answer, figure=at_most([result.most or 0.0 for result in equal if result and result.equal])
        )
    if answer != "undecided":
        return ClaimVerdict(answer)
    open_ones = [ratio for ratio, one in zip(ratios, final, strict=True) if one == "undecided"]
    needed = [one.more(limits, ERROR / len(open_ones)) for one in open_ones]
    more = None if None in needed else max(repeats for repeats in needed if repeats)
    reason = ""
    if None in p:
        zero = any(not any((*ratio.side.repeats, *ratio.against.repeats)) for ratio in ratios)
        reason = "both are 0" if zero else FEW
    elif len(ratios) > 1:
        labels = ", ".join(one.label for one in open_ones)
        reason = f"not decided: {labels}, by Holm's test of {len(ratios)} together"
    return ClaimVerdict("undecided", reason, more=more)


def _inside(ratio: RatioOf, low: float | None, high: float | None) -> tuple[Answer, float | None]:
    """What the centre shows, and the p at which that is decided; None with too few repeats."""
    tests = [(1, *ratio.test(low))] if low else []
    tests += [(-1, *ratio.test(high))] if high else []
    violated = [p for side, distance, p in tests if side * distance < 0]
    needed = violated or [p for _, _, p in tests]
    answer: Answer = "differs" if violated else "holds"
    if not needed or None in needed:
        return answer, None
    return answer, max(p for p in needed if p is not None)


def at_most(shares: Sequence[float]) -> str:
    """The text of a largest difference."""
    return f"at most {numbers.brief(100 * max(shares), 2)} % different"
