"""Throughput over threads of a sweep: measured points, fits and their conclusions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loadprint.commands.sweep.cells import Swept
from loadprint.errors import InputError
from loadprint.rendering.printout import Block
from loadprint.rendering.report_data import Panel


def scaled(swept: Swept | None) -> tuple[Panel, ...]:
    """One curve for each column of the matrix; none where the thread count is the same."""
    if swept is None:
        return ()
    from loadprint.commands.usl import points as of_usl  # noqa: PLC0415  only sweeps need SciPy
    from loadprint.commands.usl import usl_cells, usl_summary  # noqa: PLC0415

    try:
        points = of_usl.of(swept)
    except InputError:
        return ()
    try:
        columns = {column.name: column for column in usl_summary.summarise(points).columns}
    except InputError:
        columns = {}  # too few thread counts for any fit: the points are shown
    curves = []
    for column in points.columns:
        summary = columns.get(column.name)
        fit = summary.fit if summary else None
        unit = f"throughput, {column.unit}"
        drawn = Panel(column.name, "threads", unit, np.array(column.n, float), np.array(column.x))
        conclusions: list[str] = []
        blocks: tuple[Block, ...] = ()
        if fit:
            drawn = usl_cells.panel(fit, column.name, "threads", column.unit)
            conclusions += [verdict.text for verdict in fit.verdicts]
            blocks = usl_cells.blocks(usl_summary.ColumnSummary(column.name, column.unit, fit), "threads")
        if summary:
            conclusions += [summary.refused] if summary.refused else []
            conclusions += summary.growth.sentences if summary.growth else ()
        curves.append(replace(drawn, conclusions=(*conclusions, *column.notes), blocks=blocks))
    return tuple(curves)
