"""Judges one claim by the values of an execution: direction, size, measured figure, reason.

A claim holds, or differs, only if an interval over three or more repeats excludes the other answer; it is
equivalent if the interval is within the claim's bound. Otherwise it is inconclusive, with the further repeats
that would decide it at the observed spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from loadprint.commands.study import study_file
from loadprint.commands.study.claim_verdicts import (
    DIFFERS,
    EQUIVALENT,
    FEW,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Answer,
    Judged,
    Verdict,
    worst,
)
from loadprint.commands.study.observations import Observations, Values
from loadprint.commands.study.side_ratios import RatioOf, between, ratio_of, with_interval
from loadprint.statistics import stats
from loadprint.statistics.several import best_candidates, rank_correlation, zero_bound
from loadprint.statistics.stats import Estimate


def ratio(judge: study_file.Ratio, seen: Observations) -> Judged:
    """Judge the direction of a ratio, and the factor between it and the published one."""
    measured = ratio_of(seen, judge.row, judge.side, judge.against)
    higher = judge.published > 1
    direction = between([measured], 1.0 if higher else None, None if higher else 1.0, judge.bound)
    if measured.value is None:
        size = Verdict(INCONCLUSIVE, "a repeat is 0: no ratio")
    else:
        verdict = between([measured], judge.published / judge.within, judge.published * judge.within)
        size = replace(verdict, figure=factor_to(measured.value, judge.published), more=None)
    return Judged(measured.text, direction, size, measured.repeats)


def factor_to(measured: Estimate, published: float) -> str:
    """The factor between a measured and a published ratio, with the interval of the measured one."""
    bounds = (None if bound is None else bound / published for bound in (measured.low, measured.high))
    return f"{with_interval(Estimate(measured.centre / published, *bounds))} × the published ratio"


def within(judge: study_file.Between, seen: Observations) -> Judged:
    """Judge every ratio by its limits; one that is outside decides."""
    ratios = _ratios(seen, judge.row, judge.pairs)
    higher, lower = (judge.low or 0.0) >= 1, judge.high is not None and judge.high <= 1
    direction = size = None
    if higher or lower:
        direction = between(ratios, 1.0 if higher else None, None if higher else 1.0, judge.bound)
    if not (higher or lower) or {judge.low, judge.high} - {1.0, None}:
        size = between(ratios, judge.low, judge.high)
    return Judged(_listed(ratios), direction, size, _fewest(ratios))


def equivalent(judge: study_file.Equivalent, seen: Observations) -> Judged:
    """Judge whether every ratio is equivalent to 1."""
    ratios = _ratios(seen, judge.row, judge.pairs)
    verdict = between(ratios, 1 / (1 + judge.bound), 1 + judge.bound, judge.bound)
    if verdict.answer == EQUIVALENT:
        verdict = replace(verdict, answer=HOLDS)
    return Judged(_listed(ratios), verdict, None, _fewest(ratios))


def order(judge: study_file.Order, seen: Observations) -> Judged:
    """Judge every pair of neighbours, all together."""
    ratios = _ratios(seen, judge.row, list(pairwise(judge.sides)))
    verdict = between(ratios, 1.0, None)
    if verdict.answer == DIFFERS:
        wrong = [f"{each.label} {each.text}" for each in ratios if each.test(1.0)[0] < 0]
        verdict = replace(verdict, reason=f"not in this order: {'; '.join(wrong)}")
    text = " > ".join(f"{each.side} {each.shown}" for each in (ratios[0].side, *(r.against for r in ratios)))
    return Judged(text, verdict, None, _fewest(ratios))


def level(judge: study_file.Level, seen: Observations) -> Judged:
    """Judge each side's mean by the limit, by intervals that hold for all sides together."""
    limit, direction = (judge.above, 1) if judge.above is not None else (judge.below or 0.0, -1)
    all_values = [seen.values(judge.row, side) for side in judge.sides]
    answers, texts, reasons = [], [], []
    for values in all_values:
        together = 1 - (1 - stats.LEVEL) / len(judge.sides)
        answers.append(beyond(mean_of(values, level=together), limit, direction))
        mean = mean_of(values)
        bounds = [values.scaled(bound) for bound in (mean.low, mean.high) if bound is not None]
        texts.append(f"{values.side} {values.shown}{f' [{bounds[0]}, {bounds[1]}]' if bounds else ''}")
        if not bounds:
            reasons.append(FEW if len(values.repeats) < stats.MIN_REPEATS else "0 in every run: no interval")
    verdict = Verdict(worst(answers), "; ".join(dict.fromkeys(reasons)))
    return Judged("; ".join(texts), None, verdict, min(len(each.repeats) for each in all_values))


