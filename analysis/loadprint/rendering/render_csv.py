"""Renders a table as CSV (RFC 4180): raw numbers in base units (s, B, 1), a line per metric and side."""

from __future__ import annotations

from loadprint.rendering.footnotes import Footnotes
from loadprint.rendering.printout import as_csv
from loadprint.tables.table import Group, Row, Table


def render(table: Table) -> str:
    """Return CSV text; `repeats` are joined by blanks, absent numbers are empty.

    `noise_floor` is the largest |log ratio| of an A/A.
    """
    footnotes = Footnotes(table)
    lines = [
        _line(table, group, row, place, footnotes)
        for group in table.groups
        for row in group.rows
        for place in range(len(table.sides))
    ]
    return as_csv([lines[0], *(line.values() for line in lines)])


def _line(table: Table, group: Group, row: Row, place: int, footnotes: Footnotes) -> dict[str, object]:
    cell, versus = row.cells[place], row.versus[place]
    noted = (row.notes, cell.notes, versus.notes if versus else ())
    notes = dict.fromkeys(footnotes.texts[number - 1] for cell in noted for number in footnotes.numbers(cell))
    return {
        "group": group.key,
        "metric": row.key,
        "label": row.label,
        "unit": row.unit,
        "side": table.sides[place].name,
        "reference": table.reference,
        "value": cell.value,
        "repeats": " ".join("" if value is None else repr(value) for value in cell.repeats),
        "kind": versus.kind if versus else "reference",
        "ratio": versus.centre if versus and versus.kind == "ratio" else None,
        "difference": versus.centre if versus and versus.kind == "difference" else None,
        "low": versus and versus.low,
        "high": versus and versus.high,
        "p": versus and versus.p,
        "points": versus and versus.points,
        "mark": versus and versus.mark,
        "notes": "; ".join(notes),
        "of_ceiling": cell.of_ceiling,
        "of_claimed": cell.of_claimed,
        "section": group.section,
        "view": row.view,
        "noise_floor": row.floor and row.floor.log_ratio,
    }
