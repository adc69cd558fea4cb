"""Draws the ratios of a comparison, a line per row, with intervals on a logarithmic axis around 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadprint.plotting import style
from loadprint.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS = 45  # per page
INCH_A_ROW = 0.19
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Ratio:
    """A side compared with the reference: `low` and `high` are None with fewer than three repeats.

    `differs`: it is marked as different from 1.
    """

    side: int
    centre: float
    low: float | None
    high: float | None
    differs: bool


@dataclass(frozen=True)
class Line:
    """A row with a ratio for each compared side; `group` is its heading."""

    group: str
    label: str
    headline: bool
    ratios: tuple[Ratio, ...]


def lines(table: Table, limit: int = MAX_ROWS) -> tuple[Line, ...]:
    """Up to `limit` rows that have a ratio: headline rows first, then rows with a mark."""
    rows = []
    for group in table.groups:
        for row in group.rows:
            ratios = tuple(
                Ratio(place, versus.centre, versus.low, versus.high, versus.mark not in ("", "~"))
                for place, versus in enumerate(row.versus)
                if versus is not None and versus.kind == "ratio" and versus.centre
            )
            if ratios:
                rows.append(Line(group.title, row.label, row.headline, ratios))
    ranked = sorted(
        range(len(rows)),
        key=lambda place: (not rows[place].headline, not any(r.differs for r in rows[place].ratios), place),
    )
    return tuple(rows[place] for place in sorted(ranked[:limit]))


def draw(table: Table, limit: int = MAX_ROWS) -> Figure | None:
    """Figure of a table; None if it has no ratio. Draw within `style.styled()`."""
    rows = lines(table, limit)
    if not rows:
        return None
    names = [side.name for side in table.sides]
    groups = len({row.group for row in rows})
    drawn, (axes,) = style.sheet(height=1.0 + INCH_A_ROW * (len(rows) + groups))
    _rows(axes, rows, [name for name in names if name != table.reference], names)
    axes.set_title(f"Ratios to {table.reference}, 95 % intervals over repeats")
    axes.set_xlabel(f"ratio to {table.reference}; filled: differs from 1")
    return drawn


def _rows(axes: Axes, rows: Sequence[Line], compared: Sequence[str], names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415  slow to import

    place, ticks, labels, group = 0.0, [], [], ""
    for row in rows:
        if row.group != group:
            group = row.group
            ticks.append(place)
            labels.append(group)
            place += 1
        ticks.append(place)
        labels.append(row.label)
        for nth, ratio in enumerate(row.ratios):
            at = place + (nth - (len(row.ratios) - 1) / 2) * 0.5 / max(1, len(compared))
            colour = style.colour(ratio.side)
            if ratio.low is not None and ratio.high is not None and ratio.low > 0:
                axes.plot([ratio.low, ratio.high], [at, at], "-", color=colour, linewidth=1.1)
            face = colour if ratio.differs else "white"
            marker = "x" if ratio.low is None else "o"
            axes.plot([ratio.centre], [at], marker, color=colour, markerfacecolor=face, zorder=3)
        place += 1
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.9, zorder=1)
    axes.set_ylim(place, -1)
    axes.set_yticks(ticks, labels)
    axes.tick_params(axis="y", length=0)
    for text in axes.get_yticklabels():
        if text.get_text() in {row.group for row in rows}:
            text.set_fontweight("bold")
    axes.grid(axis="y", visible=False)
    _decades(axes)
    if len(compared) > 1:
        handles = [
            Line2D([], [], marker="o", linestyle="none", color=style.colour(names.index(name)), label=name)
            for name in compared
        ]
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=4)


def _decades(axes: Axes) -> None:
    """Ticks at 0.1, 0.2, 0.5, 1, 2, 5 … within the data, and at least a factor of two around 1."""
    from matplotlib.ticker import NullLocator  # noqa: PLC0415  slow to import

    low, high = axes.get_xlim()
    low, high = min(low, 0.5), max(high, 2.0)
    axes.set_xlim(low, high)
    wide = high / low > 2000
    ticks = [tick for tick in TICKS if low <= tick <= high and (not wide or f"{tick:g}".strip("0.") == "1")]
    axes.set_xticks(ticks)
    style.plain_ticks(axes.xaxis, lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
