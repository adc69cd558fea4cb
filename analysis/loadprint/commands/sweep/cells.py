"""The cells of a sweep: each side of an execution with its repeats and few quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from loadprint.catalogue.metric import Metric
from loadprint.judging import void
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.run_documents import ExecutionPlan, PlannedSide
from loadprint.reading.sides import read_execution
from loadprint.statistics import stats
from loadprint.tables.rows import evaluate
from loadprint.tables.run_metrics import metrics

Figure = Callable[[Measured], float | None]


@dataclass(frozen=True)
class SweepCell:
    """One side of an execution; `plan` is its entry in execution.json."""

    name: str
    plan: PlannedSide
    runs: tuple[Measured, ...]

    @property
    def operation(self) -> str:
        """The name of the counted operation."""
        return self.runs[0].operation if self.runs else self.plan.operation or "event"

    def mean(self, figure: Figure) -> float | None:
        """Mean of a figure over the repeats that have it."""
        return stats.mean(map(figure, self.runs))

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why no sentence may compare the cell: client-bound, never settled."""
        return tuple(word for word, _ in void.reasons(self.name, self.runs, ())) if self.runs else ()


@dataclass(frozen=True)
class Swept:
    """An execution's cells in the plan's order; `missing` lists runs that are not complete, with reasons.

    `notes` are warnings on executions that were merged.
    """

    path: Path
    execution: ExecutionPlan
    cells: tuple[SweepCell, ...]
    missing: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> list[Measured]:
        """The runs of all cells."""
        return [run for cell in self.cells for run in cell.runs]


def read(path: Path) -> Swept:
    """Read an execution. Raises InputError where there is none, or none of its runs is complete."""
    execution, sides = read_execution(path)
    store = Store()
    cells: list[SweepCell] = []
    missing: list[tuple[str, str]] = []
    for side in sides:
        missing += side.missing
        runs = tuple(gather(run, store, brief=True) for run in side.runs)
        cells.append(SweepCell(side.name, execution.sides[side.name], runs))
    return Swept(path, execution, tuple(cells), tuple(missing))


def row(key: str) -> Figure:
    """Figure: the value of a row of the catalogue."""
    return lambda run: evaluate(metrics()[key], run)[0]


operations = row("operations")


@dataclass(frozen=True)
class Shown:
    """A figure of a run and its presentation: multiplied by `factor`, in `unit`."""

    key: str
    title: str
    unit: str
    figure: Figure
    factor: float = 1.0

    def of(self, cell: SweepCell) -> float | None:
        """Mean over the repeats of a cell."""
        mean = cell.mean(self.figure)
        return None if mean is None else mean * self.factor


def shown(key: str, title: str, *rows: Metric) -> Shown:
    """A row in its unit, or the sum of some."""

    def figure(run: Measured) -> float | None:
        measured = [value for row in rows if (value := evaluate(row, run)[0]) is not None]
        return math.fsum(measured) if len(measured) == len(rows) else None

    return Shown(key, title, rows[0].shown, figure, rows[0].factor)


def of_row(key: str, title: str, *row_keys: str) -> Shown:
    """A row of the catalogue, or the sum of some."""
    return shown(key, title, *(metrics()[key] for key in row_keys))


THROUGHPUT = of_row("throughput", "Throughput, operations", "operations")
COSTS = (
    of_row("server_cpu", "Server CPU per operation", "server_cpu_per_operation"),
    of_row("load_cpu", "Load CPU per operation", "load_cpu_per_operation"),
    of_row("switches", "Context switches of the server's threads per operation", "switches_per_operation"),
)
CPU_TIMES = tuple(
    of_row(f"cpu_{side}_{name}", f"CPUs of the {side}, {title}", *(f"cpu_{side}_{state}" for state in states))
    for side in ("server", "load")
    for name, title, states in (
        ("user", "user", ("user", "nice")),
        ("system", "system and interrupts", ("kernel",)),
        ("iowait", "iowait", ("iowait",)),
    )
)


def body(
    grid: Mapping[tuple[str, str], SweepCell],
    rows: Sequence[str],
    columns: Sequence[str],
    value: Callable[[SweepCell], float | None],
) -> tuple[tuple[float | None, ...], ...]:
    """Values of a pivot table; None where there is no cell."""
    return tuple(
        tuple(value(grid[row, column]) if (row, column) in grid else None for column in columns)
        for row in rows
    )
