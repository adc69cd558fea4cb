"""Defines the claims on a campaign, and judges each by the values of an execution.

A claim holds, or differs, only if an interval over three or more repeats excludes the other answer; it is
equivalent if the interval is within the claim's bound. Otherwise it is undecided, with the further repeats
that would decide it at the observed spread.

In names of sides `{cores}` is the number of physical cores of the server's CPU set, `{min}` and `{max}` are
the thread counts; of `a|b` it is `a` if the execution has this side. `bound`: a share; a smaller difference
counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from loadprint.commands.study.claim_verdicts import FEW, Answer, ClaimVerdict, Judged, worst
from loadprint.commands.study.observations import NO_CORES, Absent, Observations, Values
from loadprint.commands.study.side_ratios import (
    between,
    judged,
    on_side_of_1,
    ratio_of,
    with_interval,
)
from loadprint.configuration.field_types import Strict
from loadprint.statistics import stats
from loadprint.statistics.several import best_candidates, rank_correlation, zero_bound
from loadprint.statistics.stats import Estimate

Sides = Annotated[list[str], Field(min_length=2)]
Bound = Annotated[float, Field(gt=0, lt=1)]
Pairs = Annotated[list[tuple[str, str]], Field(min_length=1)]


class RatioClaim(Strict):
    """Direction: the ratio `side` / `against` of a row is on the same side of 1 as `published`.

    Size: it is also there, and the factor between both is from 1 / `within` to `within`.
    """

    kind: Literal["ratio"]
    row: str
    side: str
    against: str
    published: Annotated[float, Field(gt=0)]
    within: Annotated[float, Field(gt=1)] = 2.0
    bound: Bound | None = None

    @model_validator(mode="after")
    def _has_a_direction(self) -> RatioClaim:
        if self.published == 1:
            raise ValueError("`published` is 1, which has no direction: use the kind `equivalent`")
        return self

    def judged(self, seen: Observations) -> Judged:
        """Judge the direction, and the factor between the ratio and the published one."""
        measured = ratio_of(seen, self.row, self.side, self.against)
        direction = on_side_of_1([measured], self.published > 1, self.bound)
        if measured.value is None:
            size = ClaimVerdict("undecided", "a repeat is 0: no ratio")
        else:
            low, high = self.published / self.within, self.published * self.within
            # an effect in the other direction does not have the published size, at any factor
            low, high = (max(low, 1.0), high) if self.published > 1 else (low, min(high, 1.0))
            verdict = between([measured], low, high)
            size = replace(verdict, figure=factor_to(measured.value, self.published), more=None)
        return Judged(measured.text, direction, size, measured.repeats)


def factor_to(measured: Estimate, published: float) -> str:
    """The factor between a measured and a published ratio, with the interval of the measured one."""
    bounds = (None if bound is None else bound / published for bound in (measured.low, measured.high))
    return f"{with_interval(Estimate(measured.centre / published, *bounds))} × the published ratio"


class Between(Strict):
    """Each ratio side / against of a row is between `low` and `high`.

    Only a limit of 1 is a claim about direction, other limits are one about size, and about direction too if
    1 is not between them.
    """

    kind: Literal["between"]
    row: str
    pairs: Pairs
    low: Annotated[float, Field(gt=0)] | None = None
    high: Annotated[float, Field(gt=0)] | None = None
    bound: Bound | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Between:
        if self.low is None and self.high is None:
            raise ValueError("give `low`, `high`, or both")
        return self

    def judged(self, seen: Observations) -> Judged:
        """Judge every ratio by its limits; one that is outside decides."""
        ratios = [ratio_of(seen, self.row, *pair) for pair in self.pairs]
        higher, lower = (self.low or 0.0) >= 1, self.high is not None and self.high <= 1
        direction = size = None
        if higher or lower:
            direction = on_side_of_1(ratios, higher, self.bound)
        if not (higher or lower) or {self.low, self.high} - {1.0, None}:
            size = between(ratios, self.low, self.high)
        return judged(ratios, direction, size)


class Equivalent(Strict):
    """Each ratio side / against of a row is equivalent to 1 within `bound`."""

    kind: Literal["equivalent"]
    row: str
    pairs: Pairs
    bound: Bound

    def judged(self, seen: Observations) -> Judged:
        """Judge all ratios together."""
        ratios = [ratio_of(seen, self.row, *pair) for pair in self.pairs]
        verdict = between(ratios, 1 / (1 + self.bound), 1 + self.bound, self.bound)
        if verdict.answer == "equivalent":
            verdict = replace(verdict, answer="holds")
        return judged(ratios, None, verdict)


class Order(Strict):
    """The values of a row decrease from side to side."""

    kind: Literal["order"]
    row: str
    sides: Sides

    def judged(self, seen: Observations) -> Judged:
        """Judge every pair of neighbours, all together."""
        ratios = [ratio_of(seen, self.row, *pair) for pair in pairwise(self.sides)]
        verdict = on_side_of_1(ratios, higher=True)
        if verdict.answer == "differs":
            wrong = [f"{ratio.label} {ratio.text}" for ratio in ratios if ratio.test(1.0)[0] < 0]
            verdict = replace(verdict, reason=f"not in this order: {'; '.join(wrong)}")
        values = (ratios[0].side, *(ratio.against for ratio in ratios))
        text = " > ".join(f"{value.side} {value.shown}" for value in values)
        return replace(judged(ratios, verdict), measured=text)


class LevelClaim(Strict):
    """The value of a row in each side is above or below a limit in the row's base unit."""

    kind: Literal["level"]
    row: str
    sides: Annotated[list[str], Field(min_length=1)]
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> LevelClaim:
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of `above` and `below`")
        return self

    def judged(self, seen: Observations) -> Judged:
        """Judge each side's mean by the limit, by intervals that hold for all sides together."""
        limit, direction = (self.above, 1) if self.above is not None else (self.below or 0.0, -1)
        all_values = [seen.values(self.row, side) for side in self.sides]
        together = 1 - (1 - stats.LEVEL) / len(self.sides)
        answers, texts, reasons = [], [], []
        for values in all_values:
            answers.append(beyond(mean_of(values, level=together), limit, direction))
            mean = mean_of(values)
            bounds = [values.scaled(bound) for bound in (mean.low, mean.high) if bound is not None]
            texts.append(f"{values.side} {values.shown}{f' [{bounds[0]}, {bounds[1]}]' if bounds else ''}")
            if not bounds:
                few = len(values.repeats) < stats.MIN_REPEATS
                reasons.append(FEW if few else "0 in every run: no interval")
        verdict = ClaimVerdict(worst(answers), "; ".join(dict.fromkeys(reasons)))
        return Judged("; ".join(texts), None, verdict, _fewest(all_values))


