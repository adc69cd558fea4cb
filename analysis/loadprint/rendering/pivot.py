"""Defines pivot tables, plain values: one figure by two dimensions; and writes reports of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadprint import numbers
from loadprint.rendering.printout import Block, Printout, as_json, renderers

NOTHING = "\u2013"


@dataclass(frozen=True)
class RowUnit:
    """The base unit of a row's values, the unit in which texts show them, and what they are multiplied by."""

    unit: str
    shown: str
    factor: float


@dataclass(frozen=True)
class Pivot:
    """One figure: a cell per row and column, in `unit`; None if there is no value.

    `columns_differ`: the columns are different figures. With `units` the rows are, each in its unit.
    """

    key: str
    title: str
    unit: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    note: str = ""
    columns_differ: bool = False
    units: tuple[RowUnit, ...] = ()


@dataclass(frozen=True)
class PivotReport:
    """Facts, pivot tables and sentences under one heading; `crossovers` are those of crossover.py."""

    title: str
    facts: tuple[tuple[str, str], ...]
    pivots: tuple[Pivot, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())
    crossovers: tuple[Any, ...] = field(default=())


def _printout(report: PivotReport) -> Printout:
    blocks = list(map(written, report.pivots))
    return Printout(report.title, report.facts, report.warnings, blocks, report.sentences)


def _lines(report: PivotReport) -> Iterator[Sequence[object]]:
    """One line per cell; the value may be empty."""
    yield "pivot", "unit", "row", "column", "value"
    for pivot in report.pivots:
        units = [own.unit for own in pivot.units] or [pivot.unit] * len(pivot.rows)
        for row, unit, cells in zip(pivot.rows, units, pivot.cells, strict=True):
            for column, value in zip(pivot.columns, cells, strict=True):
                yield pivot.key, unit, row, column, value


RENDERERS = renderers(_printout, _lines, lambda report: as_json(report, format_version=1))


def written(pivot: Pivot) -> Block:
    """The table as texts, with its unit in the title."""
    title = f"{pivot.title} ({pivot.unit})" if pivot.unit else pivot.title
    rows = list(zip(pivot.rows, pivot.cells, strict=True))
    if pivot.units:
        rows = [
            (f"{name} {own.shown}".strip(), tuple(value and value * own.factor for value in row))
            for (name, row), own in zip(rows, pivot.units, strict=True)
        ]
    columns = list(zip(*pivot.cells, strict=True))
    values = [value for row in pivot.cells for value in row]
    places = [_places(column if pivot.columns_differ else values) for column in columns]
    body = []
    for name, row in rows:
        own = [_places(row)] * len(row) if pivot.units else places
        cells = zip(row, own, strict=True)
        body.append((name, *(NOTHING if value is None else numbers.number(value, at) for value, at in cells)))
    return Block(title, (pivot.corner, *pivot.columns), tuple(body), left=0)


def _places(values: Sequence[float | None]) -> int:
    """Decimals that values share; whole numbers have none."""
    given = [value for value in values if value is not None]
    return 0 if all(value == round(value) for value in given) else numbers.decimals(given)
