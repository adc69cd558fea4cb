"""Throughputs by concurrency as plain values, column by column: the input of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadprint.commands.sweep.cells import Cell


@dataclass(frozen=True)
class Column:
    """One curve: concurrencies and throughputs (`unit`), repeats as separate points.

    `cells` are the measurements of an execution at each N; `notes` are remarks on the points.
    """

    name: str
    unit: str
    n: tuple[float, ...]
    x: tuple[float, ...]
    cells: Mapping[float, Cell] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Points:
    """All columns of one source; `concurrency` is the name of N."""

    source: Path
    title: str
    concurrency: str
    columns: tuple[Column, ...]
    facts: tuple[tuple[str, str], ...] = ()