def mean_of(values: Values, level: float = stats.LEVEL) -> Estimate:
    """The mean with its interval; of a count that is 0 in all runs the Poisson bound, of other rows none."""
    if any(values.repeats) or len(values.repeats) < stats.MIN_REPEATS:
        interval = stats.t_interval(values.repeats, level=level)
        return interval.widened(values.widened(len(values.repeats)))
    if values.exposure is None:
        return Estimate(0.0)
    return Estimate(0.0, 0.0, zero_bound(values.exposure, (1 - level) / 2))


def beyond(measured: Estimate, limit: float, direction: int) -> Answer:
    """Whether the whole interval is above the limit (direction 1) or below it (−1)."""
    if measured.low is None or measured.high is None:
        return "undecided"
    side = 1 if measured.low > limit else -1 if measured.high < limit else 0
    return "holds" if side == direction else "differs" if side else "undecided"


class SignChange(Strict):
    """The ratio of a row is below 1 for the pair `below`, and above 1 for the pair `above`.

    With `either`, it is also true the other way around; that no order changes here does not contradict it.
    """

    kind: Literal["sign change"]
    row: str
    below: tuple[str, str]
    above: tuple[str, str]
    either: bool = False

    def judged(self, seen: Observations) -> Judged:
        """Judge both ratios by 1, together."""
        first, second = (ratio_of(seen, self.row, *pair) for pair in (self.below, self.above))
        # the reciprocal of the first: both are above 1 if the claim holds
        verdict = on_side_of_1([first.inverted, second], higher=True)
        if self.either and verdict.answer != "holds":
            if on_side_of_1([first, second.inverted], higher=True).answer == "holds":
                verdict = ClaimVerdict("holds")
            elif verdict.answer == "differs":
                reason = "no change of order here, which does not show that there is none"
                verdict = ClaimVerdict("undecided", reason)
        return judged([first, second], verdict)


