"""Selects the rows of a comparison that are shown: the first screen, the usual ones, all rows, or the costs.

The usual view has the size of the published table, section by section. A line below the table counts the
other rows. Marks are the same in every view, because they are set before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from loadprint.catalogue.files import unit_name
from loadprint.tables.groups import COSTS, CPU, DISK, NETWORK, OTHER
from loadprint.tables.table import Cell, Group, Row, Table

LEAST_PERCENT = 0.5  # a smaller share counts as zero in rows of the view `nonzero`
MAX_NAMED = 4
MAX_NOTES = 6  # of the first screen

# the rows of the first screen: title of the group, keys; of alternatives the first that all sides measured,
# or that one did; `{0}` is the group of one device
FIRST = (
    ("throughput", "operations nopm statements commits errors latency_p99"),
    ("CPU", "cpu_server_user cpu_server_system cpu_server_iowait"),
    ("Disk", "{0}_await|{0}_transfer_await {0}_read_kb {0}_write_kb"),
    ("Network", "{0}_rx {0}_tx"),
    ("kernel", "switches_server|switches_host interrupts_server|interrupts_host"),
    ("server CPU", "server_cpu_per_operation server_cpu_per_statement server_cpu_per_commit"),
)
DEVICES = {"Disk": ("disk_", ("await", "read_kb", "write_kb")), "Network": ("nic_", ("rx", "tx"))}
LOOPBACK, BACKGROUND = "nic_lo", 0.01  # of its bytes: another interface with less did not carry the load
ONLY_JUDGED = ("operations", "latency_p99", "server_cpu_per_operation")  # only with a ratio or alone

# the rows of the HammerDB blog's table, in its order
SAR = (
    ("CPU", CPU, "utilisation kernel user system iowait idle", "cpu_server_{}"),
    ("Disk", DISK, "await read_kb write_kb", "disk_*_{}"),
    ("Network", NETWORK, "rx tx", "nic_*_{}"),
    ("Other", OTHER, "switches interrupts", "{}_host"),
)


def shown(table: Table, *, everything: bool = False, only_costs: bool = False, as_sar: bool = False) -> Table:
    """The requested rows: costs, all rows, those of the published SAR table, or by default the usual ones."""
    if as_sar:
        return _cut(table, [_sar_group(table, *group) for group in SAR], [])
    if only_costs:
        return all_of(costs(table))
    return all_of(table) if everything else usual(table)


def first(table: Table, most_notes: int | None = MAX_NOTES) -> Table:
    """The rows of the first screen that a side measured, with short titles."""
    groups = []
    for title, keys in FIRST:
        device = _device(table, *DEVICES[title]) if title in DEVICES else ""
        patterns = [key.format(device).split("|") for key in keys.split()]
        rows = [row for alternatives in patterns if (row := _first_of(table, alternatives))]
        if rows:
            of = next(group for group in table.groups if rows[0] in group.rows)
            heading = of.title if of.title.startswith(title) else title
            groups.append(Group(of.key, heading, tuple(map(_named, rows))))
    hidden = len(table.rows) - sum(len(group.rows) for group in groups)
    notes = dict.fromkeys(note for group in groups for row in group.rows for note in row.all_notes)
    kept = frozenset(list(notes)[:most_notes])
    groups = [replace(group, rows=tuple(row.with_notes(kept) for row in group.rows)) for group in groups]
    # the line of trust has the number of disturbed runs
    sides = tuple(replace(side, notes=()) for side in table.sides)
    return replace(table, sides=sides, groups=tuple(groups), hidden=hidden)


def _device(table: Table, prefix: str, rows: Sequence[str]) -> str:
    """Key of the group of a device: the first disk that a side measured, the interface of the load."""
    keys = [group.key for group in table.groups if group.key.startswith(prefix)]
    values = {
        key: [cell.value for name in rows if (row := table.row(f"{key}_{name}")) for cell in row.cells]
        for key in keys
    }
    measured = [key for key in keys if any(value is not None for value in values[key])]
    if LOOPBACK in measured:
        local = sum(value or 0.0 for value in values[LOOPBACK])
        busy = [key for key in measured if sum(value or 0.0 for value in values[key]) >= BACKGROUND * local]
        measured = [key for key in busy if key != LOOPBACK] or [LOOPBACK]
    return measured[0] if measured else prefix


def _first_of(table: Table, alternatives: Sequence[str]) -> Row | None:
    """The first of some rows that all sides measured, else that one did."""
    rows = [row for key in alternatives if (row := table.row(key)) and _is_first(row)]
    complete = (row for row in rows if all(cell.value is not None for cell in row.cells))
    return next(complete, rows[0] if rows else None)


def _is_first(row: Row) -> bool:
    values = [cell.value for cell in row.cells if cell.value is not None]
    compared = [versus for versus in row.versus if versus]
    if row.key in ONLY_JUDGED and len(values) > 1 and all(versus.kind == "none" for versus in compared):
        return False
    if row.key == "latency_p99":
        return row.headline
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


def _sar_group(table: Table, title: str, section: str, words: str, pattern: str) -> Group:
    """Rows of the SAR table; of several devices the first, which is the disk of the data."""
    rows = []
    for word in words.split():
        key = pattern.format(word)
        rows += [row for row in table.rows if fnmatchcase(row.key, key) and "nic_lo_" not in row.key][:1]
    return Group(f"sar_{title.lower()}", title, tuple(rows), section)


def _usual(row: Row) -> bool:
    if row.view in {"always", "usual"} or any(cell.of_ceiling is not None for cell in row.cells):
        return True
    if row.view == "measured":
        return any(cell.value is not None for cell in row.cells)
    return row.view == "nonzero" and any(map(_is_nonzero, row.cells, [row] * len(row.cells)))


def _is_nonzero(cell: Cell, row: Row) -> bool:
    least = LEAST_PERCENT if row.unit == "%" else 0.0
    return cell.value is not None and cell.value > least


def _has_values(row: Row) -> bool:
    """Whether a row has a value other than zero."""
    return any(cell.value for cell in row.cells)


def _cut(table: Table, groups: Sequence[Group], empty: Sequence[str]) -> Table:
    """The table with these groups only, and a line on the rows that it does not show."""
    before, after = (sum(len(group.rows) for group in each) for each in (table.groups, groups))
    line = _left_out(before - after, empty)
    method = (*table.method, line) if line else table.method
    return replace(table, groups=tuple(groups), method=method, hidden=before - after)


def _left_out(rows: int, empty: Sequence[str]) -> str:
    if not rows:
        return ""
    named = ", ".join(empty[:MAX_NAMED]) + (", …" if len(empty) > MAX_NAMED else "")
    nothing = f"; groups with only zero or n/a: {named}" if empty else ""
    return f"{rows} more rows with --all{nothing}."
