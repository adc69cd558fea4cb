"""The command `sweep`: pivot tables of an execution with a matrix of sides, or of mode equal-load.

Rows are connections (or shares of the load), columns the other dimensions. Latency is shown for open-loop
runs only: in a closed loop it is connections divided by throughput, not a separate result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from loadprint.commands.sweep import cells, crossover, merge_executions, sweep_load, sweep_text
from loadprint.commands.sweep.cells import Shown, SweepCell, Swept
from loadprint.commands.sweep.crossover import Crossover
from loadprint.errors import InputError
from loadprint.rendering.pivot import Pivot, PivotReport


def sweep(path: Path, base: str | None = None, *others: Path) -> PivotReport:
    """Pivot tables of an execution; `base` is the cell that relative throughput refers to.

    With `others`, executions of the same campaign on other servers, the server is one more dimension. Raises
    InputError where the execution has no matrix or there is no such cell.
    """
    return of(merge_executions.read([path, *others]), base)


def of(swept: Swept, base: str | None = None) -> PivotReport:
    """Pivot tables of an execution that is already read. Raises InputError as `sweep` does."""
    base = base or swept.execution.reference
    names = [cell.name for cell in swept.cells]
    if base not in names:
        raise InputError(base, "is not one of its sides", f"name one of {', '.join(names)}")
    crossovers: tuple[Crossover, ...] = ()
    if swept.execution.campaign.mode == "equal-load":
        pivots, sentences = sweep_load.pivots(swept)
    else:
        pivots, sentences, crossovers = _by_matrix(swept, base)
    return PivotReport(
        sweep_text.title(swept),
        sweep_text.facts(swept),
        pivots,
        (*sentences, *crossover.sentences(crossovers)),
        sweep_text.warnings(swept),
        crossovers,
    )


def dimensions(swept: Swept) -> tuple[str, Callable[[SweepCell], str], Callable[[SweepCell], str]]:
    """The dimension of the rows, and the functions from a cell to its row and column. Raises InputError."""
    cells_of = [_cell(cell) for cell in swept.cells]
    keys = list(dict.fromkeys(key for cell in cells_of for key in cell))
    varying = [key for key in keys if len({str(cell.get(key)) for cell in cells_of}) > 1]
    if not varying or all(not cell.plan.cell for cell in swept.cells):
        raise InputError(
            swept.path, "has no matrix of sides", f"`loadprint compare {swept.path}` compares its sides"
        )
    rows = "threads" if "threads" in varying else varying[0]
    others = [key for key in varying if key != rows]

    def row(cell: SweepCell) -> str:
        return str(_cell(cell).get(rows))

    def name(cell: SweepCell, keys: Sequence[str]) -> str:
        values = _cell(cell)
        joined = "-".join(str(values[key]) for key in keys if values.get(key) is not None)
        return joined or cell.plan.workload or cell.name

    def short(cell: SweepCell) -> str:
        """Without the side, which the values of its matrix name."""
        matrix = [key for key in others if key != "side"]
        return name(cell, matrix if any(key in cell.plan.cell for key in matrix) else others)

    if len({(row(cell), short(cell)) for cell in swept.cells}) == len(swept.cells):
        return rows, row, short
    return rows, row, lambda cell: name(cell, others)


def _cell(cell: SweepCell) -> dict[str, Any]:
    return {"side": cell.plan.of, "threads": cell.plan.threads, **cell.plan.cell}


def _by_matrix(swept: Swept, base: str) -> tuple[tuple[Pivot, ...], tuple[str, ...], tuple[Crossover, ...]]:
    corner, row, column = dimensions(swept)
    corner = "connections" if corner == "threads" else corner
    grid = {(row(cell), column(cell)): cell for cell in swept.cells}
    rows = list(dict.fromkeys(row(cell) for cell in swept.cells))
    if all(name.isdigit() for name in rows):
        rows.sort(key=int)
    columns = list(dict.fromkeys(column(cell) for cell in swept.cells))
    whole = next(cell for cell in swept.cells if cell.name == base)
    divisor = whole.mean(cells.operations)

    def pivot(key: str, title: str, unit: str, value: Callable[[SweepCell], float | None]) -> Pivot:
        body = cells.body(grid, rows, columns, value)
        return Pivot(key, title, unit, corner, tuple(rows), tuple(columns), body)

    def shown(column: Shown) -> Pivot:
        return pivot(column.key, column.title, column.unit, column.of)

    def relative(cell: SweepCell) -> float | None:
        mean = cell.mean(cells.operations)
        return mean / divisor if mean is not None and divisor and cell.operation == whole.operation else None

    def speed_up(cell: SweepCell) -> float | None:
        first = grid.get((rows[0], column(cell)))
        least, mean = first.mean(cells.operations) if first else None, cell.mean(cells.operations)
        return mean / least if mean is not None and least else None

    pivots = [
        shown(cells.THROUGHPUT),
        pivot("relative", f"Throughput relative to {base}", "", relative),
    ]
    best: tuple[str, ...] = ()
    crossed: tuple[Crossover, ...] = ()
    if corner == "connections":
        few = f"{rows[0]} connection{'' if rows[0] == '1' else 's'}"
        pivots.append(pivot("speed_up", f"Speed-up against {few}", "", speed_up))
        best_counts, best = sweep_text.best(swept, grid, rows, columns)
        pivots.append(best_counts)
        crossed = crossover.crossovers(grid, rows, columns, column(whole))
        if crossed:
            pivots.append(_to_base(crossed, column(whole)))
    pivots += map(shown, (*cells.COSTS, *cells.CPU_TIMES))
    return tuple(pivots), best, crossed


def _to_base(crossed: tuple[Crossover, ...], base: str) -> Pivot:
    """Throughput of every column divided by the base's, at the same number of connections."""
    rows = tuple(dict.fromkeys(at.row for pair in crossed for at in pair.at))
    ratios = {(at.row, pair.column): at.ratio for pair in crossed for at in pair.at}
    columns = tuple(pair.column for pair in crossed)
    body = tuple(tuple(ratios.get((row, column)) for column in columns) for row in rows)
    return Pivot("beside", f"Throughput / that of {base}", "", "connections", rows, columns, body)
