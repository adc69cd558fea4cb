"""The comparison's table as texts, links and positions of bars, for the page's template."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.rendering import layout
from loadprint.rendering.footnotes import Footnotes
from loadprint.tables import views
from loadprint.tables.table import Cell, Row, Table, Versus

SCALES = (2.0, 4.0, 10.0, 100.0, 1000.0)  # how far the axis of ratios may reach to either side
MOST_BEYOND = 0.1  # share of ratios that may be outside of it
HALF = 50.0  # of the bar's width, in its own units
KINDS = ("headline", "usual", "sum", "further")
BETTER = {"higher": "higher is better", "lower": "lower is better"}


@dataclass(frozen=True)
class Bar:
    """A ratio and its interval on a logarithmic axis from −50 to 50, 0 being a ratio of 1.

    `beyond`: whether the interval leaves the axis on the left and on the right. `low` and `high` are None
    without an interval.
    """

    centre: float
    low: float | None
    high: float | None
    beyond: tuple[bool, bool]


@dataclass(frozen=True)
class CellText:
    """A side's value, its footnotes, the values of its repeats, and its shares of the ceilings."""

    text: str
    notes: tuple[int, ...]
    repeats: str
    shares: tuple[str, ...] = ()


@dataclass(frozen=True)
class VersusText:
    """A compared side: ratio, interval, mark, points, footnotes, bar; all may be empty."""

    side: int
    text: str
    interval: str
    mark: str
    points: str
    notes: tuple[int, ...]
    bar: Bar | None


@dataclass(frozen=True)
class RowText:
    """A row; `kind`: `headline`, `usual`, `further` (only among all rows), `sum` (not among them)."""

    anchor: str
    label: str
    unit: str
    kind: str
    formula: str
    better: str
    notes: tuple[int, ...]
    cells: tuple[CellText, ...]
    versus: tuple[VersusText, ...]


@dataclass(frozen=True)
class GroupText:
    """Rows under a heading."""

    anchor: str
    title: str
    rows: tuple[RowText, ...]
    kind: str


@dataclass(frozen=True)
class TableText:
    """All groups; `compared` are the sides with ratios; the axis of ratios reaches from 1/scale to scale.

    `head_notes` are the numbers of the footnotes of each side.
    """

    groups: tuple[GroupText, ...]
    footnotes: tuple[str, ...]
    head_notes: tuple[tuple[int, ...], ...]
    compared: tuple[int, ...]
    scale: float
    points: bool
    counts: tuple[int, int, int]


@dataclass(frozen=True)
class Finding:
    """A sentence and what it rests on, (anchor, words) each; `shown`: one of the few for people."""

    text: str
    cites: tuple[tuple[str, str], ...]
    shown: bool


def anchor(key: str) -> str:
    """A row's key as the name of a place on the page."""
    return "row-" + re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-").lower()


def tabled(table: Table) -> TableText:
    """Write a table's texts."""
    scale = _scale(table)
    footnotes = Footnotes(table)
    compared = tuple(place for place in range(len(table.sides)) if place != table.base)
    usual = frozenset(row.key for row in views.usual(table).rows)
    groups = tuple(
        GroupText(
            anchor(group.key).replace("row-", "group-"),
            group.title,
            rows := tuple(_row(row, compared, scale, usual, footnotes) for row in group.rows),
            min((row.kind for row in rows), key=KINDS.index),
        )
        for group in table.groups
        if group.rows
    )
    return TableText(
        groups,
        footnotes.texts,
        tuple(footnotes.numbers(side.notes) for side in table.sides),
        compared,
        scale,
        any(versus is not None and versus.points is not None for row in table.rows for versus in row.versus),
        _counts(groups),
    )


def _counts(groups: Sequence[GroupText]) -> tuple[int, int, int]:
    """How many rows are shown as headlines, usually, and at all."""
    kinds = [row.kind for group in groups for row in group.rows]
    return kinds.count("headline"), len(kinds) - kinds.count("further"), len(kinds) - kinds.count("sum")


