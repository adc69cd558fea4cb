"""Builds the groups *Where time goes*: the parts of the latency of a unit of work, next to their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.catalogue.files import Work
from loadprint.catalogue.formula import Formula, Name
from loadprint.metrics.ledger_rows import (
    CLIENT_UNEXPLAINED,
    CLOSURE,
    LATENCY,
    OVERLAP,
    PARTS,
    ROWS,
    UNEXPLAINED,
    WAITING,
    key,
    ledger_metrics,
)
from loadprint.statistics.stats import t_interval
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import Cell, Group, Row

TITLE = "Where time goes"
SHOWN = 0.01  # smallest share of a side's latency that is in the usual view
OPEN = "{:.0f} % of the latency: this ledger does not close"
NEGATIVE = "negative: what it is computed from does not fit together, this ledger does not close"
MAY_BE_LARGE = (CLIENT_UNEXPLAINED, UNEXPLAINED)  # and are judged by their size


def time_ledger(builder: RowBuilder, works: Sequence[Work], section: str) -> list[Group]:
    """One group for each unit of work, the first in the usual view; without states one row has the reason."""
    known = ("ledger.server", f"ledger.{WAITING}")
    if not any(run.quantities.get(name) for side in builder.sides for run in side for name in known):
        total = builder.row(replace(ledger_metrics(works[0])[0], formula=Formula(Name("ledger.server"))))
        return [_group(works[0], (replace(total, view="all"),), section)]
    listed = []
    for work in works:
        rows = builder.rows(ledger_metrics(work))
        shown = _shown(rows, work) if work is works[0] else set()
        rows = tuple(
            replace(_judged(row, rows[0], work), view="measured" if row.key in shown else "all")
            for row in rows
        )
        listed.append(_group(work, rows, section))
    return listed


def _group(work: Work, rows: tuple[Row, ...], section: str) -> Group:
    return Group(f"time_{work.per}", f"{TITLE}, per {work.name}", rows, section)


def _shown(rows: Sequence[Row], work: Work) -> set[str]:
    """Keys of the rows in the usual view: those with a noticeable share on any side; parts with their row."""
    total = rows[0]
    large = {
        row.key
        for row in rows
        if any(abs(_share(*each) or 0.0) >= SHOWN for each in zip(row.cells, total.cells, strict=True))
    }
    large |= {key(name, work) for name in (LATENCY, WAITING, *MAY_BE_LARGE)}
    alone = {
        key(part, work)
        for part, (whole, _) in PARTS.items()
        if large.isdisjoint(key(name, work) for name in whole)
    }
    return large - alone


def _share(cell: Cell, total: Cell) -> float | None:
    """Share of the side's latency; None if one is missing."""
    return cell.value / total.value if cell.value is not None and total.value else None


def _judged(row: Row, total: Row, work: Work) -> Row:
    """The row with a note on each side where it shows that the ledger does not close."""
    size = row.key in {key(name, work) for name in MAY_BE_LARGE}
    if not size and row.key not in {key(name, work) for name in ROWS if name != OVERLAP}:
        return row
    cells = []
    for cell, whole in zip(row.cells, total.cells, strict=True):
        share, note = _share(cell, whole), ""
        if size and share is not None and abs(share) > CLOSURE:
            note = OPEN.format(100 * share)
        elif not size and _is_negative(cell, whole):
            note = NEGATIVE
        cells.append(replace(cell, notes=(*cell.notes, note), unexplained=share) if note else cell)
    return replace(row, cells=tuple(cells))


def _is_negative(cell: Cell, total: Cell) -> bool:
    """Whether the value is noticeably below 0, and its interval, if it has one, excludes 0."""
    share, high = _share(cell, total) or 0.0, t_interval(cell.measured).high
    return share < -SHOWN and (high is None or high < 0)
