"""Which rows of a comparison are shown: the usual ones, all that have inputs, or the costs alone.

The usual view is the size of the published table, section by section. What it leaves out is said in a line;
marks and footnotes mean the same in every view, because they are given before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.tables.groups import COSTS
from loadprint.tables.table import Cell, Group, Row, Table

LEAST_PERCENT = 0.5  # a share of less is not there, for rows that are shown only where something happened
MOST_NAMED = 4


def shown(table: Table, *, everything: bool = False, only_costs: bool = False) -> Table:
    """The rows that are asked for: all costs, all rows, or without a word the usual ones."""
    if only_costs:
        return all_of(costs(table))
    return all_of(table) if everything else usual(table)


def usual(table: Table) -> Table:
    """The usual rows; a group of which all cells are n/a or zero is left out."""
    kept = [replace(group, rows=tuple(filter(_usual, group.rows))) for group in table.groups]
    empty = [group.title for group in kept if group.rows and not any(map(_told, group.rows))]
    return _cut(table, [group for group in kept if any(map(_told, group.rows))], empty)


def all_of(table: Table) -> Table:
    """Every row; one that no side has inputs for is n/a, with the reason in its footnote."""
    return _cut(table, table.groups, [])


def costs(table: Table) -> Table:
    """The costs alone."""
    return replace(table, groups=tuple(group for group in table.groups if group.section == COSTS))


def _usual(row: Row) -> bool:
    if row.view == "always" or any(cell.of_ceiling is not None for cell in row.cells):
        return True
    return row.view == "nonzero" and any(map(_happened, row.cells, [row] * len(row.cells)))


def _happened(cell: Cell, row: Row) -> bool:
    least = LEAST_PERCENT if row.unit == "%" else 0.0
    return cell.value is not None and cell.value > least


def _told(row: Row) -> bool:
    """Whether a row says more than n/a and zero."""
    return any(cell.value for cell in row.cells)


def _cut(table: Table, groups: Sequence[Group], empty: Sequence[str]) -> Table:
    """The table with these groups only, and a line on the rows that it does not show."""
    before, after = (sum(len(group.rows) for group in each) for each in (table.groups, groups))
    line = _left_out(before - after, empty)
    method = (*table.method, line) if line else table.method
    return replace(table, groups=tuple(groups), method=method)


def _left_out(rows: int, empty: Sequence[str]) -> str:
    if not rows:
        return ""
    named = ", ".join(empty[:MOST_NAMED]) + (", …" if len(empty) > MOST_NAMED else "")
    nothing = f", and there is nothing but zero or n/a in: {named}" if empty else ""
    return f"{rows} more rows with --all{nothing}."