def findings(table: Table) -> tuple[Finding, ...]:
    """Sentences with links to their rows: the citations in brackets become the links."""
    labels = {row.key: row.label for row in table.rows}
    out = []
    for sentence in table.sentences:
        known = [key for key in sentence.rows if key in labels]
        text, opened, cited = sentence.text.partition(" [")
        parts = cited.removesuffix(".").removesuffix("]").split("; ")
        if not opened or len(parts) != len(known):
            text, parts = sentence.text, [labels[key] for key in known]
        cites = tuple((anchor(key), part) for key, part in zip(known, parts, strict=True))
        out.append(Finding(text if text.endswith(".") else f"{text}.", cites, sentence.shown))
    return tuple(out)


def _row(
    row: Row, compared: Sequence[int], scale: float, usual: frozenset[str], footnotes: Footnotes
) -> RowText:
    places = layout.decimals(row)
    return RowText(
        anchor(row.key),
        f"\N{EM SPACE}{row.label}" if row.part else row.label,
        row.shown,
        _kind(row, usual),
        row.formula if row.factor == 1 else f"{row.formula}, in {row.unit}",
        BETTER.get(row.better, ""),
        footnotes.numbers(row.notes),
        tuple(_cell(row, cell, places, footnotes) for cell in row.cells),
        tuple(_versus(row, place, places, scale, footnotes) for place in compared),
    )


def _kind(row: Row, usual: frozenset[str]) -> str:
    if row.view == "usual":
        return "sum"
    return "headline" if row.headline else "usual" if row.key in usual else "further"


def _cell(row: Row, cell: Cell, places: int, footnotes: Footnotes) -> CellText:
    each = ["n/a" if one is None else numbers.number(one * row.factor, places) for one in cell.repeats]
    shares = ((cell.of_ceiling, "of its ceiling"), (cell.of_claimed, "of the vendor's limit"))
    return CellText(
        layout.value(row, cell, places),
        footnotes.numbers(cell.notes),
        " / ".join(each) if each else "",
        tuple(f"{numbers.percent(share)} % {of}" for share, of in shares if share is not None),
    )


def _versus(row: Row, place: int, places: int, scale: float, footnotes: Footnotes) -> VersusText:
    versus = row.versus[place]
    ratio, interval, mark, points = (cell.text for cell in layout.versus_cells(row, versus, places))
    notes = footnotes.numbers(versus.notes if versus else ())
    return VersusText(place, ratio, interval, mark, points, notes, _bar(versus, scale))


def _bar(versus: Versus | None, scale: float) -> Bar | None:
    if versus is None or versus.kind != "ratio" or not versus.centre or versus.centre <= 0:
        return None

    def at(ratio: float) -> float:
        return HALF * math.log(ratio) / math.log(scale)

    def held(place: float) -> float:
        return round(max(-HALF, min(HALF, place)), 2)

    low = at(versus.low) if versus.low and versus.low > 0 else None
    high = at(versus.high) if versus.high and versus.high > 0 else None
    if low is None or high is None:
        centre = at(versus.centre)
        return Bar(held(centre), None, None, (centre < -HALF, centre > HALF))
    return Bar(held(at(versus.centre)), held(low), held(high), (low < -HALF, high > HALF))


def _scale(table: Table) -> float:
    """Scale of the axis: the least one that contains nine in ten ratios."""
    sizes = sorted(
        math.exp(abs(math.log(versus.centre)))
        for group in table.groups
        for row in group.rows
        for versus in row.versus
        if versus is not None and versus.kind == "ratio" and versus.centre and versus.centre > 0
    )
    if not sizes:
        return SCALES[0]
    most = sizes[min(len(sizes) - 1, int((1 - MOST_BEYOND) * len(sizes)))]
    return next((scale for scale in SCALES if scale >= most), SCALES[-1])
