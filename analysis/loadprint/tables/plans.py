"""Plans more repeats: which difference in the throughput they would detect, as values of `Table.plans`.

The numbers come from stats.py and bootstrap.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint.metrics.gather import Measured
from loadprint.statistics import stats
from loadprint.statistics.bootstrap import bootstrap_noise
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import Cell, RepeatsPlan, Row, Versus

ROWS = ("operations", "statements")  # the first of them that has a ratio is planned
MOST_MORE = 30  # a plan that needs more repeats is replaced by one for ten more
SOME_MORE = 10
MOST_APART = 0.25  # a plan that detects no smaller difference than this is left out
BETWEEN, WITHIN = "between runs", "within runs"


def noise(runs: Sequence[Measured]) -> float | None:
    """Within-run noise of a side's operations/s: the mean of its repeats', as a share; or None."""
    known = [share for run in runs if (share := bootstrap_noise(run.events_per_second)) is not None]
    return math.fsum(known) / len(known) if known else None


def plans(
    rows: Sequence[Row], builder: RowBuilder, noises: Sequence[float | None]
) -> tuple[RepeatsPlan, ...]:
    """One plan per side whose interval includes 1 or is missing; `noises` are those of the sides."""
    by_key = {row.key: row for row in rows if row.key in ROWS}
    planned = []
    for position, column in enumerate(builder.columns):
        for key in ROWS:
            versus = by_key[key].versus[position] if key in by_key else None
            if versus is None or versus.kind != "ratio":
                continue
            base = by_key[key].cells[builder.reference]
            both = [noises[position], noises[builder.reference]]
            plan = _plan(versus, by_key[key].cells[position], base, both, paired=column.paired)
            if plan and plan[1] <= MOST_APART:
                planned.append(RepeatsPlan(column.name, key, *plan))
            break
    return tuple(planned)


def _plan(
    versus: Versus, side: Cell, base: Cell, noises: Sequence[float | None], *, paired: bool
) -> tuple[int, float, str] | None:
    """(more repeats, apart, basis); None if the ratio is decided already or its spread is unknown."""
    if versus.low is not None and not versus.is_inconclusive:
        return None
    x, y = ([value for value in cell.measured if value > 0] for cell in (side, base))
    # a repeat without a value leaves positions that belong to different blocks
    paired = paired and len(x) == len(side.repeats) and len(y) == len(base.repeats)
    repeats = min(len(x), len(y))
    if repeats < 2:
        return _best_case(noises, repeats)
    more = stats.repeats_to_decide(x, y, paired=paired)
    if more is not None and 0 < more <= MOST_MORE and versus.centre is not None:
        return more, abs(versus.centre - 1), BETWEEN
    apart = stats.detectable_difference(x, y, repeats + SOME_MORE, paired=paired)
    return (SOME_MORE, apart, BETWEEN) if apart else None


def _best_case(noises: Sequence[float | None], repeats: int) -> tuple[int, float, str] | None:
    """The plan for three repeats if runs differed by no more than their within-run noise."""
    known = [each / stats.t_quantile(0.975, 1e6) for each in noises if each is not None]
    if len(known) < 2 or repeats < 1:
        return None
    variance = math.fsum(each**2 for each in known)
    apart = math.expm1(stats.half_width(variance, stats.MIN_REPEATS, paired=False))
    return stats.MIN_REPEATS - repeats, apart, WITHIN
