"""Renders a table as CSV (RFC 4180): raw numbers in base units (s, B, 1), a line per metric and side."""

from __future__ import annotations

import io

from loadprint.rendering import escape
from loadprint.rendering.footnotes import Footnotes
from loadprint.tables.table import Table

HEAD = (
    "group",
    "metric",
    "label",
    "unit",
    "side",
    "reference",
    "value",
    "repeats",
    "kind",
    "ratio",
    "difference",
    "low",
    "high",
    "p",
    "points",
    "mark",
    "notes",
    "of_ceiling",
    "of_claimed",
    "section",
    "view",
    "noise_floor",
)


def render(table: Table) -> str:
    """Return CSV text; `repeats` are joined by blanks, absent numbers are empty.

    `noise_floor` is the largest |log ratio| of an A/A.
    """
    footnotes = Footnotes(table)
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(HEAD)
    for group in table.groups:
        for row in group.rows:
            for side, cell, versus in zip(table.sides, row.cells, row.versus, strict=True):
                notes = [
                    *footnotes.sorted(row.notes),
                    *footnotes.sorted(cell.notes),
                    *footnotes.sorted(versus.notes if versus else ()),
                ]
                repeats = " ".join("" if value is None else repr(value) for value in cell.repeats)
                compared: list[object] = ["reference", *[""] * 7]
                if versus:
                    ratio = versus.centre if versus.kind == "ratio" else None
                    difference = versus.centre if versus.kind == "difference" else None
                    estimate: list[object] = [ratio, difference, versus.low, versus.high, versus.p]
                    compared = [versus.kind, *estimate, versus.points, versus.mark]
                writer.writerow(
                    [
                        group.key,
                        row.key,
                        row.label,
                        row.unit,
                        side.name,
                        table.reference,
                        cell.value,
                        repeats,
                        *compared,
                        "; ".join(dict.fromkeys(notes)),
                        cell.of_ceiling,
                        cell.of_claimed,
                        group.section,
                        row.view,
                        row.floor.log_ratio if row.floor else None,
                    ]
                )
    return out.getvalue()
