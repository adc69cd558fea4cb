"""The comparison's table as texts, links and positions of bars, for the page's template."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from loadprint import numbers
from loadprint.rendering import layout
from loadprint.rendering.footnotes import Footnotes
from loadprint.tables import views
from loadprint.tables.table import Cell, Row, Table, Versus

SCALES = (2.0, 4.0, 10.0, 100.0, 1000.0)  # how far the axis of ratios may reach to either side
MOST_BEYOND = 0.1  # share of ratios that may be outside of it
HALF = 50.0  # of the bar's width, in its own units
KINDS = ("first", "usual", "sum", "further")
BETTER = {"higher": "higher is better", "lower": "lower is better"}


def anchor(key: str, kind: str = "row") -> str:
    """A row's or a group's key as the name of a place on the page."""
    return f"{kind}-" + re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-").lower()


def tabled(table: Table) -> dict[str, Any]:
    """Groups of rows of cells as texts; the axis of ratios reaches from 1/scale to scale.

    A row's `kind` is `first` (on the first screen), `usual`, `further` (only among all rows) or `sum` (not
    among them). `counts` are how many rows are shown first, usually, in all. `compared` are the sides with
    ratios, `head_notes` the numbers of the footnotes of each side, `summary` what the rows show.
    """
    footnotes = Footnotes(table)
    compared = [place for place in range(len(table.sides)) if place != table.base]
    scale = _scale(table)
    first, usual = ({row.key for row in view(table).rows} for view in (views.first, views.usual))
    kinds = {row.key: _kind(row, first, usual) for row in table.rows}
    groups = []
    for group in table.groups:
        rows = [_row(row, compared, scale, kinds[row.key], footnotes) for row in group.rows]
        if rows:
            kind = min((row["kind"] for row in rows), key=KINDS.index)
            place = anchor(group.key, "group")
            groups.append({"anchor": place, "title": group.title, "rows": rows, "kind": kind})
    counted = Counter(kinds[row.key] for row in table.rows)
    return {
        "groups": groups,
        "footnotes": footnotes.texts,
        "head_notes": [footnotes.numbers(side.notes) for side in table.sides],
        "compared": compared,
        "summary": layout.summary(table),
        "scale": scale,
        "points": any(versus and versus.points is not None for row in table.rows for versus in row.versus),
        "counts": (counted["first"], counted.total() - counted["further"], counted.total() - counted["sum"]),
    }


def findings(table: Table) -> list[dict[str, Any]]:
    """Sentences with links to their rows: the citations in brackets become the links, (anchor, words)."""
    labels = {row.key: row.label for row in table.rows}
    out = []
    for sentence in table.sentences:
        keys = [key for key in sentence.rows if key in labels]
        text, opened, cited = sentence.text.partition(" [")
        parts = cited.removesuffix(".").removesuffix("]").split("; ")
        if not opened or len(parts) != len(keys):
            text, parts = sentence.text, [labels[key] for key in keys]
        cites = [(anchor(key), part) for key, part in zip(keys, parts, strict=True)]
        out.append({"text": f"{text.removesuffix('.')}.", "cites": cites, "shown": sentence.shown})
    return out


def _kind(row: Row, first: set[str], usual: set[str]) -> str:
    if row.key in first:
        return "first"
    if row.view == "usual":
        return "sum"
    return "usual" if row.key in usual else "further"


def _row(row: Row, compared: Sequence[int], scale: float, kind: str, footnotes: Footnotes) -> dict[str, Any]:
    places = layout.decimals(row)
    formula = row.formula if row.factor == 1 else f"{row.formula}, in {row.unit}"
    return {
        "anchor": anchor(row.key),
        "label": f"\N{EM SPACE}{row.label}" if row.part else row.label,
        "unit": row.shown,
        "kind": kind,
        "about": "\n".join(filter(None, (formula, BETTER.get(row.better)))),
        "notes": footnotes.numbers(row.notes),
        "cells": [_cell(row, cell, places, footnotes) for cell in row.cells],
        "versus": [_versus(row, place, scale, footnotes) for place in compared],
    }


def _cell(row: Row, cell: Cell, places: int, footnotes: Footnotes) -> dict[str, Any]:
    """A side's value, its footnotes, the values of its repeats, and its shares of the ceilings."""
    repeats = ["n/a" if one is None else numbers.number(one * row.factor, places) for one in cell.repeats]
    shares = ((cell.of_ceiling, "of its ceiling"), (cell.of_claimed, "of the vendor's limit"))
    return {
        "text": layout.value(row, cell, places),
        "notes": footnotes.numbers(cell.notes),
        "repeats": " / ".join(repeats),
        "shares": [f"{numbers.percent(share)} % {of}" for share, of in shares if share is not None],
    }


def _versus(row: Row, place: int, scale: float, footnotes: Footnotes) -> dict[str, Any]:
    versus = row.versus[place]
    keys = ("text", "interval", "mark", "points")
    texts = (cell.text for cell in layout.versus_cells(row, versus))
    notes = footnotes.numbers(versus.notes if versus else ())
    return dict(zip(keys, texts, strict=True)) | {"side": place, "notes": notes, "bar": _bar(versus, scale)}


def _bar(versus: Versus | None, scale: float) -> dict[str, Any] | None:
    """A ratio and its interval on a logarithmic axis from −50 to 50, 0 being a ratio of 1.

    `beyond`: whether the interval leaves the axis on the left and on the right. `low` and `high` are None
    without an interval.
    """
    if versus is None or versus.kind != "ratio" or not versus.centre or versus.centre <= 0:
        return None
    ends = [HALF * math.log(end) / math.log(scale) for end in (versus.low, versus.high) if end and end > 0]
    centre = HALF * math.log(versus.centre) / math.log(scale)
    low, high = ends if len(ends) == 2 else (centre, centre)
    held = [round(max(-HALF, min(HALF, place)), 2) for place in (centre, *ends)]
    return {
        "centre": held[0],
        "low": held[1] if len(ends) == 2 else None,
        "high": held[2] if len(ends) == 2 else None,
        "beyond": (low < -HALF, high > HALF),
    }


def _scale(table: Table) -> float:
    """Scale of the axis: the least one that contains nine in ten ratios."""
    ratios = (versus for row in table.rows for versus in row.versus if versus and versus.kind == "ratio")
    sizes = sorted(
        math.exp(abs(math.log(versus.centre))) for versus in ratios if versus.centre and versus.centre > 0
    )
    if not sizes:
        return SCALES[0]
    most = sizes[min(len(sizes) - 1, int((1 - MOST_BEYOND) * len(sizes)))]
    return next((scale for scale in SCALES if scale >= most), SCALES[-1])
