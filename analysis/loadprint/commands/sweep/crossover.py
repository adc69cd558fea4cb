"""Which of two columns is ahead at which concurrency: where their order changes, and is known to.

At each connection count the ratio of throughputs has Student's t interval over repeats, as in `compare`. A
crossover is claimed only where one sign is significant at one count and the other at another. A pair whose
order never changes has one side to err on. With p at most 0.1 / k at each of k counts (0.05 / k one-sided)
it is called a crossover in at most one case out of twenty (Bonferroni). Below three repeats nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import Cell
from loadprint.metrics import blocks
from loadprint.metrics.gather import Measured
from loadprint.statistics import stats

Grid = Mapping[tuple[str, str], Cell]
Verdict = Literal["crossover", "cannot tell", "none"]
ERROR = 0.1  # two-sided, over all counts


@dataclass(frozen=True)
class At:
    """Two columns at one connection count: the ratio of throughputs, its 95 % interval and p (None: too few).

    `sign` is 1 or -1 where it is significant, else 0 with the reason in `why`; `more` repeats would do.
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
    """One column beside another; `between`: neighbouring counts with significant, opposite signs."""

    column: str
    against: str
    verdict: Verdict
    between: tuple[tuple[str, str], ...]
    at: tuple[At, ...]


def crossovers(
    grid: Grid, rows: Sequence[str], columns: Sequence[str], against: str
) -> tuple[Crossover, ...]:
    """Put every other column of a sweep over connections beside the column `against`.

    Columns that count another operation are left out, and pairs that share fewer than two counts.
    """
    found = []
    for column in columns:
        pairs = [
            (row, grid[row, column], grid[row, against])
            for row in rows
            if column != against and _alike(grid.get((row, column)), grid.get((row, against)))
        ]
        at = [each for row, *pair in pairs if (each := _at(row, *pair, count=len(pairs))) is not None]
        if len(at) > 1:
            found.append(_judged(column, against, at))
    return tuple(found)


def _alike(cell: Cell | None, other: Cell | None) -> bool:
    return cell is not None and other is not None and cell.operation == other.operation


def _at(row: str, cell: Cell, other: Cell, *, count: int) -> At | None:
    x, y, paired = _together(cell.runs, other.runs)
    if not x or not y or min(*x, *y) <= 0:
        return None
    found = stats.ratio(x, y, paired=paired)
    bound = [each.name for each in (cell, other) if each.client_bound]
    more = None
    if found.p is None:
        why = f"fewer than {stats.MIN_REPEATS} repeats"
    elif bound:
        why = f"{' and '.join(bound)} client-bound"
    elif found.p > min(ERROR / count, 1 - stats.LEVEL):
        why, more = "not significant", stats.repeats_to_decide(x, y, paired=paired)
    else:
        why = ""
    sign = 0 if why else 1 if found.centre > 1 else -1
    return At(row, found.centre, found.low, found.high, found.p, sign, why, more)


def _together(own: Sequence[Measured], other: Sequence[Measured]) -> tuple[list[float], list[float], bool]:
    """Throughputs of both, and whether equal positions are of one block of one execution."""
    sides = [
        [(run, rate) for run in blocks.ordered(runs) if (rate := cells.operations(run)) is not None]
        for runs in (own, other)
    ]
    first, second = ([rate for _, rate in side] for side in sides)
    return first, second, blocks.paired(*([run for run, _ in side] for side in sides))


def _judged(column: str, against: str, at: Sequence[At]) -> Crossover:
    known = [each for each in at if each.sign]
    between = tuple((one.row, other.row) for one, other in pairwise(known) if one.sign != other.sign)
    seen = {each.ratio > 1 for each in at}
    verdict: Verdict = "crossover" if between else "cannot tell" if len(seen) > 1 else "none"
    return Crossover(column, against, verdict, between, tuple(at))


def sentences(found: Sequence[Crossover]) -> tuple[str, ...]:
    """Say each change of sign, and in one sentence where there is none."""
    said = [_SAID[each.verdict](each) for each in found if each.verdict != "none"]
    none = [each for each in found if each.verdict == "none"]
    if len(none) == 1:
        said.append(_without(none[0]))
    elif none:
        said.append(
            f"No change of sign against {none[0].against}: {', '.join(each.column for each in none)}."
        )
    return tuple(said)


def _crossing(found: Crossover) -> str:
    places = ", ".join(f"{one} and {other}" for one, other in found.between)
    return (
        f"Crossover between {places} connections: {_ratios(found)}. Which one is ahead depends on the "
        "concurrency."
    )


def _untold(found: Crossover) -> str:
    reasons: dict[str, list[str]] = {}
    for each in found.at:
        if each.why:
            more = f" ({each.more} more repeats would do)" if each.more else ""
            reasons.setdefault(each.why, []).append(each.row + more)
    said = [f"{why} at {', '.join(rows)}" for why, rows in reasons.items()]
    return f"A crossover cannot be told, {'; '.join(said)}: {_ratios(found)}."


def _without(found: Crossover) -> str:
    ahead = found.column if found.at[0].ratio > 1 else found.against
    open_ = [each.row for each in found.at if not each.sign]
    but = f"; not significantly at {', '.join(open_)}" if open_ else ""
    return f"No crossover: {ahead} is ahead at every connection count{but}: {_ratios(found)}."


def _ratios(found: Crossover) -> str:
    def one(each: At) -> str:
        interval = "" if each.low is None else f" [{each.low:.3g}, {each.high:.3g}]"
        return f"{each.ratio:.3g}{interval} at {each.row}"

    return f"{found.column} / {found.against} is " + ", ".join(map(one, found.at))


_SAID = {"crossover": _crossing, "cannot tell": _untold}
