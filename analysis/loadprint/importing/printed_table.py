"""Reads a published table from a CSV file, and checks its ratios within the rounding of its numbers.

Columns are `section` (optional), a metric (the column of this name, else the first), one for each side, and
`printed_ratio` (optional). Further columns without numbers are part of the metric's name.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from loadprint.errors import InputError
from loadprint.importing.printed_number import Interval, Number, parse
from loadprint.reading import bounds

SECTION, METRIC, RATIO = "section", "metric", "printed_ratio"
DECIMAL = re.compile(r"\s*[+-]?\d+,(\d{1,2}|\d{4,})\s*%?\s*")
AGREES, DIFFERS = "agrees", "does not agree"
WRITE = "write it as section,metric,SIDE,SIDE[,printed_ratio]"


@dataclass(frozen=True)
class PrintedRatio:
    """Ratio of a side to the reference: of the printed values, and of all values that round to them."""

    value: float | None
    span: Interval


@dataclass(frozen=True)
class PrintedRow:
    """One line: a cell and a ratio per side, None if missing; `verdict` on the printed ratio."""

    section: str
    metric: str
    cells: tuple[Number | None, ...]
    ratios: tuple[PrintedRatio | None, ...]
    printed: Number | None = None
    verdict: str = ""


@dataclass(frozen=True)
class Misprint:
    """A cell that is not a well-formed number; `low` and `high`: its possible values, if known."""

    section: str
    metric: str
    column: str
    text: str
    wrong: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PrintedTable:
    """A table as printed, with the ratios and verdicts computed from it."""

    name: str
    sides: tuple[str, ...]
    reference: str
    rows: tuple[PrintedRow, ...]
    misprints: tuple[Misprint, ...]
    judged: int
    agreeing: int
    notes: tuple[str, ...]

    @cached_property
    def misprint_numbers(self) -> dict[tuple[str, str, str], int]:
        """Number of the first misprint of each section, metric and column, from 1."""
        numbered = list(enumerate(self.misprints, start=1))
        return {(cell.section, cell.metric, cell.column): number for number, cell in reversed(numbered)}


def read(path: Path, reference: str | None = None) -> PrintedTable:
    """Read a table. Raises InputError with the line that cannot be used.

    The default `reference` is the side that most printed ratios agree with, else the first.
    """
    heads, lines = _lines(path)
    labels, sides = _columns(path, heads, lines)
    notes = []
    printed = [parse(line[heads.index(RATIO)]) if RATIO in heads else None for line in lines]
    if RATIO in heads and len(sides) > 2:
        notes.append(
            "printed ratios are not checked: with more than two sides it is unknown which sides they compare"
        )
        printed = [None] * len(lines)
    places = [heads.index(side) for side in sides]
    cells = [tuple(parse(line[place]) for place in places) for line in lines]
    if reference is not None and reference not in sides:
        raise InputError(
            f"--reference {reference}", "is not a column of the table", f"give one of {', '.join(sides)}"
        )
    base = sides.index(reference) if reference else _fitting(cells, printed)
    sections = [line[heads.index(SECTION)].strip() if SECTION in heads else "" for line in lines]
    rows = tuple(
        _row(section, " ".join(line[place].strip() for place in labels), values, ratio, base)
        for section, line, values, ratio in zip(sections, lines, cells, printed, strict=True)
    )
    verdicts = [row.verdict for row in rows if row.verdict]
    return PrintedTable(
        path.stem,
        sides,
        sides[base],
        rows,
        _misprints(rows, sides),
        len(verdicts),
        verdicts.count(AGREES),
        tuple(notes),
    )


def _lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """Column names and all non-empty lines, each as long as the first."""
    text = bounds.read_text(path, bounds.TABLE, "give a CSV file in UTF-8")
    bounds.require_table(path, text.count("\n"), 1)
    lines = bounds.read_cells(path, io.StringIO(text, newline=""))
    records = [(number, line) for number, line in enumerate(lines, start=1) if line]
    if not records:
        raise InputError(path, "is empty", WRITE)
    heads = [head.strip() for head in records[0][1]]
    if len(set(heads)) < len(heads) or not all(heads):
        raise InputError(
            path, "two columns have the same name, or one has none", "give each column a unique name"
        )
    for number, line in records[1:]:
        if len(line) != len(heads):
            what = f"has {len(line)} cells, the first line {len(heads)}"
            raise InputError(f"{path} record {number}", what, "quote numbers with commas")
    commas = [(number, cell) for number, line in records[1:] for cell in line if re.search(r"\d,\d", cell)]
    # of a single number the group of thousands can be misprinted
    if len(commas) > 1 and all(DECIMAL.fullmatch(cell) for _, cell in commas):
        what = f"`{commas[0][1]}`, as all numbers with a comma, has a decimal comma"
        raise InputError(f"{path} record {commas[0][0]}", what, "write decimals with a point, as 998.5")
    bounds.require_table(path, len(records), len(heads))
    if len(heads) > bounds.SIDES:
        what = f"has {len(heads):,} columns, more than the limit of {bounds.SIDES}"
        raise InputError(path, what, "divide the table")
    rows = [line for _, line in records[1:]]
    if not rows:
        raise InputError(path, "has no rows", WRITE)
    return heads, rows


def _columns(path: Path, heads: list[str], lines: list[list[str]]) -> tuple[list[int], tuple[str, ...]]:
    """Indexes of the columns that name a row, and the names of the columns with a side's numbers."""
    label = METRIC if METRIC in heads else next((head for head in heads if head not in (SECTION, RATIO)), "")
    labels, sides = [], []
    for place, head in enumerate(heads):
        if head in (SECTION, RATIO):
            continue
        numbers = [value for line in lines if (value := parse(line[place])) is not None]
        good = sum(number.value is not None for number in numbers)
        if head == label or 2 * good < len(numbers) or not numbers:
            labels.append(place)
        else:
            sides.append(head)
    if len(sides) < 2:
        raise InputError(path, f"has {len(sides)} columns of numbers, a comparison needs two", WRITE)
    return labels, tuple(sides)


