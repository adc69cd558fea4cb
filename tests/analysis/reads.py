"""What the analysis computes from the recordings of a test."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.tables.table import Table

T = TypeVar("T")


def measured(run: Path) -> Measured:
    """The quantities of a run, with its window."""
    return gather(open_run(run), Store())


def quantities(run: Path) -> Quantities:
    """The quantities of a run."""
    return measured(run).quantities


def table_of(*operands: Path | str, reference: str | None = None) -> Table:
    """The whole comparison of some sides; the command applies views to it."""
    sides, declared = resolve([str(operand) for operand in operands])
    names = [side.name for side in sides]
    return compare(sides, reference or (declared if declared in names else None))


def known(value: T | None) -> T:
    """The value, which must not be None."""
    assert value is not None
    return value
