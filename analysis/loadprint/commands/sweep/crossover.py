"""Crossovers: connection counts between which the order of two columns changes significantly.

At each connection count the ratio of throughputs has Student's t interval over repeats, as in `compare`. A
crossover needs one significant sign at one count and the opposite one at another. The test uses p ≤ 0.1 / k
at each of k counts (0.05 / k one-sided), so that a pair whose order never changes is reported as a crossover
in at most one case in twenty (Bonferroni). With fewer than three repeats no crossover is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import SweepCell
from loadprint.metrics import blocks
from loadprint.metrics.gather import Measured
from loadprint.numbers import brief
from loadprint.statistics import stats

Grid = Mapping[tuple[str, str], SweepCell]
Verdict = Literal["crossover", "undecided", "none"]
ERROR = 0.1  # two-sided, over all counts


@dataclass(frozen=True)
class At:
    """Two columns at one connection count: the ratio of throughputs, its 95 % interval and p (None: too few).

    `sign` is 1 or -1 where it is significant, else 0 with the reason in `why`; `more` repeats would decide.
    """

    row: str
    ratio: float
    low: float | None
    high: float | None
    p: float | None
    sign: int
    why: str
    more: int | None


@dataclass(frozen=True)
class Crossover:
    """One column compared with another; `between`: neighbouring counts with opposite significant signs."""

    column: str
    against: str
    verdict: Verdict
    between: tuple[tuple[str, str], ...]
    at: tuple[At, ...]


def crossovers(
    grid: Grid, rows: Sequence[str], columns: Sequence[str], against: str
) -> tuple[Crossover, ...]:
    """Compare every other column of a sweep over connections with the column `against`.

    Columns that count another operation, and pairs that share fewer than two counts, are left out.
    """
    pairs_of_columns = []
    for column in columns:
        pairs = [
            (row, grid[row, column], grid[row, against])
            for row in rows
            if column != against
            and {(row, column), (row, against)} <= grid.keys()
            and grid[row, column].operation == grid[row, against].operation
        ]
        at = [place for row, *pair in pairs if (place := _at(row, *pair, count=len(pairs))) is not None]
        if len(at) > 1:
            pairs_of_columns.append(_judged(column, against, at))
    return tuple(pairs_of_columns)


def _at(row: str, cell: SweepCell, other: SweepCell, *, count: int) -> At | None:
    x, y, paired = _throughputs(cell.runs, other.runs)
    if not x or not y or min(*x, *y) <= 0:
        return None
    estimate = stats.ratio(x, y, paired=paired)
    doubts: dict[str, list[str]] = {}
    for compared in (cell, other):
        for word in compared.doubts:
            doubts.setdefault(word, []).append(compared.name)
    more, error = None, min(ERROR / count, 1 - stats.LEVEL)
    if estimate.p is None:
        why = f"fewer than {stats.MIN_REPEATS} repeats"
    elif doubts:
        why = ", ".join(f"{' and '.join(names)} {word}" for word, names in doubts.items())
    elif estimate.p > error:
        why, more = "not significant", stats.repeats_to_decide(x, y, paired=paired, level=1 - error)
    else:
        why = ""
    sign = 0 if why else 1 if estimate.centre > 1 else -1
    return At(row, estimate.centre, estimate.low, estimate.high, estimate.p, sign, why, more)


def _throughputs(own: Sequence[Measured], other: Sequence[Measured]) -> tuple[list[float], list[float], bool]:
    """Throughputs of both, and whether equal positions are of one block of one execution."""
    sides = [
        [(run, rate) for run in blocks.ordered(runs) if (rate := cells.operations(run)) is not None]
        for runs in (own, other)
    ]
    first, second = ([rate for _, rate in side] for side in sides)
    return first, second, blocks.paired(*([run for run, _ in side] for side in sides))


def _judged(column: str, against: str, at: Sequence[At]) -> Crossover:
    decided = [place for place in at if place.sign]
    between = tuple((one.row, other.row) for one, other in pairwise(decided) if one.sign != other.sign)
    signs = {place.ratio > 1 for place in at}
    verdict: Verdict = "crossover" if between else "undecided" if len(signs) > 1 else "none"
    return Crossover(column, against, verdict, between, tuple(at))


def sentences(pairs: Sequence[Crossover]) -> tuple[str, ...]:
    """One sentence for each change of sign, and one for all pairs without one."""
    texts = [_crossing(pair) for pair in pairs if pair.verdict != "none"]
    none = [pair for pair in pairs if pair.verdict == "none"]
    if len(none) == 1:
        texts.append(_without(none[0]))
    elif none:
        texts.append(f"No crossover with {none[0].against}: {', '.join(pair.column for pair in none)}.")
    return tuple(texts)


def _crossing(pair: Crossover) -> str:
    if pair.verdict == "undecided":
        return _undecided(pair)
    places = ", ".join(f"{one} and {other}" for one, other in pair.between)
    return (
        f"Crossover between {places} connections: {_ratios(pair)}. Which one has the higher throughput "
        "depends on the concurrency."
    )


def _undecided(pair: Crossover) -> str:
    reasons: dict[str, list[str]] = {}
    for place in pair.at:
        if place.why:
            more = f" ({place.more} more repeat{'s' * (place.more != 1)} would decide)" if place.more else ""
            reasons.setdefault(place.why, []).append(place.row + more)
    texts = [f"{why} at {', '.join(rows)}" for why, rows in reasons.items()]
    return f"Crossover undecided, {'; '.join(texts)}: {_ratios(pair)}."


def _without(pair: Crossover) -> str:
    ahead = pair.column if pair.at[0].ratio > 1 else pair.against
    open_ = [place.row for place in pair.at if not place.sign]
    but = f"; not significantly at {', '.join(open_)}" if open_ else ""
    return f"No crossover: {ahead} has the higher throughput at every connection count{but}: {_ratios(pair)}."


def _ratios(pair: Crossover) -> str:
    def one(place: At) -> str:
        interval = (
            ""
            if place.low is None or place.high is None
            else f" [{brief(place.low, 3)}, {brief(place.high, 3)}]"
        )
        return f"{brief(place.ratio, 3)}{interval} at {place.row}"

    return f"{pair.column} / {pair.against} is " + ", ".join(map(one, pair.at))
