"""The lines below a table: how its numbers were computed, what the marks mean, plans, the noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint import numbers
from loadprint.statistics import stats
from loadprint.tables.plans import WITHIN
from loadprint.tables.rows import Column
from loadprint.tables.table import NoiseFloor, RepeatsPlan, Row

LEGEND = (
    "value: arithmetic mean of the runs; ratio: of geometric means, to {reference}; can differ from the "
    "quotient of the printed means; interval: 95 %, Student's t on the log of run means, unadjusted.",
    "* differs from 1, tested among all rows (Benjamini–Hochberg, 5 %)   ~ the interval contains 1",
    "no mark: not significant after correction for the number of rows, or not tested",
    "– no ratio   inf the reference is 0   ? both are 0   points: difference in percentage points",
)


def legend(columns: Sequence[Column], reference: str) -> str:
    """What the marks mean, in one line."""
    if len(columns) == 1:
        return ""
    base = next(len(column.runs) for column in columns if column.name == reference)
    most = max(len(column.runs) for column in columns if column.name != reference)
    if min(base, most) < stats.MIN_REPEATS:
        return f"fewer than {stats.MIN_REPEATS} runs per side: no intervals, no marks"
    return "* differs  ~ not distinguishable from 1  – no ratio"


def method(
    columns: Sequence[Column],
    reference: str,
    rows: Sequence[Row],
    plans: Sequence[RepeatsPlan],
    noise: NoiseFloor | None,
) -> tuple[str, ...]:
    """All lines below a table."""
    floor = [_noise_floor(rows, noise)] if noise else []
    return (*_legend(columns, reference), *(_plan(plan, rows) for plan in plans), *floor)


def _legend(columns: Sequence[Column], reference: str) -> list[str]:
    if len(columns) == 1:
        return ["value: mean of the repeats; one side alone has no ratio and no interval."]
    texts = [text.format(reference=reference) for text in LEGEND]
    fewest = min(len(column.runs) for column in columns)
    if fewest < 3:
        repeats = f"{fewest} repeat{'s' if fewest > 1 else ''}"
        texts.append(f"{repeats} per side: fewer than three have no intervals and no marks.")
    elif all(column.paired for column in columns):
        texts.append("each block ran every side once; the interval compares runs of the same block.")
        if factor := next((column.wider for column in columns if column.wider > 1), None):
            texts.append(
                f"starts were added until the answer was precise: intervals are {factor:g} × Student's t."
            )
    else:
        texts.append("runs are not paired (no blocks on one host): Welch's t.")
    return texts


def _plan(plan: RepeatsPlan, rows: Sequence[Row]) -> str:
    label = next(row.label for row in rows if row.key == plan.row)
    return (
        f"{plan.side}: with {plan.more} more repeat{'s' if plan.more > 1 else ''} per side a difference of "
        f"{numbers.percent(plan.apart)} % in {label} would be detectable "
        f"(estimate by the spread {plan.basis}{', at best' if plan.basis == WITHIN else ''})."
    )


def _noise_floor(rows: Sequence[Row], noise: NoiseFloor) -> str:
    """The A/A, and its floor of the headline rows."""
    sides = " ".join(f"{name} × {repeats}" for name, repeats in zip(noise.sides, noise.repeats, strict=True))
    largest = [
        f"{row.label} {numbers.ratio(math.exp(row.floor.log_ratio))}"
        for row in rows
        if row.headline and row.floor and row.floor.log_ratio is not None
    ]
    ratios = f"; largest ratios there: {', '.join(largest)}" if largest else ""
    return f"noise floor: A/A {noise.path} ({sides} repeats){ratios}."
