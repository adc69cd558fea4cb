"""Draws throughput over concurrency: points, fitted curves with intervals, the measured range."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loadprint.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loadprint.rendering.report_data import Panel

HEIGHT = 2.9  # inches per panel


def write(panels: Sequence[Panel], path: Path) -> None:
    """Draw panels below each other into a file. Raises InputError."""
    style.require_suffix(path)
    with style.styled():
        style.save(page(panels), path)


def page(panels: Sequence[Panel], first: int = 0) -> Figure:
    """Panels below each other, in the colours from the one at `first`. Draw within `style.styled()`."""
    drawn, axes = style.sheet(len(panels), height=HEIGHT)
    for place, (panel, axis) in enumerate(zip(panels, axes, strict=True), start=first):
        _draw(axis, panel, style.colour(place))
    return drawn


def _draw(axes: Axes, panel: Panel, colour: str) -> None:
    """The axis of N is logarithmic, to show 1 to 64 as well as 1000."""
    smallest, largest = float(panel.n.min()), float(panel.n.max())
    right = max([largest, *(float(curve.n.max()) for curve in panel.curves)])
    axes.set_xscale("log", base=2)
    axes.set_xlim(smallest / 1.15, right * 1.15)
    axes.axvspan(smallest / 1.15, largest, color=style.SHADE, linewidth=0, zorder=0)
    style.name_from(axes, smallest / 1.15, "measured", 3)
    if right > largest:
        style.name_from(axes, largest, "extrapolation", 3)
    _curves(axes, panel, colour)
    axes.plot(panel.n, panel.x, "o", color=colour, markeredgecolor="white", markeredgewidth=0.5, zorder=4)
    if panel.optimum is not None:
        label = f"optimum {panel.optimum:.1f}"
        axes.axvline(panel.optimum, color=colour, linewidth=0.8, linestyle=":", label=label)
    tops = [float(panel.x.max()), *(float(curve.x.max()) for curve in panel.curves)]
    axes.set_ylim(0, 1.15 * max(tops))
    axes.set_title(panel.title)
    axes.set_xlabel(panel.concurrency)
    axes.set_ylabel(panel.unit)
    # at powers of two, a dozen at most
    ticks = 2.0 ** np.arange(np.floor(np.log2(smallest)), np.ceil(np.log2(right)) + 1)
    ticks = ticks[(ticks >= smallest) & (ticks <= right * 1.15)]
    axes.set_xticks(ticks[:: 1 + len(ticks) // 12])
    style.plain_ticks(axes.xaxis)
    style.plain_ticks(axes.yaxis)
    if panel.curves:
        columns = {"ncols": 4, "columnspacing": 1.4, "handlelength": 1.8}
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), **columns)


def _curves(axes: Axes, panel: Panel, colour: str) -> None:
    """The chief curve in its colour, the others dashed and grey, each with its interval."""
    for place, curve in enumerate(panel.curves):
        tint = colour if curve.chief else style.GREY
        dashes = "-" if curve.chief else ("--", ":", "-.")[(place - 1) % 3]
        axes.plot(curve.n, curve.x, dashes, color=tint, label=curve.label, zorder=3)
        if curve.low is not None and curve.high is not None:
            label = "95 % of the curve" if curve.chief else None
            axes.fill_between(
                curve.n, curve.low, curve.high, color=tint, alpha=0.18, linewidth=0, label=label
            )
