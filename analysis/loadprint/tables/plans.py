"""What more repeats would tell, for a table: values for `Table.plans`, and the lines that say them.

Numbers come from planning.py and bootstrap.py; here is which row, which spread, and in which words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint import numbers
from loadprint.metrics.gather import Measured
from loadprint.statistics import stats
from loadprint.statistics.bootstrap import bootstrap_noise
from loadprint.statistics.planning import half_width
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import Cell, Plan, Row, Versus

ROWS = ("operations", "statements")  # the first of them that has a ratio is planned for
MOST_MORE = 30  # nobody runs more: then what ten more would tell is said
SOME_MORE = 10
MOST_APART = 0.25  # a plan that would detect no smaller difference than this helps no one and is left out
BETWEEN, WITHIN = "between runs", "within runs"


def noise(runs: Sequence[Measured]) -> float | None:
    """Within-run noise of a side's operations a second: the mean of its repeats', as a share; or None."""
    known = [found.share for run in runs if (found := bootstrap_noise(run.events_per_second))]
    return math.fsum(known) / len(known) if known else None


def plans(rows: Sequence[Row], builder: RowBuilder, noises: Sequence[float | None]) -> tuple[Plan, ...]:
    """One plan for each side whose interval includes 1 or is missing; `noises` are those of the sides."""
    by_key = {row.key: row for row in rows if row.key in ROWS}
    found = []
    for position, column in enumerate(builder.columns):
        for key in ROWS:
            versus = by_key[key].versus[position] if key in by_key else None
            if versus is None or versus.kind != "ratio":
                continue
            base = by_key[key].cells[builder.reference]
            both = [noises[position], noises[builder.reference]]
            plan = _plan(versus, by_key[key].cells[position], base, both, paired=column.paired)
            if plan and plan[1] <= MOST_APART:
                found.append(Plan(column.name, key, *plan))
            break
    return tuple(found)


def told(found: Sequence[Plan], rows: Sequence[Row]) -> list[str]:
    """One line for each plan."""
    labels = {row.key: row.label for row in rows}
    return [
        f"{plan.side}: {plan.more} more repeat{'s' if plan.more > 1 else ''} a side would detect "
        f"{'at best ' if plan.basis == WITHIN else ''}a difference of {numbers.percent(plan.apart)} % in "
        f"{labels[plan.row]}, by the spread {plan.basis} (a plan, not a finding)."
        for plan in found
    ]


def noises_told(names: Sequence[str], found: Sequence[float | None]) -> str:
    """Header line: within-run noise of each side; empty where nobody knows."""
    said = [
        f"{name} ±{numbers.percent(each)} %"
        for name, each in zip(names, found, strict=True)
        if each is not None
    ]
    return f"within runs, of operations/s (planning only): {'; '.join(said)}" if said else ""


def _plan(
    versus: Versus, side: Cell, base: Cell, noises: Sequence[float | None], *, paired: bool
) -> tuple[int, float, str] | None:
    """(more repeats, apart, basis), None where nothing is to be decided or nothing tells the spread."""
    if versus.low is not None and versus.mark != "~":
        return None
    x, y = (_known(cell) for cell in (side, base))
    # a repeat without a value leaves positions that belong to different blocks
    paired = paired and len(x) == len(side.repeats) and len(y) == len(base.repeats)
    repeats = min(len(x), len(y))
    if repeats < 2:
        return _hoped(noises, repeats)
    more = stats.repeats_to_decide(x, y, paired=paired)
    if more is not None and 0 < more <= MOST_MORE and versus.centre is not None:
        return more, abs(versus.centre - 1), BETWEEN
    apart = stats.detectable_difference(x, y, repeats + SOME_MORE, paired=paired)
    return (SOME_MORE, apart, BETWEEN) if apart else None


def _hoped(noises: Sequence[float | None], repeats: int) -> tuple[int, float, str] | None:
    """What three repeats would tell if runs differed by no more than their own seconds make them."""
    known = [each / stats.t_quantile(0.975, 1e6) for each in noises if each is not None]
    if len(known) < 2 or repeats < 1:
        return None
    variance = math.fsum(each**2 for each in known)
    apart = math.expm1(half_width(variance, stats.MIN_REPEATS, paired=False))
    return stats.MIN_REPEATS - repeats, apart, WITHIN


def _known(cell: Cell) -> list[float]:
    return [value for value in cell.repeats if value is not None and value > 0]
