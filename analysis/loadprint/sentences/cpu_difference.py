"""Writes the sentence on the groups of code that explain a difference in the server's CPU time.

The differences of all groups add up to the difference in /proc. A group is named if it certainly differs; the
rest is one sum, and code in no group is `unexplained`.
"""

from __future__ import annotations

from loadprint import numbers
from loadprint.metrics.costs import unit_name
from loadprint.tables.table import Group, Row, Sentence, Table, Versus

NAMED = 5
LEAST = 0.02  # of the difference, for a group to be named
GROUPS, ALL, UNKNOWN = "cputime_server_", "_all_per_", "_unknown_per_"


def cpu_difference(table: Table, side: int) -> Sentence | None:
    """The sentence on a side; None if its CPU time does not certainly differ, or no stacks were sampled."""
    group = next((group for group in table.groups if group.key.startswith(GROUPS)), None)
    whole = _row(group, ALL)
    if group is None or whole is None or not (_certain(whole.versus[side]) or _apart(table, whole, side)):
        return None
    rows = [row for row in group.rows if row.view != "usual" and row is not whole]
    if any(None in (row.cells[side].value, row.cells[table.base].value) for row in rows):
        return None
    difference = _difference(table, whole, side)
    by_size = sorted(rows, key=lambda row: -abs(_difference(table, row, side)))
    single = whole.versus[side] is not None and not _certain(whole.versus[side])
    named = [
        row
        for row in by_size
        if UNKNOWN not in row.key
        and (single or _certain(row.versus[side]))
        and abs(_difference(table, row, side)) >= LEAST * abs(difference)
    ][:NAMED]
    unknown = _row(group, UNKNOWN)
    rest = [row for row in rows if row not in named and row is not unknown and _difference(table, row, side)]
    places = numbers.decimals([difference * whole.factor])
    parts = [f"{row.label} {_signed(table, row, side, places)}" for row in named]
    if rest:
        total = sum(_difference(table, row, side) for row in rest)
        count = f"{len(rest)} {'more' if named else 'groups'}"
        parts.append(f"{count} {numbers.signed(total, whole.factor, places)}")
    parts.append(f"unexplained {_signed(table, unknown, side, places) if unknown else 0}")
    name = table.sides[side].name
    work = unit_name(group.key.rpartition("_")[2])
    amount = f"{_signed(table, whole, side, places)} {whole.shown}"
    text = f"{name} against {table.reference}: {amount} of server CPU per {work}"
    text += f"{', by single values' if single else ''}: {', '.join(parts)}."
    return Sentence("cpu-difference", text, tuple(row.key for row in (whole, *named)), name, "")


def _row(group: Group | None, word: str) -> Row | None:
    return next((row for row in group.rows if word in row.key), None) if group else None


def _difference(table: Table, row: Row, side: int) -> float:
    return (row.cells[side].value or 0.0) - (row.cells[table.base].value or 0.0)


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
