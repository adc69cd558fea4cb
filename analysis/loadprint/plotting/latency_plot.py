"""Draws percentiles of latency, and histograms as steps: small charts in two columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from loadprint.plotting import side_colours, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loadprint.rendering.report_data import Distribution, Percentiles, Report

MAX_CHARTS = 8  # per page
HEIGHT = 1.9
SHARES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
MAX_TICKS = 5
MILLI = 1e3


def latencies(report: Report) -> Figure | None:
    """Percentile curves of all transaction types; None without latencies."""
    kinds = [each for each in report.percentiles if each.curves][:MAX_CHARTS]
    if not kinds:
        return None
    drawn, all_axes = _grid(len(kinds))
    for axes, each in zip(all_axes, kinds, strict=False):
        _percentiles(axes, report, each)
    drawn_sides = [report.runs[curve.run].side for each in kinds for curve in each.curves]
    _legend(drawn, report, drawn_sides, "a line per repeat")
    return drawn


def histograms(report: Report) -> Iterator[tuple[str, Figure]]:
    """Figures of all histograms by section, (name, figure) each."""
    for section in dict.fromkeys(each.section for each in report.distributions):
        charts = [each for each in report.distributions if each.section == section]
        pages = [charts[first : first + MAX_CHARTS] for first in range(0, len(charts), MAX_CHARTS)]
        for number, page in enumerate(pages, start=1):
            drawn, all_axes = _grid(len(page))
            for axes, each in zip(all_axes, page, strict=False):
                _steps(axes, report, each)
            drawn_sides = [
                side for each in page for side, shares in enumerate(each.shares) if shares is not None
            ]
            _legend(drawn, report, drawn_sides, "all repeats together")
            word = section.replace("_", "-")
            yield f"histogram-{word}" if number == 1 else f"histogram-{word}-{number}", drawn


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    """Axes for `count` charts, without unused ones."""
    columns = min(2, count)
    drawn, axes = style.sheet(-(-count // columns), columns, height=HEIGHT)
    for left in axes[count:]:
        left.remove()
    return drawn, axes[:count]


def _percentiles(axes: Axes, report: Report, each: Percentiles) -> None:
    """The axis of shares is log(1/(1−share)): each further nine has the same width."""
    last = max(float(curve.shares[-1]) for curve in each.curves)
    colours = side_colours.palette(report)
    for curve in each.curves:
        usable = (curve.shares < 1) & np.isfinite(curve.values) & (curve.values > 0)
        colour = colours[report.runs[curve.run].side]
        axes.plot(1 / (1 - curve.shares[usable]), curve.values[usable] * MILLI, color=colour, linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    shares = [share for share in SHARES if share <= max(0.99, last)]
    axes.set_xticks([1 / (1 - share) for share in shares], [f"{100 * share:g}" for share in shares])
    _plain_ticks(axes, "y")
    axes.minorticks_off()
    axes.set_title(each.kind)
    axes.set_xlabel("percentile")
    axes.set_ylabel("latency, ms")


def _steps(axes: Axes, report: Report, each: Distribution) -> None:
    colours = side_colours.palette(report)
    edges = each.edges * each.factor
    for side, shares in enumerate(each.shares):
        if shares is not None:
            axes.stairs(100 * shares, edges, color=colours[side], linewidth=1.0)
            axes.stairs(100 * shares, edges, color=colours[side], fill=True, alpha=0.15)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    _plain_ticks(axes, "x")
    axes.minorticks_off()
    axes.set_title(each.title)
    axes.set_xlabel(each.shown)
    axes.set_ylabel("share, %")


def _plain_ticks(axes: Axes, direction: str) -> None:
    """Ticks as 0.1, 1, 10 instead of 10⁻¹; also 2 and 5 if the axis is shorter than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: PLC0415  slow to import

    axis = axes.xaxis if direction == "x" else axes.yaxis
    low, high = axes.get_xlim() if direction == "x" else axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low < 100 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=MAX_TICKS))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _legend(drawn: Figure, report: Report, of: Sequence[int], note: str) -> None:
    handles = side_colours.handles(report, of)
    drawn.legend(handles=handles, loc="outside lower center", ncols=5, title=note, title_fontsize=7)
