"""What the analysis computes from the recordings of a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from loadprint.catalogue.formula import Formula
from loadprint.catalogue.metric import Metric
from loadprint.commands.operands import resolve
from loadprint.commands.report.collect import collect
from loadprint.comparison.compare_sides import compare
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run, open_run
from loadprint.reading.run_documents import LoadResult, RunMeta, ServerRecord
from loadprint.rendering.report_data import ReportPage
from loadprint.tables.table import Table
from recordings import Host, make_execution

T = TypeVar("T")


def measured(run: Path) -> Measured:
    """The quantities of a run, with its window."""
    return gather(open_run(run), Store(), charted=True)


def quantities(run: Path) -> Quantities:
    """The quantities of a run."""
    return measured(run).quantities


@cache
def unchanged(run: Path) -> Quantities:
    """The quantities of a run that no test changes, read once."""
    return quantities(run)


def repeat_of(
    values: Mapping[str, float] | Quantities, name: str = "a", server: Mapping[str, Any] | None = None
) -> Measured:
    """A run that is not on disk, with these quantities only."""
    quantities = values if isinstance(values, Quantities) else Quantities()
    if not isinstance(values, Quantities):
        for key, value in values.items():
            quantities.put(key, value)
    run = Run(Path(name), RunMeta(), LoadResult(), ServerRecord.model_validate(server or {}), {})
    return Measured(run, quantities, None, None, None, np.empty(0))


def table_of(*operands: Path | str, reference: str | None = None) -> Table:
    """The whole comparison of some sides; the command applies views to it."""
    sides, declared = resolve([str(operand) for operand in operands])
    names = [side.name for side in sides]
    return compare(sides, reference or (declared if declared in names else None))


def report_of(*operands: Path | str) -> ReportPage:
    """What a report of some sides contains, before it is a page."""
    return collect(*resolve([str(operand) for operand in operands], minimum=1))


def compared(path: Path, **sides: Sequence[Host]) -> Table:
    """Make an execution of these sides, and compare them with the first one."""
    return table_of(make_execution(path, sides, next(iter(sides))))


def known(value: T | None) -> T:
    """The value, which must not be None."""
    assert value is not None
    return value


def row_of(key: str, formula: str = "q") -> Metric:
    """A row without a unit."""
    return Metric(key, key, "", Formula.parse(formula))
