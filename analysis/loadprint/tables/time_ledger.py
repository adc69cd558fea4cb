"""Builds the groups *Where time goes*: the parts of the latency of a unit of work, next to their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.metrics.costs import Denominator
from loadprint.metrics.derived_ledger import CLOSURE, UNEXPLAINED, ledger_metrics
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import Cell, Group, Row

TITLE = "Where time goes"
SHOWN = 0.01  # smallest share of a side's latency that is in the usual view
OPEN = "{:.0f} % of the latency: this ledger does not close"


def time_ledger(builder: RowBuilder, works: Sequence[Denominator], section: str) -> list[Group]:
    """One group for each unit of work, the first in the usual view; without states one row has the reason."""
    if not any(run.quantities.get("ledger.server") for side in builder.sides for run in side):
        total = replace(builder.row(ledger_metrics(works[0])[0]), view="all")
        return [_group(works[0], (total,), section)]
    listed = []
    for work in works:
        usual = work is works[0]
        total, *parts = builder.rows(ledger_metrics(work))
        rows = (
            replace(total, view="measured" if usual else "all"),
            *(_in_view(row, total, usual=usual) for row in parts),
        )
        listed.append(_group(work, rows, section))
    return listed


def _group(work: Denominator, rows: tuple[Row, ...], section: str) -> Group:
    return Group(f"time_{work.per}", f"{TITLE}, per {work.name}", rows, section)


def _in_view(row: Row, total: Row, *, usual: bool) -> Row:
    """The row in its view; what is not explained is marked where it is too much."""
    pairs = list(zip(row.cells, total.cells, strict=True))
    large = any(abs(_share(cell, of) or 0.0) >= SHOWN for cell, of in pairs)
    if row.key.startswith(f"time_{UNEXPLAINED}_"):
        row = replace(row, cells=tuple(_judged(cell, of) for cell, of in pairs))
        large = True
    return replace(row, view="measured" if usual and large else "all")


def _share(cell: Cell, total: Cell) -> float | None:
    """Share of the side's latency; None if one is missing."""
    return cell.value / total.value if cell.value is not None and total.value else None


def _judged(cell: Cell, total: Cell) -> Cell:
    share = _share(cell, total)
    if share is None or abs(share) <= CLOSURE:
        return cell
    return replace(cell, notes=(*cell.notes, OPEN.format(100 * share)))