class Maximum(Strict):
    """The largest value of a row is that of one of the sides `at`.

    Or, with `per_core`, of one with that many connections, from the first number to the second, for each
    physical core of the server's CPU set.
    """

    kind: Literal["maximum"]
    row: str
    sides: Annotated[list[str], Field(min_length=3)]
    at: Annotated[list[str], Field(min_length=1)] | None = None
    per_core: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Maximum:
        if (self.at is None) == (self.per_core is None):
            raise ValueError("give one of `at` and `per_core`")
        return self

    def judged(self, seen: Observations) -> Judged:
        """Judge which sides can have the largest value, by simultaneous bounds."""
        sides = list(dict.fromkeys(map(seen.resolved, self.sides)))
        values = [seen.values(self.row, side) for side in sides]

        def below(side: int, other: int) -> float | None:
            log, p = ratio_of(seen, self.row, sides[side], sides[other]).test(1.0)
            return None if p is None else p / 2 if log < 0 else 1 - p / 2

        possible = best_candidates(len(sides), below)
        candidates = [side for side, can in zip(sides, possible, strict=True) if can]
        expected = self._expected(seen, sides)
        best = max(values, key=lambda value: value.mean)
        rivals = [side for side in candidates if side != best.side]
        text = f"largest at {best.side}, {best.shown}"
        text += f"; not distinguishable from {', '.join(rivals)}" if rivals else ""
        few = _fewest(values)
        if few < stats.MIN_REPEATS:
            verdict = ClaimVerdict("undecided", FEW)
        elif expected.issuperset(candidates):
            verdict = ClaimVerdict("holds")
        elif expected.isdisjoint(candidates):
            verdict = ClaimVerdict("differs")
        else:
            verdict = ClaimVerdict("undecided", "other sides may be the best")
        return Judged(text, verdict, None, few)

    def _expected(self, seen: Observations, sides: Sequence[str]) -> set[str]:
        """The sides that the claim is about. Raises Absent if they are not among those compared."""
        if self.per_core is None:
            expected = set(map(seen.resolved, self.at or ()))
            if missing := expected.difference(sides):
                raise Absent(f"{' and '.join(sorted(missing))} is not one of the compared sides")
            return expected
        if seen.cores is None:
            raise Absent(NO_CORES)
        low, high = self.per_core
        expected = {side for side in sides if low <= seen.threads(side) / seen.cores <= high}
        if not expected:
            of = f"{seen.cores} core{'s' if seen.cores > 1 else ''}"
            raise Absent(f"no compared side has {low:g} to {high:g} connections per core of {of}")
        return expected


class Rank(Strict):
    """The rank correlation of a row with published cells, side → value, is at least `least`."""

    kind: Literal["rank"]
    row: str
    cells: Annotated[dict[str, float], Field(min_length=4)]
    least: float

    def judged(self, seen: Observations) -> Judged:
        """Judge by the interval of the correlation."""
        published = list(self.cells.values())
        values = [seen.values(self.row, side) for side in self.cells]
        label = f"rank correlation of {len(values)} cells"
        return _at_least(self.least, values, lambda cells: rank_correlation(published, cells), label)