def _fitting(cells: Sequence[tuple[Number | None, ...]], printed: Sequence[Number | None]) -> int:
    """The denominator of the printed ratios: the side that more of them agree with, else the first."""
    if not any(printed):
        return 0
    pairs = list(zip(cells, printed, strict=True))
    agreeing = [sum(_row("", "", *pair, base).verdict == AGREES for pair in pairs) for base in (0, 1)]
    return 1 if agreeing[1] > agreeing[0] else 0


def _row(
    section: str, metric: str, cells: tuple[Number | None, ...], printed: Number | None, base: int
) -> PrintedRow:
    """A line with its ratios; the printed ratio narrows the range of a misprinted cell."""
    if len(cells) == 2 and printed is not None and printed.span is not None:
        cells = _narrowed(cells, printed.span, base)
    ratios = tuple(None if place == base else _ratio(cell, cells[base]) for place, cell in enumerate(cells))
    verdict = ""
    ratio = next((ratio for ratio in ratios if ratio), None)
    if printed is not None and printed.span is not None and ratio is not None:
        verdict = AGREES if printed.span.common(ratio.span) else DIFFERS
    return PrintedRow(section, metric, cells, ratios, printed, verdict)


def _narrowed(cells: tuple[Number | None, ...], ratio: Interval, base: int) -> tuple[Number | None, ...]:
    """Cells with the possible values of a misprint, from its digits, the printed ratio, or both."""
    narrowed = list(cells)
    for place, cell in enumerate(cells):
        other = cells[1 - place]
        if cell is None or cell.value is not None or other is None or other.span is None:
            continue
        implied = other.span.over(ratio) if place == base else ratio.times(other.span)
        if implied is None:
            continue
        meant = _whole(implied.common(cell.span) if cell.span else implied)
        if meant is not None:
            narrowed[place] = replace(cell, span=cell.span or implied, meant=meant)
    return tuple(narrowed)


def _whole(span: Interval | None) -> Interval | None:
    """The integers within."""
    if span is None or math.ceil(span.low) > math.floor(span.high):
        return None
    return Interval(float(math.ceil(span.low)), float(math.floor(span.high)))


def _ratio(cell: Number | None, base: Number | None) -> PrintedRatio | None:
    if cell is None or base is None or cell.span is None or base.span is None:
        return None
    span = cell.span.over(base.span)
    if span is None:
        return None
    exact = cell.value / base.value if cell.value is not None and base.value else None
    return PrintedRatio(exact, span)


def _misprints(rows: Sequence[PrintedRow], sides: Sequence[str]) -> tuple[Misprint, ...]:
    misprints = []
    for row in rows:
        for column, cell in zip((*sides, RATIO), (*row.cells, row.printed), strict=True):
            if cell is not None and cell.wrong:
                low, high = (cell.meant.low, cell.meant.high) if cell.meant else (None, None)
                misprints.append(Misprint(row.section, row.metric, column, cell.text, cell.wrong, low, high))
    return tuple(misprints)
