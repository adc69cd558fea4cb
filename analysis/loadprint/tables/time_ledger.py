"""Builds the groups *Where time goes*: the parts of the latency of a unit of work, next to their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.metrics.costs import Denominator
from loadprint.metrics.derived_ledger import CLOSURE, PARTS, UNEXPLAINED, key, ledger_metrics
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
        rows = builder.rows(ledger_metrics(work))
        shown = _shown(rows, work) if work is works[0] else set()
        rows = tuple(replace(row, view="measured" if row.key in shown else "all") for row in rows)
        unexplained = key(UNEXPLAINED, work)
        rows = tuple(_judged(row, rows[0]) if row.key == unexplained else row for row in rows)
        listed.append(_group(work, rows, section))
    return listed


def _group(work: Denominator, rows: tuple[Row, ...], section: str) -> Group:
    return Group(f"time_{work.per}", f"{TITLE}, per {work.name}", rows, section)


def _shown(rows: Sequence[Row], work: Denominator) -> set[str]:
    """Keys of the rows in the usual view: those with a noticeable share on any side; parts with their row."""
    total = rows[0]
    large = {
        row.key
        for row in rows
        if any(abs(_share(*each) or 0.0) >= SHOWN for each in zip(row.cells, total.cells, strict=True))
    }
    large |= {total.key, key(UNEXPLAINED, work)}
    alone = {
        key(part, work)
        for part, (whole, _) in PARTS.items()
        if large.isdisjoint(key(name, work) for name in whole)
    }
    return large - alone


def _share(cell: Cell, total: Cell) -> float | None:
    """Share of the side's latency; None if one is missing."""
    return cell.value / total.value if cell.value is not None and total.value else None


def _judged(row: Row, total: Row) -> Row:
    """The row of what is not explained, with a note where it is too much."""
    shares = [_share(*each) for each in zip(row.cells, total.cells, strict=True)]
    cells = tuple(
        cell
        if share is None or abs(share) <= CLOSURE
        else replace(cell, notes=(*cell.notes, OPEN.format(100 * share)))
        for cell, share in zip(row.cells, shares, strict=True)
    )
    return replace(row, cells=cells)
