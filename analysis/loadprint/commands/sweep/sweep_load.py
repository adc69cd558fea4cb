"""Pivot tables of mode equal-load: costs and latencies of each side at the same load.

Only sides that count the same operation share a table, because only these ran at the same rate.
"""

from __future__ import annotations

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import Shown, SweepCell, Swept
from loadprint.rendering.pivot import Pivot
from loadprint.tables.groups import of_group, transaction_types

SATURATED = "saturated"
CORES = cells.of_row("server_cpu_cores", "Server CPU", "process_server_cpu")
QUANTILES = {"p50": "median", "p95": "p95", "p99": "p99", "max": "max"}


def pivots(swept: Swept) -> tuple[tuple[Pivot, ...], tuple[str, ...]]:
    """One set of tables for each operation."""
    tables: list[Pivot] = []
    texts: list[str] = []
    for operation in dict.fromkeys(cell.operation for cell in swept.cells if cell.runs):
        group = [cell for cell in swept.cells if cell.operation == operation]
        tables += _of_operation(operation, group)
        texts += _rates(group)
    return tuple(tables), tuple(texts)


def _of_operation(operation: str, group: list[SweepCell]) -> list[Pivot]:
    short = operation.partition(" (")[0]
    by_place = {(_level(cell), _saturated(cell)): cell for cell in group}
    levels = [level for level in dict.fromkeys(map(_level, group)) if level != SATURATED]
    columns = tuple(dict.fromkeys(map(_saturated, group)))

    def pivot(shown: Shown, rows: list[str]) -> Pivot:
        body = cells.body(by_place, rows, columns, shown.of)
        return Pivot(shown.key, f"{shown.title}; {short}", shown.unit, "load", tuple(rows), columns, body)

    figures = (cells.THROUGHPUT, CORES, *cells.COSTS)
    tables = [pivot(shown, [*levels, SATURATED]) for shown in figures]
    kinds = transaction_types([run for cell in group for run in cell.runs])
    for kind in kinds:
        subject = "" if len(kinds) == 1 else f" of {kind}"
        for latency in of_group("latency_types"):
            row, quantile = latency.of(kind), latency.key.rpartition("_")[2]
            if title := QUANTILES.get(quantile):
                tables.append(pivot(cells.shown(row.key, f"Latency{subject}, {title}", row), levels))
    return tables


def _level(cell: SweepCell) -> str:
    fraction = cell.plan.fraction
    return SATURATED if fraction is None else f"{100 * fraction:g} %"


def _saturated(cell: SweepCell) -> str:
    return cell.plan.saturated or cell.name


def _rates(group: list[SweepCell]) -> list[str]:
    """The rates of the loads, and the sides that did not reach theirs."""
    texts = []
    drives = [run.run.meta.drive for cell in group for run in cell.runs]
    drive = next((drive for drive in drives if drive.maximum), None)
    if drive:
        texts.append(
            f"Loads are shares of {drive.maximum:,.0f} operations/s, the maximum of the slowest side, "
            f"{drive.slowest}."
        )
    for cell in group:
        late = [run.run.id for run in cell.runs if run.run.result.rate_held is False]
        if late:
            texts.append(
                f"{cell.name} did not reach its rate in {', '.join(late)}: its latencies include the backlog."
            )
    return texts
