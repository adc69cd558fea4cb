"""Judges one claim by the values of an execution: verdict, measured figure, reason.

A claim holds, or differs, only if an interval over three or more repeats excludes the other answer.
Otherwise it is inconclusive, with the further repeats that would decide it at the observed spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from loadprint import numbers
from loadprint.commands.study import study_file
from loadprint.commands.study.observations import Observations, Values
from loadprint.statistics import stats
from loadprint.statistics.rank import rank_correlation

Answer = Literal["holds", "differs", "inconclusive", "not comparable"]
HOLDS: Answer = "holds"
DIFFERS: Answer = "differs"
INCONCLUSIVE: Answer = "inconclusive"
NOT_COMPARABLE: Answer = "not comparable"
FEW = "fewer than three repeats"
NOT_JUDGED = "not judged: "  # begins the answer on a size that is not comparable


class Interval(Protocol):
    """Bounds of an interval; None with too few repeats."""

    @property
    def low(self) -> float | None:
        """Lower bound."""

    @property
    def high(self) -> float | None:
        """Upper bound."""


@dataclass(frozen=True)
class Judged:
    """`measured` is the figure with its interval; `reason` why there is no other verdict.

    `more`: repeats per side that would decide an inconclusive claim. `size` is the factor between a ratio and
    the published one, `size_answer` what it shows. `needs` is the command that would measure the claim.
    """

    answer: Answer
    measured: str
    repeats: int = 0
    reason: str = ""
    more: int | None = None
    size: str = ""
    size_answer: str = ""
    needs: str = ""

    @property
    def size_judged(self) -> bool:
        """Whether the size of the ratio is comparable with the published one."""
        return not self.size_answer.startswith(NOT_JUDGED)


@dataclass(frozen=True)
class RatioOf:
    """A ratio of two sides of a row with its interval, None below three repeats."""

    text: str
    centre: float
    low: float | None
    high: float | None
    repeats: int
    more: int | None


def ratio(judge: study_file.Ratio, seen: Observations) -> Judged:
    """Judge the direction of a ratio, and describe its size."""
    measured = ratio_of(seen, judge.row, judge.side, judge.against)
    judged = _direction(measured, 1 if judge.published > 1 else -1)
    if measured.centre <= 0:
        return judged
    far = within(measured, judge.published / judge.within, judge.published * judge.within)
    words = {HOLDS: f"within {judge.within:g} ×", DIFFERS: f"more than {judge.within:g} × away"}
    size = f"{numbers.ratio(measured.centre / judge.published)} × the published ratio"
    return replace(judged, size=size, size_answer=words.get(far, ""))


def between(judge: study_file.Between, seen: Observations) -> Judged:
    """Judge every ratio by its bounds; one that is outside decides."""
    limits = [limit for limit in (judge.low, judge.high) if limit]
    ratios = [ratio_of(seen, judge.row, *pair, limits=limits) for pair in judge.pairs]
    high = math.inf if judge.high is None else judge.high
    answers = [within(each, judge.low or 0.0, high) for each in ratios]
    return _all(
        answers, "; ".join(_named(seen, *each) for each in zip(judge.pairs, ratios, strict=True)), ratios
    )


def order(judge: study_file.Order, seen: Observations) -> Judged:
    """Judge every pair of neighbours."""
    values = [seen.values(judge.row, side) for side in judge.sides]
    pairs = list(pairwise(judge.sides))
    ratios = [ratio_of(seen, judge.row, higher, lower) for higher, lower in pairs]
    answers = [_direction(each, 1).answer for each in ratios]
    text = " > ".join(f"{each.side} {_shown(each)}" for each in values)
    wrong = [
        _named(seen, pair, each)
        for pair, each, answer in zip(pairs, ratios, answers, strict=True)
        if answer != HOLDS
    ]
    return replace(
        _all(answers, text, ratios), reason=f"not in this order: {'; '.join(wrong)}" if wrong else ""
    )


def level(judge: study_file.Level, seen: Observations) -> Judged:
    """Judge each side's mean and its interval by the limit."""
    limit, direction = (judge.above, 1) if judge.above is not None else (judge.below or 0.0, -1)
    answers, texts, repeats = [], [], []
    for side in judge.sides:
        values = seen.values(judge.row, side)
        mean = stats.t_interval(values.repeats)
        answers.append(beyond(mean, limit, direction))
        bounds = [_scaled(bound, values) for bound in (mean.low, mean.high) if bound is not None]
        texts.append(f"{side} {_shown(values)}{f' [{bounds[0]}, {bounds[1]}]' if bounds else ''}")
        repeats.append(len(values.repeats))
    return Judged(_worst(answers), "; ".join(texts), min(repeats))


