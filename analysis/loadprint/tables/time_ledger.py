"""Builds the groups *Where time goes*: the parts of the latency of a unit of work, next to their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadprint.catalogue.files import Work
from loadprint.catalogue.formula import Formula, Name
from loadprint.catalogue.metric import View
from loadprint.metrics.gather import Measured
from loadprint.metrics.ledger_rows import (
    CLIENT_UNEXPLAINED,
    CLOSURE,
    LATENCY,
    NOT_RECORDED,
    OVERLAP,
    PARTS,
    ROWS,
    UNEXPLAINED,
    WAITING,
    key,
    ledger_metrics,
    name_of,
)
from loadprint.statistics.stats import t_interval
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import COSTS, Cell, Group, Row

TITLE = "Where time goes"
SHOWN = 0.01  # smallest share of a side's latency that is in the usual view
NOT_CLOSED = "this ledger does not close"
OPEN = f"{{:.0f}} % of the latency: {NOT_CLOSED}"
NEGATIVE = f"negative: what it is computed from does not fit together, {NOT_CLOSED}"
MISSED = f"{{:.0f}} % of the connection threads' time: {NOT_CLOSED}"
# of both sums, judged by their size
RESTS = {CLIENT_UNEXPLAINED: "at the client", UNEXPLAINED: "between the ends"}
NOT_CHECKED = "not checked: the sum {}: {}"


def time_ledger(builder: RowBuilder, works: Sequence[Work]) -> list[Group]:
    """One group for each unit of work, the first in the usual view; without states one row has the reason."""
    names = ("ledger.server", f"ledger.{WAITING}")
    if not any(run.quantities.get(name) for side in builder.sides for run in side for name in names):
        total = builder.row(replace(ledger_metrics(works[0])[0], formula=Formula(Name("ledger.server"))))
        return [_group(works[0], (replace(total, view="all"),))]
    groups = []
    for work in works:
        rows = _judged(builder.sides, builder.rows(ledger_metrics(work)))
        views = _views(rows, work) if work is works[0] else {}
        shown = tuple(replace(row, view=views.get(row.key, "all")) for row in rows)
        groups.append(_group(work, shown))
    return groups


def _group(work: Work, rows: tuple[Row, ...]) -> Group:
    return Group(f"time_{work.per}", f"{TITLE}, per {work.name}", rows, COSTS)


def _views(rows: Sequence[Row], work: Work) -> dict[str, View]:
    """Views by key of the usual rows: those with a noticeable share on any side; parts with their row.

    So are those that show that the ledger does not close, and the first, which has what is not checked.
    """
    total = rows[0]
    large = {
        row.key
        for row in rows
        if any(abs(_share(*parts) or 0.0) >= SHOWN for parts in zip(row.cells, total.cells, strict=True))
        or any(cell.unexplained is not None for cell in row.cells)
    }
    large |= {key(name, work) for name in (WAITING, *RESTS)}
    alone = {
        key(part, work)
        for part, (whole, _) in PARTS.items()
        if large.isdisjoint(key(name, work) for name in whole)
    }
    views: dict[str, View] = dict.fromkeys(large - alone, "measured")
    return views | {total.key: "always"}


def _share(cell: Cell, total: Cell) -> float | None:
    """Share of the side's latency; None if one is missing."""
    return cell.value / total.value if cell.value is not None and total.value else None


def _judged(sides: Sequence[Sequence[Measured]], rows: Sequence[Row]) -> list[Row]:
    """The rows with notes on each side: at the latency what is not checked, else how it does not close."""
    ledgers = [{name_of(row.key): row.cells[place] for row in rows} for place in range(len(sides))]
    judged = []
    for row in rows:
        name, cells = name_of(row.key), []
        for ledger, side in zip(ledgers, sides, strict=True):
            share, note = _open(name, ledger, side)
            notes = [note] if note else _unchecked(ledger) if name == LATENCY else []
            cell = ledger[name]
            cells.append(replace(cell, notes=(*cell.notes, *notes), unexplained=share))
        judged.append(replace(row, cells=tuple(cells)))
    return judged


def _open(name: str, cells: Mapping[str, Cell], side: Sequence[Measured]) -> tuple[float | None, str]:
    """The share by which a row shows that the ledger of one side does not close, and its note."""
    share = _share(cells[name], cells[LATENCY])
    if name in RESTS and share is not None and abs(share) > CLOSURE:
        return share, OPEN.format(100 * share)
    if name in ROWS and name not in {*RESTS, OVERLAP} and _is_negative(cells[name], cells[LATENCY]):
        return share, NEGATIVE
    # no other row depends on all states of the server's threads
    if name == NOT_RECORDED and cells[UNEXPLAINED].value is None and (missed := _missed(side)) > CLOSURE:
        return missed, MISSED.format(100 * missed)
    return None, ""


def _unchecked(cells: Mapping[str, Cell]) -> list[str]:
    """The sums that could not be checked, with the reasons."""
    places: dict[tuple[str, ...], list[str]] = {}
    for rest, place in RESTS.items():
        if cells[rest].value is None:
            places.setdefault(cells[rest].notes, []).append(place)
    return [NOT_CHECKED.format(" and ".join(of), "; ".join(reasons)) for reasons, of in places.items()]


def _missed(side: Sequence[Measured]) -> float:
    """Share of the time of the server's connection threads that is in no state."""
    missed, whole = (
        math.fsum(part.rate for run in side if (part := run.quantities.get(f"ledger.{name}")))
        for name in (NOT_RECORDED, "connections")
    )
    return missed / whole if whole > 0 else 0.0


def _is_negative(cell: Cell, total: Cell) -> bool:
    """Whether the value is noticeably below 0, and its interval, if it has one, excludes 0."""
    share = _share(cell, total)
    if share is None or share >= -SHOWN:
        return False
    high = t_interval(cell.measured).high
    return high is None or high < 0
