"""Selects the rows of a comparison that are shown: the first screen, the usual ones, all rows, or the costs.

The usual view has the size of the published table, section by section. A line below the table counts the
other rows. Marks are the same in every view, because they are set before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.catalogue.files import unit_name
from loadprint.tables.rows import OTHER_OPERATIONS
from loadprint.tables.table import COSTS, CPU, DISK, NETWORK, OTHER, Group, Row, Table

LEAST_PERCENT = 0.5  # a smaller share counts as zero in rows of the view `nonzero`
MAX_NAMED = 4
MAX_NOTES = 6  # of the first screen

LOOPBACK, BACKGROUND = "nic_lo", 0.01  # of its bytes: another interface with less did not carry the load
TITLES = {CPU: "CPU", DISK: "Disk", NETWORK: "Network", OTHER: "Other"}  # of the HammerDB blog's table


def shown(table: Table, *, everything: bool = False, only_costs: bool = False, as_sar: bool = False) -> Table:
    """The requested rows: costs, all rows, those of the published SAR table, or by default the usual ones."""
    if as_sar:
        return _cut(table, _sar_groups(table), [])
    if only_costs:
        return all_of(costs(table))
    return all_of(table) if everything else usual(table)


def first(table: Table, most_notes: int | None = MAX_NOTES) -> Table:
    """The rows of the first screen that a side measured, with short titles."""
    by_heading: dict[str, list[tuple[Group, Row]]] = {}
    for group in _of_one_device(table):
        for row in group.rows:
            if row.screens.first and (shown := _or_instead(table, row)):
                by_heading.setdefault(row.screens.first, []).append((group, _named(shown)))
    groups = []
    for heading, rows in by_heading.items():
        of = rows[0][0]
        title = of.title if of.title.startswith(heading) else heading
        groups.append(Group(of.key, title, tuple(row for _, row in rows)))
    hidden = len(table.rows) - sum(len(group.rows) for group in groups)
    notes = dict.fromkeys(note for group in groups for row in group.rows for note in row.all_notes)
    kept = frozenset(list(notes)[:most_notes])
    groups = [replace(group, rows=tuple(row.with_notes(kept) for row in group.rows)) for group in groups]
    # the line of trust has the number of disturbed runs
    sides = tuple(replace(side, notes=()) for side in table.sides)
    return replace(table, sides=sides, groups=tuple(groups), hidden=hidden)


def _of_one_device(table: Table) -> list[Group]:
    """The groups, of devices only the first disk that a side measured, and the interface of the load."""
    others = set()
    for kind in ("disk_", "nic_"):
        devices = [group for group in table.groups if group.key.startswith(kind)]
        values = {
            group.key: [cell.value for row in group.rows if row.screens.first for cell in row.cells]
            for group in devices
        }
        measured = [key for key in values if any(value is not None for value in values[key])]
        if LOOPBACK in measured:
            local = sum(value or 0.0 for value in values[LOOPBACK])
            busy = [
                key for key in measured if sum(value or 0.0 for value in values[key]) >= BACKGROUND * local
            ]
            measured = [key for key in busy if key != LOOPBACK] or [LOOPBACK]
        others |= values.keys() - set(measured[:1])
    return [group for group in table.groups if group.key not in others]


def _or_instead(table: Table, row: Row) -> Row | None:
    """The first that all sides measured of a row and those in its place, else that one did."""
    rows = [one for one in table.rows if one is row or one.screens.instead_of == row.key]
    rows = [row for row in rows if _is_first(row)]
    complete = (row for row in rows if all(cell.value is not None for cell in row.cells))
    return next(complete, rows[0] if rows else None)


def _is_first(row: Row) -> bool:
    values = [cell.value for cell in row.cells if cell.value is not None]
    compared = [versus.notes for versus in row.versus if versus]
    unlike = compared and all(OTHER_OPERATIONS in notes for notes in compared)
    if len(values) > 1 and unlike and not row.screens.unlike:
        return False
    return _has_values(row) if row.view == "nonzero" else bool(values)


def _named(row: Row) -> Row:
    """Costs with their unit of work, because they share a group."""
    _, separator, work = row.key.partition("server_cpu_per_")
    return replace(row, label=f"per {unit_name(work)}") if separator else row


def usual(table: Table) -> Table:
    """The usual rows, without groups whose cells are all n/a or zero."""
    kept = [replace(group, rows=tuple(filter(_usual, group.rows))) for group in table.groups]
    empty = [group.title for group in kept if group.rows and not any(map(_has_values, group.rows))]
    return _cut(table, [group for group in kept if any(map(_has_values, group.rows))], empty)


def all_of(table: Table) -> Table:
    """Every row but sums of rows; one without inputs on any side is n/a, with the reason in its footnote."""
    groups = [
        replace(group, rows=tuple(row for row in group.rows if row.view != "usual")) for group in table.groups
    ]
    return _cut(replace(table, groups=tuple(groups)), groups, [])


def costs(table: Table) -> Table:
    """Only the costs."""
    return replace(table, groups=tuple(group for group in table.groups if group.section == COSTS))


def _sar_groups(table: Table) -> list[Group]:
    """The rows of the SAR table; of several devices the first, which is the disk of the data."""
    placed = {
        row.screens.sar: (group.section, row)
        for group in reversed(table.groups)
        for row in group.rows
        if row.screens.sar and group.key != LOOPBACK
    }
    rows = [placed[place] for place in sorted(placed)]
    return [
        Group(f"sar_{title.lower()}", title, tuple(row for of, row in rows if of == section), section)
        for section, title in TITLES.items()
    ]


def _usual(row: Row) -> bool:
    if row.view in {"always", "usual"} or any(cell.of_ceiling is not None for cell in row.cells):
        return True
    if row.view == "measured":
        return any(cell.value is not None for cell in row.cells)
    least = LEAST_PERCENT if row.unit == "%" else 0.0
    return row.view == "nonzero" and any((cell.value or 0.0) > least for cell in row.cells)


def _has_values(row: Row) -> bool:
    """Whether a row has a value other than zero."""
    return any(cell.value for cell in row.cells)


def _cut(table: Table, groups: Sequence[Group], empty: Sequence[str]) -> Table:
    """The table with these groups only, and a line on the rows that it does not show."""
    before, after = (sum(len(group.rows) for group in of_table) for of_table in (table.groups, groups))
    line = _left_out(before - after, empty)
    method = (*table.method, line) if line else table.method
    return replace(table, groups=tuple(groups), method=method, hidden=before - after)


def _left_out(rows: int, empty: Sequence[str]) -> str:
    if not rows:
        return ""
    named = ", ".join(empty[:MAX_NAMED]) + (", …" if len(empty) > MAX_NAMED else "")
    nothing = f"; groups with only zero or n/a: {named}" if empty else ""
    return f"{rows} more rows with --all{nothing}."