class Linear(Strict):
    """A row per operation grows linearly with a number, side → number: R² ≥ `least`, and the line rises."""

    kind: Literal["linear"]
    row: str
    at: Annotated[dict[str, float], Field(min_length=3)]
    least: float

    def judged(self, seen: Observations) -> Judged:
        """Judge R² of a straight line through the row; one that falls is no growth, however straight."""
        x = np.asarray(list(self.at.values()))

        def line(cells: list[float]) -> tuple[float, float, float]:
            y = np.asarray(cells)
            slope, intercept = np.polyfit(x, y, 1)
            left = float(((y - intercept - slope * x) ** 2).sum())
            spread = float(((y - y.mean()) ** 2).sum())
            return float(intercept), float(slope), 1 - left / spread if spread else 0.0

        values = [seen.values(self.row, side) for side in self.at]
        intercept, slope, _ = line([value.mean for value in values])
        first = values[0]
        text = f"{first.scaled(intercept)} + {first.scaled(slope)} {first.unit} per value, R²"
        judged = _at_least(self.least, values, lambda cells: line(cells)[2], text)
        if slope < 0 and judged.answer == "holds":
            return replace(judged, size=ClaimVerdict("differs", "it falls"))
        return judged


def _at_least(
    least: float, values: Sequence[Values], figure: Callable[[list[float]], float | None], label: str
) -> Judged:
    """Judge a figure of several cells, at most 1, by its jackknife interval over the repeats."""
    few = _fewest(values)
    whole = figure([value.mean for value in values])
    if whole is None:
        return Judged(
            "", None, ClaimVerdict("not comparable", "undefined: the cells are equal, or one is 0"), few
        )
    if few < stats.MIN_REPEATS:
        return Judged(f"{label} {whole:.3f}", None, ClaimVerdict("undecided", FEW), few)
    if not all(value.complete for value in values):
        return Judged(f"{label} {whole:.3f}", None, ClaimVerdict("undecided", "a repeat lacks the row"), few)
    left_out = [figure([_mean_without(value.repeats, number) for value in values]) for number in range(few)]
    interval = stats.jackknife(whole, [one for one in left_out if one is not None])
    interval = interval.widened(values[0].widened(few))
    low, high = interval.low or 0.0, min(interval.high or 1.0, 1.0)
    answer: Answer = "holds" if low >= least else "differs" if high < least else "undecided"
    return Judged(f"{label} {whole:.3f} [{low:.3f}, {high:.3f}]", None, ClaimVerdict(answer), few)


def _mean_without(repeats: Sequence[float], number: int) -> float:
    kept = [value for place, value in enumerate(repeats) if place != number]
    return sum(kept) / len(kept)


def _fewest(values: Sequence[Values]) -> int:
    return min(len(value.repeats) for value in values)


class Concludes(Strict):
    """The comparison of two sides has a sentence that `side` exercises `about` more than `against`."""

    kind: Literal["sentence"]
    about: list[Literal["engine", "storage", "network", "kernel"]]
    side: str
    against: str

    def judged(self, seen: Observations) -> Judged:
        """Judge by the sentences of the comparison, which have their own rules (docs/sentences.md)."""
        compared = [
            sentence for sentence in seen.sentences(self.side, self.against) if sentence.id == "exercises"
        ]
        cited = [sentence for sentence in compared if sentence.about in self.about]
        sides = {sentence.about: sentence.side for sentence in cited}
        text = "; ".join(sentence.text.partition(": ")[0] for sentence in cited)
        expected = seen.resolved(self.side)
        answers: list[Answer] = [
            "undecided" if about not in sides else "holds" if sides[about] == expected else "differs"
            for about in self.about
        ]
        missing = " and ".join(about for about in self.about if about not in sides)
        reason = f"no sentence on {missing}: no row differs reliably, or two contradict" if missing else ""
        return Judged(text, ClaimVerdict(worst(answers), reason), None, seen.repeats)


OfCampaign = (
    RatioClaim | Between | Equivalent | Order | LevelClaim | SignChange | Maximum | Rank | Linear | Concludes
)
