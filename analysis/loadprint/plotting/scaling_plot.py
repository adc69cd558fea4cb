"""Draws throughput over concurrency: points, fitted curves with intervals, the measured range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loadprint.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
HEIGHT = 2.9  # inches per panel


@dataclass(frozen=True)
class Curve:
    """A fitted curve, float64[n] each; `low` and `high` are its 95 % interval, None without one.

    `chief`: the subject of the figure; the other curves are drawn dashed.
    """

    label: str
    n: Floats
    x: Floats
    low: Floats | None = None
    high: Floats | None = None
    chief: bool = True


@dataclass(frozen=True)
class Panel:
    """One column: every measured point, the curves, and the optimum if there is one."""

    title: str
    concurrency: str
    unit: str
    n: Floats
    x: Floats
    curves: tuple[Curve, ...]
    optimum: float | None = None
    note: str = ""


def write(panels: Sequence[Panel], path: Path) -> None:
    """Draw panels below each other into a file. Raises InputError."""
    style.require_suffix(path)
    with style.styled():
        drawn, axes = style.sheet(len(panels), height=HEIGHT)
        for place, (panel, each) in enumerate(zip(panels, axes, strict=True)):
            draw(each, panel, style.colour(place))
        style.save(drawn, path)


def draw(axes: Axes, panel: Panel, colour: str) -> None:
    """Draw one panel. The axis of N is logarithmic, to show 1 to 64 as well as 1000."""
    largest = float(panel.n.max())
    right = max([largest, *(float(curve.n.max()) for curve in panel.curves)])
    axes.set_xscale("log", base=2)
    axes.set_xlim(float(panel.n.min()) / 1.15, right * 1.15)
    style.shade(axes, float(panel.n.min()) / 1.15, largest, "measured")
    if right > largest:
        style.name_from(axes, largest, "extrapolation", 3)
    _curves(axes, panel, colour)
    axes.plot(
        panel.n,
        panel.x,
        "o",
        color=colour,
        markeredgecolor="white",
        markeredgewidth=0.5,
        zorder=4,
    )
    if panel.optimum is not None:
        axes.axvline(
            panel.optimum, color=colour, linewidth=0.8, linestyle=":", label=f"optimum {panel.optimum:.1f}"
        )
    tops = [float(panel.x.max()), *(float(curve.x.max()) for curve in panel.curves)]
    axes.set_ylim(0, 1.15 * max(tops))
    axes.set_title(panel.title)
    axes.set_xlabel(panel.concurrency if not panel.note else f"{panel.concurrency}\n{panel.note}")
    axes.set_ylabel(panel.unit)
    _ticks(axes, float(panel.n.min()), right)
    if panel.curves:
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, columnspacing=1.4, handlelength=1.8
        )


def _curves(axes: Axes, panel: Panel, colour: str) -> None:
    """The chief curve in its colour, the others dashed and grey, each with its interval."""
    for place, curve in enumerate(panel.curves):
        tint = colour if curve.chief else style.GREY
        dashes = "-" if curve.chief else ("--", ":", "-.")[(place - 1) % 3]
        axes.plot(curve.n, curve.x, dashes, color=tint, label=curve.label, zorder=3)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(
                curve.n,
                curve.low,
                curve.high,
                color=tint,
                alpha=0.18,
                linewidth=0,
                label="95 % of the curve" if curve.chief else None,
            )


def _ticks(axes: Axes, smallest: float, largest: float) -> None:
    """Ticks at powers of two, a dozen at most."""
    ticks = 2.0 ** np.arange(np.floor(np.log2(smallest)), np.ceil(np.log2(largest)) + 1)
    ticks = ticks[(ticks >= smallest) & (ticks <= largest * 1.15)]
    axes.set_xticks(ticks[:: 1 + len(ticks) // 12])
    style.plain_ticks(axes.xaxis)
    style.plain_ticks(axes.yaxis)
