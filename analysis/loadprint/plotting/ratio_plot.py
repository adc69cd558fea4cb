"""Draws the ratios of a comparison, a line per row, with intervals on a logarithmic axis around 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadprint.plotting import style
from loadprint.tables.table import Row, Table, Versus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS = 45  # per page
INCH_A_ROW = 0.19
Line = tuple[str, Row]  # the title of its group, and the row


def ratios(row: Row) -> dict[int, Versus]:
    """The ratios of a row by the position of the compared side."""
    return {
        place: versus
        for place, versus in enumerate(row.versus)
        if versus is not None and versus.kind == "ratio" and versus.centre
    }


def lines(table: Table, limit: int = MAX_ROWS) -> list[Line]:
    """Up to `limit` rows that have a ratio: headline rows first, then rows with a mark."""
    rows = [(group.title, row) for group in table.groups for row in group.rows if ratios(row)]
    ranked = sorted(
        range(len(rows)),
        key=lambda place: (
            not rows[place][1].headline,
            not any(versus.differs for versus in ratios(rows[place][1]).values()),
        ),
    )
    return [rows[place] for place in sorted(ranked[:limit])]


def draw(table: Table) -> Figure | None:
    """Figure of a table; None if it has no ratio. Draw within `style.styled()`."""
    rows = lines(table)
    if not rows:
        return None
    groups = {group for group, _ in rows}
    drawn, (axes,) = style.sheet(height=1.0 + INCH_A_ROW * (len(rows) + len(groups)))
    _rows(axes, rows, max(1, len(table.sides) - 1))
    for text in axes.get_yticklabels():
        if text.get_text() in groups:
            text.set_fontweight("bold")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.5), max(high, 2.0))
    style.log_ticks(axes, axes.xaxis, most=9)
    if len(table.sides) > 2:
        sides = [(style.colour(place), side.name) for place, side in enumerate(table.sides)]
        del sides[table.base]
        handles = style.handles(sides, marker="o", linestyle="none")
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=4)
    axes.set_title(f"Ratios to {table.reference}, 95 % intervals over repeats")
    axes.set_xlabel(f"ratio to {table.reference}; filled: differs from 1")
    return drawn


def _rows(axes: Axes, rows: Sequence[Line], compared: int) -> None:
    labels: list[str] = []
    last = ""
    for group, row in rows:
        if group != last:
            labels.append(group)
            last = group
        by_side = ratios(row)
        for nth, (side, ratio) in enumerate(by_side.items()):
            at = len(labels) + (nth - (len(by_side) - 1) / 2) * 0.5 / compared
            colour = style.colour(side)
            if ratio.low is not None and ratio.high is not None and ratio.low > 0:
                axes.plot([ratio.low, ratio.high], [at, at], "-", color=colour, linewidth=1.1)
            face = colour if ratio.differs else "white"
            marker = "x" if ratio.low is None else "o"
            axes.plot([ratio.centre or 0], [at], marker, color=colour, markerfacecolor=face, zorder=3)
        labels.append(row.label)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.9, zorder=1)
    style.label_rows(axes, labels)
    axes.set_ylim(len(labels), -1)
