"""Points of an execution with a matrix over threads: a column per other dimension, a point per run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from loadprint.commands.sweep import cells, sweep_pivots, sweep_text
from loadprint.commands.sweep.cells import Cell, Swept
from loadprint.commands.usl.usl_columns import Column, Points
from loadprint.errors import InputError

FIX = "give an execution of a campaign with a matrix over threads, such as lookup-scaling"


def read(path: Path) -> Points:
    """Read an execution. Raises InputError where its sides do not differ in threads."""
    return of(cells.read(path))


def of(swept: Swept) -> Points:
    """Points of an execution that is already read. Raises InputError as `read` does."""
    path, swept = swept.path, _saturated(swept)
    corner, row, column = sweep_pivots.dimensions(swept)
    if corner != "threads":
        raise InputError(path, "its sides do not differ in threads", FIX)
    names = dict.fromkeys(column(cell) for cell in swept.cells)
    columns = [_column(name, [cell for cell in swept.cells if column(cell) == name], row) for name in names]
    columns = [each for each in columns if each.n]
    if not columns:
        raise InputError(path, "none of its runs counted operations", FIX)
    return Points(path, sweep_text.title(swept), "threads", tuple(columns), sweep_text.facts(swept))


def _saturated(swept: Swept) -> Swept:
    """Without the cells that ran at a fixed rate, whose throughput is that rate."""
    free = tuple(cell for cell in swept.cells if cell.plan.get("fraction") is None)
    return Swept(swept.path, swept.execution, free, swept.missing)


def _column(name: str, of: list[Cell], row: Callable[[Cell], str]) -> Column:
    n, x, by_n, bound = [], [], {}, []
    for cell in of:
        threads = row(cell)
        if not threads.isdigit():
            raise InputError(f"{name}: threads {threads}", "is not a number", FIX)
        rates = [rate for run in cell.runs if (rate := cells.operations(run)) is not None]
        if not rates:
            continue
        n += [float(threads)] * len(rates)
        x += rates
        by_n[float(threads)] = cell
        if cell.client_bound:
            bound.append(threads)
    note = f"client-bound at N = {', '.join(bound)}: the load generator was the limit, not the server"
    operation = of[0].operation.partition(" (")[0]
    return Column(name, f"{operation}s/s", tuple(n), tuple(x), by_n, (note,) if bound else ())
