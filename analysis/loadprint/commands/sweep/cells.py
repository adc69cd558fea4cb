"""The cells of a sweep: each side of an execution with its repeats and few quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.judging import client
from loadprint.metrics.derived import SERVER_SWITCHES
from loadprint.metrics.derived_cpu import KERNEL
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.sides import read_execution

MICRO = 1e6
Figure = Callable[[Measured], float | None]


@dataclass(frozen=True)
class Cell:
    """One side of an execution; `plan` is its entry in execution.json."""

    name: str
    plan: dict[str, Any]
    runs: tuple[Measured, ...]

    @property
    def operation(self) -> str:
        """The name of the counted operation."""
        return self.runs[0].operation if self.runs else str(self.plan.get("operation") or "event")

    def mean(self, figure: Figure) -> float | None:
        """Mean of a figure over the repeats that have it."""
        known = [value for run in self.runs if (value := figure(run)) is not None]
        return math.fsum(known) / len(known) if known else None

    @property
    def client_bound(self) -> bool:
        """Whether the load generator was the limit."""
        return bool(self.runs) and bool(client.client_bound(self.name, self.runs))


@dataclass(frozen=True)
class Swept:
    """An execution's cells in the plan's order; `missing` lists runs that are not complete, with reasons.

    `notes` are warnings on executions that were merged.
    """

    path: Path
    execution: dict[str, Any]
    cells: tuple[Cell, ...]
    missing: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> list[Measured]:
        """The runs of all cells."""
        return [run for cell in self.cells for run in cell.runs]

    @property
    def reference(self) -> str:
        """Name of the reference cell."""
        return str(self.execution.get("reference"))


def read(path: Path) -> Swept:
    """Read an execution. Raises InputError where there is none, or none of its runs is complete."""
    execution, sides = read_execution(path)
    store = Store()
    cells: list[Cell] = []
    missing: list[tuple[str, str]] = []
    for side in sides:
        missing += side.missing
        runs = tuple(gather(run, store, brief=True) for run in side.runs)
        cells.append(Cell(side.name, execution["sides"][side.name] or {}, runs))
    return Swept(path, execution, tuple(cells), tuple(missing))


def rate(name: str) -> Figure:
    """Figure: one quantity."""

    def figure(run: Measured) -> float | None:
        quantity = run.quantities.get(name)
        return None if quantity is None else quantity.rate

    return figure


def per_operation(*names: str) -> Figure:
    """Figure: the sum of some quantities per operation."""

    def figure(run: Measured) -> float | None:
        quantities = [run.quantities.get(name) for name in names]
        events = run.quantities.get("load.events")
        if any(each is None for each in quantities) or events is None or events.rate <= 0:
            return None
        return math.fsum(each.rate for each in quantities if each) / events.rate

    return figure


def share(side: str, *states: str) -> Figure:
    """Figure: the percentage of a CPU set's time in some states."""

    def figure(run: Measured) -> float | None:
        times = [run.quantities.get(f"cpu.{side}.{name}") for name in ("cores", *states)]
        known = [each.rate for each in times if each]
        if len(known) < len(times) or not known[0]:
            return None
        return 100 * math.fsum(known[1:]) / known[0]

    return figure


operations = rate("load.events")
server_cpu = per_operation("process.server.utime", "process.server.stime")
load_cpu = per_operation("process.load.utime", "process.load.stime")
switches = per_operation(*SERVER_SWITCHES)


@dataclass(frozen=True)
class Shown:
    """A figure of a run and its presentation: multiplied by `factor`, in `unit`."""

    key: str
    title: str
    unit: str
    figure: Figure
    factor: float = 1.0

    def of(self, cell: Cell) -> float | None:
        """Mean over the repeats of a cell."""
        mean = cell.mean(self.figure)
        return None if mean is None else mean * self.factor


THROUGHPUT = Shown("throughput", "Throughput, operations", "/s", operations)
COSTS = (
    Shown("server_cpu", "Server CPU per operation", "µs", server_cpu, MICRO),
    Shown("load_cpu", "Load CPU per operation", "µs", load_cpu, MICRO),
    Shown("switches", "Context switches of the server's threads per operation", "", switches),
)
CPU_TIMES = tuple(
    Shown(f"cpu_{side}_{name}", f"CPUs of the {side}, {title}", "%", share(side, *states))
    for side in ("server", "load")
    for name, title, states in (
        ("user", "user", ("user", "nice")),
        ("system", "system and interrupts", KERNEL),
        ("iowait", "iowait", ("iowait",)),
    )
)


def body(
    grid: Mapping[tuple[str, str], Cell],
    rows: Sequence[str],
    columns: Sequence[str],
    value: Callable[[Cell], float | None],
) -> tuple[tuple[float | None, ...], ...]:
    """Values of a pivot table; None where there is no cell."""
    return tuple(
        tuple(value(grid[row, column]) if (row, column) in grid else None for column in columns)
        for row in rows
    )