def sign_change(judge: study_file.SignChange, seen: Observations) -> Judged:
    """Judge both ratios by 1."""
    below, above = (ratio_of(seen, judge.row, *pair) for pair in (judge.below, judge.above))
    answers = [_direction(below, -1).answer, _direction(above, 1).answer]
    text = f"{_named(seen, judge.below, below)}; {_named(seen, judge.above, above)}"
    return _all(answers, text, [below, above])


def maximum(judge: study_file.Maximum, seen: Observations) -> Judged:
    """Judge which sides can have the largest value: those that are not significantly below the best."""
    values = {side: seen.values(judge.row, side) for side in judge.sides}
    best = max(values, key=lambda side: values[side].mean)
    others = {side: ratio_of(seen, judge.row, side, best) for side in judge.sides if side != best}
    candidates = {best, *(side for side, each in others.items() if each.high is None or each.high >= 1)}
    expected = set(map(seen.resolved, judge.at))
    answer = HOLDS if candidates <= expected else DIFFERS if not candidates & expected else INCONCLUSIVE
    text = f"largest at {best}, {_shown(values[best])}"
    rivals = sorted(candidates - {best}, key=judge.sides.index)
    text += f"; not distinguishable from {', '.join(rivals)}" if rivals else ""
    few = min(len(each.repeats) for each in values.values())
    open_pairs = [each.more for side, each in others.items() if (side in expected) != (best in expected)]
    return Judged(answer, text, few, more=_most(open_pairs) if answer == INCONCLUSIVE else None)


def rank(judge: study_file.Rank, seen: Observations) -> Judged:
    """Judge the rank correlation with the published cells."""
    published = list(judge.cells.values())

    def correlation(cells: list[float]) -> float | None:
        return rank_correlation(published, cells)

    values = [seen.values(judge.row, side) for side in judge.cells]
    return _at_least(judge.least, values, correlation, f"rank correlation of {len(values)} cells")


