"""Throughput over threads of an execution that swept them: measured points, the fits, and what they say."""

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
    """One curve for each column of the matrix; none where threads were not varied."""
    if swept is None:
        return ()
    from loadprint.commands.usl import points_execution  # noqa: PLC0415  only a sweep needs a fit
    from loadprint.commands.usl.usl_summary import tell  # noqa: PLC0415

    try:
        points = points_execution.of(swept)
    except InputError:
        return ()
    try:
        columns = {column.name: column for column in tell(points).columns}
    except InputError:
        columns = {}  # too few numbers of threads for any fit: the points are shown
    found = []
    for column in points.columns:
        levels = sorted(set(column.n))
        rates = tuple(
            tuple(x for n, x in zip(column.n, column.x, strict=True) if n == level) for level in levels
        )
        told = columns.get(column.name)
        fit = told.fit if told else None
        said = tuple(verdict.text for verdict in fit.verdicts) if fit else ()
        refused = (told.refused,) if told and told.refused else ()
        grown = told.growth.sentences if told and told.growth else ()
        found.append(
            Scaled(
                column.name,
                tuple(int(level) for level in levels),
                rates,
                fit,
                unit=column.unit,
                told=(*said, *refused, *grown, *column.notes),
            )
        )
    return tuple(found)


def blocks(each: Scaled) -> tuple[Block, ...]:
    """The tables of a fit, as `loadprint usl` prints them."""
    if each.fit is None:
        return ()
    from loadprint.commands.usl.usl_cells import blocks as laid_out  # noqa: PLC0415  as above
    from loadprint.commands.usl.usl_summary import ColumnTold  # noqa: PLC0415

    return laid_out(ColumnTold(each.name, each.unit, each.fit), "threads")


def key(place: int) -> str:
    """What the figure of the curve at `place` is called."""
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
        from loadprint.commands.usl.panels import panel  # noqa: PLC0415  as above

        found = panel(each.fit, each.name, "threads", each.unit)
        data["optimum"] = found.optimum
        data["curves"] = [
            {
                "label": curve.label,
                "chief": curve.chief,
                "n": rounded(curve.n, DIGITS),
                "x": rounded(curve.x, DIGITS),
                "low": None if curve.low is None else rounded(curve.low, DIGITS),
                "high": None if curve.high is None else rounded(curve.high, DIGITS),
            }
            for curve in found.curves
        ]
    return data
