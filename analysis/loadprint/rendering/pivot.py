"""Defines pivot tables, plain values: one figure by two dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Pivot:
    """One figure: a cell per row and column, in `unit`; None if there is no value.

    `columns_differ`: the columns are different figures; `rows_differ`: the rows are.
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
    rows_differ: bool = False


@dataclass(frozen=True)
class PivotReport:
    """Facts, pivot tables and sentences under one heading; `crossovers` are those of crossover.py."""

    title: str
    facts: tuple[tuple[str, str], ...]
    pivots: tuple[Pivot, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())
    crossovers: tuple[Any, ...] = field(default=())
