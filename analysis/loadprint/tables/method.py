"""The lines below a table: how its numbers were computed, what the marks mean, the noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint import numbers
from loadprint.statistics import stats
from loadprint.tables.rows import Column
from loadprint.tables.table import NoiseFloor, Row

LEGEND = (
    "value: arithmetic mean of the runs; ratio: of geometric means, to {reference}; can differ from the "
    "quotient of the printed means; interval: 95 %, Student's t on the log of run means, unadjusted.",
    "* differs from 1, tested among the usual rows (Benjamini–Hochberg, 5 %), those of --all apart; "
    "better, worse: a headline row, tested alone; = equivalent: the interval is inside the bound; "
    "~ undecided; no mark: not tested",
    "– no ratio   inf the reference is 0   ? both are 0   points: difference in percentage points",
)
FEW = "fewer than three repeats have no intervals and no marks."
PAIRED = "each block ran every side once; the interval compares runs of the same block."
APART = "runs are not paired (not the same blocks of one execution on one host): Welch's t."


def legend(columns: Sequence[Column], reference: str, equivalent: float) -> str:
    """What the marks mean, in one line."""
    if len(columns) == 1:
        return ""
    base = next(len(column.runs) for column in columns if column.name == reference)
    most = max(len(column.runs) for column in columns if column.name != reference)
    if min(base, most) < stats.MIN_REPEATS:
        return f"fewer than {stats.MIN_REPEATS} runs per side: no intervals, no marks"
    return f"* differs  = equivalent (±{numbers.brief(100 * equivalent, 3)} %)  ~ undecided  – no ratio"


def method(
    columns: Sequence[Column],
    reference: str,
    rows: Sequence[Row],
    noise: NoiseFloor | None,
) -> tuple[str, ...]:
    """All lines below a table."""
    floor = [_noise_floor(rows, noise)] if noise else []
    return (*_legend(columns, reference), *floor)


def _legend(columns: Sequence[Column], reference: str) -> list[str]:
    if len(columns) == 1:
        return ["value: mean of the repeats; one side alone has no ratio and no interval."]
    texts = [text.format(reference=reference) for text in LEGEND]
    base = next(len(column.runs) for column in columns if column.name == reference)
    others = [column for column in columns if column.name != reference]
    few = [column for column in others if min(len(column.runs), base) < stats.MIN_REPEATS]
    paired = [column for column in others if column not in few and column.paired]
    apart = [column for column in others if column not in few and not column.paired]
    for some, text in ((few, FEW), (paired, PAIRED), (apart, APART)):
        if some:
            of = f"{', '.join(column.name for column in some)}: " if len(some) < len(others) else ""
            texts.append(f"{of}{text}")
    if factor := next((column.wider for column in (*paired, *apart) if column.wider > 1), None):
        texts.append(
            f"starts were added until the answer was precise: intervals are {factor:g} × Student's t."
        )
    return texts


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
