"""Writes the sentences on the rows that explain a difference in latency, or in the server's CPU time.

The differences of all rows of a ledger add up to the difference of its total. A row is named if it certainly
differs; the rest is one sum, and what the ledger cannot explain is `unexplained`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadprint import numbers
from loadprint.metrics import cpu_groups, derived_cpu_time, derived_ledger
from loadprint.metrics.costs import unit_name
from loadprint.tables.table import Group, Row, Sentence, Table, Versus

NAMED = 5
LEAST = 0.02  # of the difference, for a row to be named
ROUNDING = 1e-6  # of a value, or of the row's unit


@dataclass(frozen=True)
class Ledger:
    """A ledger of the table: how the keys of its groups start, and those of its total and unexplained row."""

    id: str
    measure: str
    groups: str
    total: str
    unexplained: str


TIME = Ledger(
    "time-difference",
    "latency",
    "time_",
    f"time_{derived_ledger.LATENCY}_per_",
    f"time_{derived_ledger.UNEXPLAINED}_per_",
)
CPU = Ledger(
    "cpu-difference",
    "server CPU",
    f"{derived_cpu_time.PREFIX}server_",
    f"{derived_cpu_time.PREFIX}server_{derived_cpu_time.ALL}_per_",
    f"{derived_cpu_time.PREFIX}server_{cpu_groups.UNKNOWN}_per_",
)
LEDGERS = (TIME, CPU)


def ledger_difference(table: Table, side: int, ledger: Ledger) -> Sentence | None:
    """The sentence on a side; None if the total does not certainly differ, or one side lacks a row."""
    group = next((group for group in table.groups if group.key.startswith(ledger.groups)), None)
    whole = _row(group, ledger.total)
    if group is None or whole is None or not (_certain(whole.versus[side]) or _apart(table, whole, side)):
        return None
    rows = [row for row in group.rows if row.view != "usual" and not row.part and row is not whole]
    # what no side recorded is contained in another row
    rows = [row for row in rows if any(row.cells[place].value is not None for place in (side, table.base))]
    if any(None in (row.cells[side].value, row.cells[table.base].value) for row in (*rows, whole)):
        return None
    difference = _difference(table, whole, side)
    by_size = sorted(rows, key=lambda row: -abs(_difference(table, row, side)))
    single = whole.versus[side] is not None and not _certain(whole.versus[side])
    unexplained = _row(group, ledger.unexplained)
    named = [
        row
        for row in by_size
        if row is not unexplained
        and (single or _certain(row.versus[side]))
        and abs(_difference(table, row, side)) >= LEAST * abs(difference)
    ][:NAMED]
    others = [row for row in rows if row not in named and row is not unexplained]
    parts = _parts(table, side, whole, named, others, unexplained)
    name = table.sides[side].name
    work = unit_name(group.key.rpartition("_")[2])
    amount = f"{_signed(table, whole, side, _places(table, whole, side))} {whole.shown}"
    text = f"{name} against {table.reference}: {amount} of {ledger.measure} per {work}"
    text += f"{', by single values' if single else ''}: {', '.join(parts)}."
    return Sentence(ledger.id, text, tuple(row.key for row in (whole, *named)), name, "")


def _parts(  # noqa: PLR0913, PLR0917
    table: Table, side: int, whole: Row, named: list[Row], others: list[Row], unexplained: Row | None
) -> list[str]:
    """The terms of the sum as text."""
    places = _places(table, whole, side)
    # commas separate the terms
    parts = [f"{row.label.replace(',', '')} {_signed(table, row, side, places)}" for row in named]
    rest = [_difference(table, row, side) for row in others if _difference(table, row, side)]
    if rest:
        count = f"{len(rest)} {'more' if named else 'groups'}"
        parts.append(f"{count} {numbers.signed(sum(rest), whole.factor, places)}")
    left = _difference(table, unexplained, side) if unexplained else 0.0
    return [*parts, f"unexplained {numbers.signed(left, whole.factor, places) if left else 0}"]


def _places(table: Table, whole: Row, side: int) -> int:
    return numbers.decimals([_difference(table, whole, side) * whole.factor])


def _row(group: Group | None, start: str) -> Row | None:
    return next((row for row in group.rows if row.key.startswith(start)), None) if group else None


def _difference(table: Table, row: Row, side: int) -> float:
    """Difference of the means; one of rounding is 0."""
    value, base = row.cells[side].value or 0.0, row.cells[table.base].value or 0.0
    return 0.0 if math.isclose(value, base, rel_tol=ROUNDING, abs_tol=ROUNDING / row.factor) else value - base


def _signed(table: Table, row: Row, side: int, places: int) -> str:
    return numbers.signed(_difference(table, row, side), row.factor, places)


def _certain(versus: Versus | None) -> bool:
    """Whether the interval excludes "no effect"."""
    return versus is not None and versus.low is not None and versus.mark != "~"


def _apart(table: Table, row: Row, side: int) -> bool:
    """Without an interval: whether every repeat of a side is above, or below, all of the reference."""
    versus = row.versus[side]
    values, base = row.cells[side].measured, row.cells[table.base].measured
    if versus is None or versus.low is not None or not values or not base:
        return False
    return min(values) > max(base) or max(values) < min(base)
