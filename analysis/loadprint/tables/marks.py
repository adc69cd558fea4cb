"""Marks the rows of a table: verdicts of headline rows, significant differences of all others, `=`, `~`.

Eight rows at most may carry a verdict; they are chosen before any number is seen. Every verdict is a test at
5 %: eight of them raise a false alarm in a third of all comparisons of equals, forty in seven of eight. All
other rows share one false discovery rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from loadprint.statistics import stats
from loadprint.statistics.answers import EQUIVALENT_WITHIN, answer
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import EQUIVALENT, UNDECIDED, Floor, Group, NoiseFloor, Row, Versus

MAX_HEADLINES = 8
ONE_OF = ("disk", "nic", "cost")  # of several groups of a kind only the first has headlines
IOWAIT = "_iowait"  # nothing is claimed of it: a busy CPU hides it
ROUNDING = 1e-9  # an A/A must be within its floor


def marked(
    groups: Sequence[Group],
    builder: RowBuilder,
    noise: NoiseFloor | None = None,
    equivalent: float = EQUIVALENT_WITHIN,
) -> tuple[Group, ...]:
    """Return the groups with marks, headlines and noise floors."""
    rows = [row for group in groups for row in group.rows]
    done = iter(marked_rows(rows, headlines(groups), builder, noise, equivalent))
    return tuple(replace(group, rows=tuple(next(done) for _ in group.rows)) for group in groups)


def headlines(groups: Sequence[Group]) -> list[bool]:
    """Whether each row, in the order of the table, may carry a verdict.

    A row without a direction may not. Of devices only the first has headlines, of transaction types all
    together, of units of work the operation; if no two sides count the same operation, the client statement.
    """
    apart = any(group.key == "cost_statement" for group in groups) and not any(
        versus is not None and versus.kind != "none"
        for group in groups
        if group.key == "cost_operation"
        for row in group.rows
        for versus in row.versus
    )
    chosen: list[bool] = []
    seen: set[str] = set()
    for group in groups:
        kind = group.key.partition("_")[0]
        may = (
            kind not in seen
            and group.key != "latency_types"
            and not (apart and group.key == "cost_operation")
        )
        seen |= {kind} & set(ONE_OF) if may else set()
        for row in group.rows:
            chosen.append(may and row.headline and row.better != "neither" and sum(chosen) < MAX_HEADLINES)
    return chosen


def marked_rows(
    rows: Sequence[Row],
    headline: Sequence[bool],
    builder: RowBuilder,
    noise: NoiseFloor | None = None,
    equivalent: float = EQUIVALENT_WITHIN,
) -> list[Row]:
    """Return the rows with the marks of every side; `headline` rows get verdicts.

    An interval within `equivalent` (a share) of 1 is marked as such.
    """
    by_side = [_flags(rows, headline, builder, place) for place in range(len(builder.columns))]
    return [
        _marked_row(row, is_headline, [flags.get(place, "") for flags in by_side], noise, equivalent)
        for place, (row, is_headline) in enumerate(zip(rows, headline, strict=True))
    ]


def _within(versus: Versus, floor: Floor) -> bool:
    """Whether a comparison is no larger than the floor."""
    if versus.centre is None:
        return False
    if versus.kind == "ratio":
        return floor.log_ratio is not None and abs(math.log(versus.centre)) <= floor.log_ratio + ROUNDING
    return versus.kind == "difference" and abs(versus.centre) <= floor.difference * (1 + ROUNDING)


def _flags(
    rows: Sequence[Row], headline: Sequence[bool], builder: RowBuilder, position: int
) -> dict[int, str]:
    """Verdicts of one side by the place of the row, and Benjamini-Hochberg's flags of the others.

    A verdict needs a direction, one operation for both sides, and a side and a reference that settled and
    were not client-bound.
    """
    column, base = builder.columns[position], builder.columns[builder.reference]
    judged = builder.counts_alike(column) and not column.withheld and not base.withheld
    verdicts = [
        place for place, row in enumerate(rows) if judged and headline[place] and row.better != "neither"
    ]
    marks = {place: _verdict(rows[place], position) for place in verdicts}
    p_values = {
        place: versus.p
        for place, row in enumerate(rows)
        if place not in marks and not row.key.endswith(IOWAIT)
        if (versus := row.versus[position]) is not None and versus.p is not None
    }
    # the usual rows are a separate family: the rows that --all adds do not weaken them
    for hidden in (False, True):
        family = {place: p for place, p in p_values.items() if (rows[place].view == "all") is hidden}
        flags = stats.benjamini_hochberg(list(family.values()))
        marks |= {place: "*" for place, flag in zip(family, flags, strict=True) if flag}
    return marks


def _verdict(row: Row, position: int) -> str:
    versus = row.versus[position]
    if versus is None or versus.centre is None:
        return ""
    return "better" if (versus.centre > versus.no_effect) == (row.better == "higher") else "worse"


def _marked_row(
    row: Row, is_headline: bool, flags: Sequence[str], noise: NoiseFloor | None, equivalent: float
) -> Row:
    floor = noise.floors.get(row.key) if noise else None
    compared = row.versus
    if noise and floor:
        compared = tuple(versus and _floored(versus, floor, noise.path) for versus in compared)
    if not row.key.endswith(IOWAIT):
        compared = tuple(
            replace(versus, mark=_mark(versus, flag, equivalent))
            if versus and versus.p is not None
            else versus
            for versus, flag in zip(compared, flags, strict=True)
        )
    return replace(row, headline=is_headline, versus=compared, floor=floor)


def _floored(versus: Versus, floor: Floor, path: str) -> Versus:
    """The comparison, with a note if it is no larger than the floor of an A/A."""
    if not _within(versus, floor):
        return versus
    note = f"not larger than between sides of one configuration in the A/A {path}"
    return replace(versus, within_floor=True, notes=(*versus.notes, note))


def _mark(versus: Versus, flag: str, equivalent: float) -> str:
    """What an interval shows; a difference that is certain can be small enough for `=`."""
    ratio = stats.Estimate(versus.centre or 0.0, versus.low, versus.high)
    if versus.kind == "ratio" and answer(ratio, equivalent) == "equivalent":
        return EQUIVALENT
    return flag if flag and not versus.includes_no_effect and not versus.within_floor else UNDECIDED