def linear(judge: study_file.Linear, seen: Observations) -> Judged:
    """Judge R² of a straight line through the time of an operation."""
    x = np.asarray(list(judge.at.values()))

    def line(cells: list[float]) -> tuple[float, float, float] | None:
        if min(cells) <= 0:
            return None
        y = 1e6 / np.asarray(cells)
        slope, intercept = np.polyfit(x, y, 1)
        left, spread = float(((y - intercept - slope * x) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
        return float(intercept), float(slope), 1 - left / spread if spread else 0.0

    def r2(cells: list[float]) -> float | None:
        fitted = line(cells)
        return fitted[2] if fitted else None

    values = [seen.values(judge.row, side) for side in judge.at]
    fitted = line([each.mean for each in values])
    text = f"{numbers.brief(fitted[0], 3)} + {numbers.brief(fitted[1], 3)} µs per value, R²" if fitted else ""
    return _at_least(judge.least, values, r2, text)


def _at_least(
    least: float, values: Sequence[Values], figure: Callable[[list[float]], float | None], label: str
) -> Judged:
    """Judge a figure of several cells, at most 1, by its jackknife interval over the repeats."""
    few = min(len(each.repeats) for each in values)
    whole = figure([each.mean for each in values])
    if whole is None:
        return Judged(NOT_COMPARABLE, "", few, "undefined: the cells are equal, or one is 0")
    if few < stats.MIN_REPEATS:
        return Judged(INCONCLUSIVE, f"{label} {whole:.3f}", few, FEW)
    left_out = [figure([_mean_without(each.repeats, number) for each in values]) for number in range(few)]
    interval = stats.jackknife(whole, [one for one in left_out if one is not None])
    low, high = interval.low or 0.0, min(interval.high or 1.0, 1.0)
    answer = HOLDS if low >= least else DIFFERS if high < least else INCONCLUSIVE
    return Judged(answer, f"{label} {whole:.3f} [{low:.3f}, {high:.3f}]", few)


def _mean_without(repeats: Sequence[float], number: int) -> float:
    kept = [value for place, value in enumerate(repeats) if place != number]
    return sum(kept) / len(kept)


def concludes(judge: study_file.Concludes, seen: Observations) -> Judged:
    """Judge by the sentences of the comparison, which have their own rules (docs/sentences.md)."""
    compared = [each for each in seen.sentences(judge.side, judge.against) if each.id == "exercises"]
    listed = [each for each in compared if each.about in judge.about]
    sides = {each.about: each.side for each in listed}
    text = "; ".join(each.text.partition(": ")[0] for each in listed)
    answers = [
        INCONCLUSIVE if about not in sides else HOLDS if sides[about] == judge.side else DIFFERS
        for about in judge.about
    ]
    missing = [about for about in judge.about if about not in sides]
    reason = (
        f"no sentence on {' and '.join(missing)}: no row differs reliably, or two contradict"
        if missing
        else ""
    )
    return Judged(_worst(answers), text, seen.repeats, reason)


def ratio_of(
    seen: Observations, row: str, side: str, against: str, limits: Sequence[float] = (1.0,)
) -> RatioOf:
    """Compute the ratio of a row of two sides; its centre is 0 where a value is. Raises Absent.

    `more` are the repeats that would decide on which side of every limit it is.
    """
    x, y = seen.values(row, side), seen.values(row, against)
    paired = seen.paired(side, against) and len(x.repeats) == len(y.repeats)
    repeats = min(len(x.repeats), len(y.repeats))
    if min(*x.repeats, *y.repeats) <= 0:
        estimate = stats.difference(x.repeats, y.repeats, paired=paired)
        # no log ratio with a 0: only the sign of the difference is known
        low, high = (
            None if bound is None else math.exp(np.sign(bound)) for bound in (estimate.low, estimate.high)
        )
        text = f"{_shown(x)} against {_shown(y)}"
        return RatioOf(text, 0.0, low, high, repeats, None)
    estimate = stats.ratio(x.repeats, y.repeats, paired=paired)
    interval = (
        ""
        if estimate.low is None or estimate.high is None
        else f" [{numbers.ratio(estimate.low)}, {numbers.ratio(estimate.high)}]"
    )
    more = _most(
        [
            stats.repeats_to_decide(x.repeats, [limit * value for value in y.repeats], paired=paired)
            for limit in limits
        ]
    )
    return RatioOf(
        f"{numbers.ratio(estimate.centre)}{interval}",
        estimate.centre,
        estimate.low,
        estimate.high,
        repeats,
        more,
    )


def _named(seen: Observations, pair: tuple[str, str], measured: RatioOf) -> str:
    return f"{' / '.join(map(seen.resolved, pair))} {measured.text}"


def _direction(measured: RatioOf, direction: int) -> Judged:
    """Whether a ratio is above 1 (direction 1) or below it (−1)."""
    answer = beyond(measured, 1.0, direction)
    few = FEW if measured.low is None else ""
    more = measured.more if answer == INCONCLUSIVE else None
    return Judged(answer, measured.text, measured.repeats, few, more)


def beyond(measured: Interval, limit: float, direction: int) -> Answer:
    """Whether the whole interval is above the limit (direction 1) or below it (−1)."""
    if measured.low is None or measured.high is None:
        return INCONCLUSIVE
    side = 1 if measured.low > limit else -1 if measured.high < limit else 0
    return HOLDS if side == direction else DIFFERS if side else INCONCLUSIVE


def within(measured: Interval, low: float, high: float) -> Answer:
    """Whether the whole interval is inside of the bounds, outside, or neither."""
    if measured.low is None or measured.high is None:
        return INCONCLUSIVE
    if low <= measured.low and measured.high <= high:
        return HOLDS
    return DIFFERS if measured.high < low or measured.low > high else INCONCLUSIVE


def _all(answers: Sequence[Answer], text: str, ratios: Sequence[RatioOf]) -> Judged:
    """The answer of a claim on several ratios: all must hold, one that differs decides."""
    answer = _worst(answers)
    more = _most([each.more for each, one in zip(ratios, answers, strict=True) if one == INCONCLUSIVE])
    return Judged(
        answer, text, min(each.repeats for each in ratios), more=more if answer == INCONCLUSIVE else None
    )


def _worst(answers: Sequence[Answer]) -> Answer:
    return next((each for each in (DIFFERS, INCONCLUSIVE) if each in answers), HOLDS)


def _most(more: Sequence[int | None]) -> int | None:
    """The largest number of further repeats; None if one is unknown."""
    known = [each for each in more if each is not None]
    return max(known, default=None) if len(known) == len(more) else None


def _shown(values: Values) -> str:
    return f"{_scaled(values.mean, values)}{f' {values.unit}' if values.unit else ''}"


def _scaled(value: float, values: Values) -> str:
    return numbers.brief(value * values.factor, 3)


KINDS: dict[type[Any], Callable[[Any, Observations], Judged]] = {
    study_file.Ratio: ratio,
    study_file.Between: between,
    study_file.Order: order,
    study_file.Level: level,
    study_file.SignChange: sign_change,
    study_file.Maximum: maximum,
    study_file.Rank: rank,
    study_file.Linear: linear,
    study_file.Concludes: concludes,
}