def mean_of(values: Values, level: float = stats.LEVEL) -> Estimate:
    """The mean with its interval; of a count that is 0 in all runs the Poisson bound, of other rows none."""
    if any(values.repeats) or len(values.repeats) < stats.MIN_REPEATS:
        return stats.t_interval(values.repeats, level=level)
    if values.exposure is None:
        return Estimate(0.0)
    return Estimate(0.0, 0.0, zero_bound(values.exposure, (1 - level) / 2))


def sign_change(judge: study_file.SignChange, seen: Observations) -> Judged:
    """Judge both ratios by 1, together."""
    first, second = ratios = _ratios(seen, judge.row, [judge.below, judge.above])
    text, repeats = _listed(ratios), _fewest(ratios)
    # the reciprocal of the first: both are above 1 if the claim holds
    verdict = between([first.inverted, second], 1.0, None)
    if judge.either and verdict.answer != HOLDS:
        if between([first, second.inverted], 1.0, None).answer == HOLDS:
            verdict = Verdict(HOLDS)
        elif verdict.answer == DIFFERS:
            verdict = Verdict(INCONCLUSIVE, "no change of order here, which does not show that there is none")
    return Judged(text, verdict, None, repeats)


def maximum(judge: study_file.Maximum, seen: Observations) -> Judged:
    """Judge which sides can have the largest value, by simultaneous bounds."""
    sides = list(dict.fromkeys(map(seen.resolved, judge.sides)))
    values = [seen.values(judge.row, side) for side in sides]

    def below(side: int, other: int) -> float | None:
        log, p = ratio_of(seen, judge.row, sides[side], sides[other]).test(1.0)
        return None if p is None else p / 2 if log < 0 else 1 - p / 2

    candidates = {side for side, can in zip(sides, best_candidates(len(sides), below), strict=True) if can}
    expected = set(map(seen.resolved, judge.at))
    answer = HOLDS if candidates <= expected else DIFFERS if not candidates & expected else INCONCLUSIVE
    best = max(values, key=lambda each: each.mean)
    rivals = [side for side in sides if side in candidates and side != best.side]
    text = f"largest at {best.side}, {best.shown}"
    text += f"; not distinguishable from {', '.join(rivals)}" if rivals else ""
    few = min(len(each.repeats) for each in values)
    reason = (
        FEW if few < stats.MIN_REPEATS else "other sides may be the best" if answer == INCONCLUSIVE else ""
    )
    return Judged(text, Verdict(answer if few >= stats.MIN_REPEATS else INCONCLUSIVE, reason), None, few)


def rank(judge: study_file.Rank, seen: Observations) -> Judged:
    """Judge the rank correlation with the published cells."""
    published = list(judge.cells.values())

    def correlation(cells: list[float]) -> float | None:
        return rank_correlation(published, cells)

    values = [seen.values(judge.row, side) for side in judge.cells]
    return _at_least(judge.least, values, correlation, f"rank correlation of {len(values)} cells")


