"""Renders a published table as text, Markdown, CSV and JSON: cells as printed, with their ratios.

If the sides do not fit in the width, each has its own table with the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from loadprint import numbers
from loadprint.importing.printed_number import Interval, Number
from loadprint.importing.printed_table import Misprint, PrintedRatio, PrintedRow, PrintedTable
from loadprint.rendering.layout import raised
from loadprint.rendering.printout import WIDTH, Block, Printout, as_json, lines_of, renderers

THREE_DIGITS = 100.0
CSV_HEAD = (
    "section metric side printed value low high reference ratio ratio_low ratio_high printed_ratio verdict"
    " misprint meant_low meant_high"
)


def _printout(table: PrintedTable) -> Printout:
    blocks = _blocks(table, table.sides)
    if any(cell_len(line.rstrip()) > WIDTH for block in blocks for line in lines_of(block)):
        others = [side for side in table.sides if side != table.reference]
        pairs = ([shown for shown in table.sides if shown in (side, table.reference)] for side in others)
        blocks = [block for pair in pairs for block in _blocks(table, pair)]
    return Printout(table.name, (), (), blocks, list(_below(table)))


def _blocks(table: PrintedTable, shown: Sequence[str]) -> list[Block]:
    """A table for each section."""
    heads = tuple(_heads(table, shown))
    return [
        Block(section, heads, tuple(tuple(_cells(table, row, shown)) for row in rows))
        for section, rows in groupby(table.rows, key=lambda row: row.section)
    ]


def _lines(table: PrintedTable) -> Iterator[Sequence[object]]:
    """A line for each row and side; absent numbers are empty."""
    yield CSV_HEAD.split()
    for row in table.rows:
        for side, cell, ratio in zip(table.sides, row.cells, row.ratios, strict=True):
            printed = [""] * 4 if cell is None else (cell.text, cell.value, *_ends(cell.span))
            compared = [""] * 3 if ratio is None else (ratio.value, *_ends(ratio.span))
            judged = [""] * 2 if ratio is None or row.printed is None else (row.printed.text, row.verdict)
            wrong = [""] * 3 if cell is None else (cell.wrong, *_ends(cell.meant))
            names = (row.section, row.metric, side)
            yield *names, *printed, table.reference, *compared, *judged, *wrong


RENDERERS = renderers(_printout, _lines, lambda table: as_json(table, format_version=1))


def _heads(table: PrintedTable, shown: Sequence[str]) -> list[str]:
    compared = [side for side in shown if side != table.reference]
    heads = ["", *shown]
    for side in compared:
        heads.append("ratio" if len(table.sides) == 2 else f"{side}/{table.reference}")
        heads.append("within rounding")
    return heads + (["printed", ""] if table.judged else [])


def _cells(table: PrintedTable, row: PrintedRow, shown: Sequence[str]) -> list[str]:
    """One line: label, cells as printed, ratios with their range within rounding, and the printed ratio."""
    places = row.printed.decimals if row.printed else None
    cells = [row.metric]
    for column, cell in zip(table.sides, row.cells, strict=True):
        if column in shown:
            cells.append(f"{cell.text if cell else 'n/a'}{_mark(table, row, column, cell)}")
    for side, ratio in zip(table.sides, row.ratios, strict=True):
        if side != table.reference and side in shown:
            cells += _ratio(ratio, places)
    if table.judged:
        cells += [row.printed.text if row.printed else "", row.verdict]
    return cells


def _ratio(ratio: PrintedRatio | None, places: int | None) -> list[str]:
    if ratio is None:
        return ["–", ""]
    # one digit more than the ratio, unless it has three
    finer = None if places is None else places + (1 if ratio.span.high < THREE_DIGITS else 0)
    low, high = (_number(end, finer) for end in (ratio.span.low, ratio.span.high))
    return [_number(ratio.value, places), f"[{low}, {high}]"]


def _number(value: float | None, places: int | None) -> str:
    """A ratio with the decimals of the printed one, else in three significant digits."""
    if value is None:
        return "–"
    return numbers.ratio(value) if places is None else f"{value:,.{places}f}"


def _mark(table: PrintedTable, row: PrintedRow, column: str, cell: Number | None) -> str:
    if cell is None or not cell.wrong:
        return ""
    return raised([table.misprint_numbers[row.section, row.metric, column]])


def _below(table: PrintedTable) -> Iterator[str]:
    for number, misprint in enumerate(table.misprints, start=1):
        yield f"{raised([number])} {_misprint_text(misprint)}"
    yield (
        f"ratio: to {table.reference}, of the printed values; within rounding: of all values that round to "
        "them."
    )
    if table.judged:
        rest = table.judged - table.agreeing
        others = f"; {rest} do{'es' if rest == 1 else ''} not" if rest else ""
        yield f"{table.agreeing} of {table.judged} printed ratios agree within rounding{others}."
    count = len(table.misprints)
    if count:
        yield f"{count} cell{'s are' if count > 1 else ' is'} misprinted."
    yield from table.notes


def _misprint_text(misprint: Misprint) -> str:
    """A misprint and its possible values."""
    text = f'"{misprint.text}" is a misprint: {misprint.wrong}'
    if misprint.low is None or misprint.high is None:
        return text
    return f"{text}; possible values: {misprint.low:,.0f}–{misprint.high:,.0f}"


def _ends(span: Interval | None) -> tuple[float | str, float | str]:
    return ("", "") if span is None else (span.low, span.high)
