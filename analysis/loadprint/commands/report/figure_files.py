"""Writes the figures of a report as SVG and PNG files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loadprint.errors import InputError
from loadprint.plotting import latency_plot, ratio_plot, scaling_plot, style, time_plot
from loadprint.plotting.scaling_plot import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from loadprint.rendering.report_data import Report, Scaled

FORMATS = ("svg", "png")
PANELS = 4  # on a page


def write(report: Report, directory: Path, formats: tuple[str, ...] = FORMATS) -> tuple[Path, ...]:
    """Write every figure with values; return the files in order. Raises InputError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = (error.strerror or "cannot be made").lower()
        raise InputError(directory, what, "name a writable directory") from error
    files = []
    with style.styled():
        for name, drawn in figures(report):
            for ending in formats:
                files.append(directory / f"{name}.{ending}")
                style.save(drawn, files[-1])
                drawn.set_layout_engine("none")  # every format has the layout of the first
    return tuple(files)


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Each figure with its name. Draw and save inside of `style.styled()`."""
    if report.table is not None and (drawn := ratio_plot.draw(report.table)) is not None:
        yield "ratios", drawn
    yield from time_plot.draw(report)
    if (drawn := latency_plot.latencies(report)) is not None:
        yield "latency", drawn
    yield from latency_plot.histograms(report)
    pages = [report.scaled[first : first + PANELS] for first in range(0, len(report.scaled), PANELS)]
    for number, page in enumerate(pages, start=1):
        drawn, all_axes = style.sheet(len(page), height=scaling_plot.HEIGHT)
        for place, (axes, each) in enumerate(zip(all_axes, page, strict=True)):
            scaling_plot.draw(axes, _panel(each), style.colour((number - 1) * PANELS + place))
        yield "scaling" if number == 1 else f"scaling-{number}", drawn


def _panel(each: Scaled) -> Panel:
    from loadprint.commands.usl.fit import Fit  # noqa: PLC0415  only sweeps need SciPy
    from loadprint.commands.usl.usl_cells import panel  # noqa: PLC0415

    if isinstance(each.fit, Fit):
        return panel(each.fit, each.name, "threads", each.unit)
    n = [float(threads) for threads, rates in zip(each.threads, each.rates, strict=True) for _ in rates]
    x = [rate for rates in each.rates for rate in rates]
    return Panel(each.name, "threads", f"throughput, {each.unit}", np.array(n), np.array(x), ())
