"""Throughput over threads of a sweep: measured points, fits and their conclusions."""

from __future__ import annotations

from typing import Any

import numpy as np

from loadprint.commands.report.pack import rounded
from loadprint.commands.sweep.cells import Swept
from loadprint.commands.usl.usl_cells import Block
from loadprint.errors import InputError
from loadprint.rendering.report_data import Scaled

DIGITS = 5


def scaled(swept: Swept | None) -> tuple[Scaled, ...]:
    """One curve for each column of the matrix; none where the thread count is the same."""
    if swept is None:
        return ()
    from loadprint.commands.usl.points import of as points_of  # noqa: PLC0415  only a sweep needs a fit
    from loadprint.commands.usl.usl_summary import summarise  # noqa: PLC0415

    try:
        points = points_of(swept)
    except InputError:
        return ()
    try:
        columns = {column.name: column for column in summarise(points).columns}
    except InputError:
        columns = {}  # too few thread counts for any fit: the points are shown
    curves = []
    for column in points.columns:
        levels = sorted(set(column.n))
        rates = tuple(
            tuple(x for n, x in zip(column.n, column.x, strict=True) if n == level) for level in levels
        )
        summary = columns.get(column.name)
        fit = summary.fit if summary else None
        conclusions = tuple(verdict.text for verdict in fit.verdicts) if fit else ()
        refused = (summary.refused,) if summary and summary.refused else ()
        growth = summary.growth.sentences if summary and summary.growth else ()
        curves.append(
            Scaled(
                column.name,
                tuple(int(level) for level in levels),
                rates,
                fit,
                unit=column.unit,
                conclusions=(*conclusions, *refused, *growth, *column.notes),
            )
        )
    return tuple(curves)


def blocks(each: Scaled) -> tuple[Block, ...]:
    """The tables of a fit, as `loadprint usl` prints them."""
    if each.fit is None:
        return ()
    from loadprint.commands.usl.usl_cells import blocks as as_blocks  # noqa: PLC0415  as above
    from loadprint.commands.usl.usl_summary import ColumnSummary  # noqa: PLC0415

    return as_blocks(ColumnSummary(each.name, each.unit, each.fit), "threads")


def key(place: int) -> str:
    """Name of the figure of the curve at `place`."""
    return f"scaling-{place}"


def packed(each: Scaled, place: int) -> dict[str, Any]:
    """Points and curves for the page's script."""
    data: dict[str, Any] = {
        "key": key(place),
        "side": place,
        "unit": each.unit,
        "n": [threads for threads, rates in zip(each.threads, each.rates, strict=True) for _ in rates],
        "x": rounded(np.array([rate for rates in each.rates for rate in rates]), DIGITS),
        "curves": [],
        "optimum": None,
    }
    if each.fit is not None:
        from loadprint.commands.usl.usl_cells import panel  # noqa: PLC0415  as above

        drawn = panel(each.fit, each.name, "threads", each.unit)
        data["optimum"] = drawn.optimum
        data["curves"] = [
            {
                "label": curve.label,
                "chief": curve.chief,
                "n": rounded(curve.n, DIGITS),
                "x": rounded(curve.x, DIGITS),
                "low": None if curve.low is None else rounded(curve.low, DIGITS),
                "high": None if curve.high is None else rounded(curve.high, DIGITS),
            }
            for curve in drawn.curves
        ]
    return data