def linear(judge: study_file.Linear, seen: Observations) -> Judged:
    """Judge R² of a straight line through a row."""
    x = np.asarray(list(judge.at.values()))

    def line(cells: list[float]) -> tuple[float, float, float]:
        y = np.asarray(cells)
        slope, intercept = np.polyfit(x, y, 1)
        left, spread = float(((y - intercept - slope * x) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
        return float(intercept), float(slope), 1 - left / spread if spread else 0.0

    values = [seen.values(judge.row, side) for side in judge.at]
    intercept, slope, _ = line([each.mean for each in values])
    first = values[0]
    text = f"{first.scaled(intercept)} + {first.scaled(slope)} {first.unit} per value, R²"
    return _at_least(judge.least, values, lambda cells: line(cells)[2], text)


def _at_least(
    least: float, values: Sequence[Values], figure: Callable[[list[float]], float | None], label: str
) -> Judged:
    """Judge a figure of several cells, at most 1, by its jackknife interval over the repeats."""
    few = min(len(each.repeats) for each in values)
    whole = figure([each.mean for each in values])
    if whole is None:
        return Judged("", None, Verdict(NOT_COMPARABLE, "undefined: the cells are equal, or one is 0"), few)
    if few < stats.MIN_REPEATS:
        return Judged(f"{label} {whole:.3f}", None, Verdict(INCONCLUSIVE, FEW), few)
    left_out = [figure([_mean_without(each.repeats, number) for each in values]) for number in range(few)]
    interval = stats.jackknife(whole, [one for one in left_out if one is not None])
    low, high = interval.low or 0.0, min(interval.high or 1.0, 1.0)
    answer = HOLDS if low >= least else DIFFERS if high < least else INCONCLUSIVE
    return Judged(f"{label} {whole:.3f} [{low:.3f}, {high:.3f}]", None, Verdict(answer), few)


def _mean_without(repeats: Sequence[float], number: int) -> float:
    kept = [value for place, value in enumerate(repeats) if place != number]
    return sum(kept) / len(kept)


def concludes(judge: study_file.Concludes, seen: Observations) -> Judged:
    """Judge by the sentences of the comparison, which have their own rules (docs/sentences.md)."""
    compared = [each for each in seen.sentences(judge.side, judge.against) if each.id == "exercises"]
    listed = [each for each in compared if each.about in judge.about]
    sides = {each.about: each.side for each in listed}
    text = "; ".join(each.text.partition(": ")[0] for each in listed)
    expected = seen.resolved(judge.side)
    answers: list[Answer] = [
        INCONCLUSIVE if about not in sides else HOLDS if sides[about] == expected else DIFFERS
        for about in judge.about
    ]
    missing = " and ".join(about for about in judge.about if about not in sides)
    reason = f"no sentence on {missing}: no row differs reliably, or two contradict" if missing else ""
    return Judged(text, Verdict(worst(answers), reason), None, seen.repeats)


def beyond(measured: Estimate, limit: float, direction: int) -> Answer:
    """Whether the whole interval is above the limit (direction 1) or below it (−1)."""
    if measured.low is None or measured.high is None:
        return INCONCLUSIVE
    side = 1 if measured.low > limit else -1 if measured.high < limit else 0
    return HOLDS if side == direction else DIFFERS if side else INCONCLUSIVE


def _ratios(seen: Observations, row: str, pairs: Sequence[tuple[str, str]]) -> list[RatioOf]:
    return [ratio_of(seen, row, *pair) for pair in pairs]


def _listed(ratios: Sequence[RatioOf]) -> str:
    return "; ".join(f"{each.label} {each.text}" for each in ratios)


def _fewest(ratios: Sequence[RatioOf]) -> int:
    return min(each.repeats for each in ratios)


KINDS: dict[type[Any], Callable[[Any, Observations], Judged]] = {
    study_file.Ratio: ratio,
    study_file.Between: within,
    study_file.Equivalent: equivalent,
    study_file.Order: order,
    study_file.Level: level,
    study_file.SignChange: sign_change,
    study_file.Maximum: maximum,
    study_file.Rank: rank,
    study_file.Linear: linear,
    study_file.Concludes: concludes,
}
