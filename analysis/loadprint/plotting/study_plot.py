"""Draws the figures of a study: values by connections, ratios next to published ones, windows over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadprint.plotting import style
from loadprint.statistics.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCH_A_ROW = 0.21
HEIGHT = 3.0
LEAST_APART = 1.3  # ratio of two ticks
PUBLISHED = "#000000"


@dataclass(frozen=True)
class StudyCurve:
    """A named line: x → value with its interval."""

    name: str
    points: dict[float, Estimate]


@dataclass(frozen=True)
class Dot:
    """A row of a dot plot; `published` is the publication's figure, None without one."""

    label: str
    value: Estimate | None
    published: float | None = None


@dataclass(frozen=True)
class Bar:
    """A window from `begin` to `end` in seconds; `treated`: with the treatment."""

    begin: float
    end: float
    value: float
    treated: bool


def curves(panels: Sequence[tuple[str, Sequence[StudyCurve]]], x: str, y: str) -> Figure:
    """Panels (title, lines) next to each other; a name has the same colour in all of them."""
    drawn, all_axes = style.sheet(1, len(panels), height=HEIGHT)
    names = list(dict.fromkeys(curve.name for _, lines in panels for curve in lines))
    for (title, lines), axes in zip(panels, all_axes, strict=True):
        for curve in lines:
            _curve(axes, curve, style.colour(names.index(curve.name)))
        ticks = sorted({at for curve in lines for at in curve.points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(_apart(ticks))
        style.plain_ticks(axes.xaxis)
        style.plain_ticks(axes.yaxis)
        axes.set_ylim(bottom=0)
        axes.set_title(title)
        axes.set_xlabel(x)
    all_axes[0].set_ylabel(y)
    handles, labels = all_axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4)
    return drawn


def _apart(ticks: Sequence[float]) -> list[float]:
    """Ticks whose labels do not overlap on a logarithmic axis, from the largest down."""
    kept: list[float] = []
    for tick in sorted(ticks, reverse=True):
        if not kept or kept[-1] / tick > LEAST_APART:
            kept.append(tick)
    return kept


def _curve(axes: Axes, curve: StudyCurve, colour: str) -> None:
    at = sorted(curve.points)
    points = [curve.points[place] for place in at]
    axes.plot(at, [point.centre for point in points], "-o", color=colour, label=curve.name)
    for place, point in zip(at, points, strict=True):
        if point.low is not None and point.high is not None:
            axes.plot([place, place], [point.low, point.high], "-", color=colour, linewidth=2.2, alpha=0.45)


def dots(title: str, rows: Sequence[Dot], x: str, *, ratios: bool) -> Figure:
    """Rows below each other; ratios have a logarithmic axis and a line at 1."""
    drawn, (axes,) = style.sheet(height=0.9 + INCH_A_ROW * len(rows))
    colour = style.colour(0)
    for place, row in enumerate(rows):
        if row.value is not None:
            if row.value.low is not None and row.value.high is not None:
                axes.plot([row.value.low, row.value.high], [place, place], "-", color=colour)
            axes.plot([row.value.centre], [place], "o", color=colour, label="measured" if not place else None)
        if row.published is not None:
            label = "published" if not place else None
            axes.plot([row.published], [place], "D", color=PUBLISHED, markerfacecolor="white", label=label)
    if ratios:
        axes.set_xscale("log")
        axes.axvline(1, color="black", linewidth=0.9, zorder=1)
        axes.legend(loc="lower right")
    else:
        axes.set_xlim(left=0)
    style.plain_ticks(axes.xaxis, lambda value, _: f"{value:g}")
    style.label_rows(axes, [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(title)
    axes.set_xlabel(x)
    return drawn


def windows(title: str, bars: Sequence[Bar], y: str) -> Figure:
    """Bars over time, coloured by variant."""
    from matplotlib.patches import Patch  # noqa: PLC0415  slow to import

    drawn, (axes,) = style.sheet(height=2.4)
    for bar in bars:
        axes.bar(
            bar.begin, bar.value, bar.end - bar.begin, align="edge", color=style.colour(int(bar.treated))
        )
    axes.set_title(title)
    axes.set_xlabel("seconds since the start")
    axes.set_ylabel(y)
    style.plain_ticks(axes.yaxis)
    axes.grid(axis="x", visible=False)
    handles = [
        Patch(color=style.colour(place), label=name) for place, name in ((1, "treatment"), (0, "baseline"))
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return drawn
