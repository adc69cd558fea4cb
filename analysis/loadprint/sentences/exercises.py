"""Finds which of two sides exercises engine, storage, network and kernel more, by their rows.

A side exercises a subject more if at least one row is beyond a factor for the same CPU time of the server,
and the interval of none excludes 1 in the other direction. Sides that count the same operation are compared
per operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loadprint.sentences.ratios import FAR, direction, sure, times, value
from loadprint.sentences.rules import BY_SERVER, KERNEL_SHARE
from loadprint.tables.table import Row, Sentence, Table

BRIEF = 2  # phrases in one line
SHARE = 1.1  # for shares of CPU time, which differ little between workloads


@dataclass(frozen=True)
class Sign:
    """A row that shows how much a side exercises a subject; with `less`, a smaller value is more."""

    row: str
    phrase: str
    factor: float = FAR
    less: bool = False


@dataclass(frozen=True)
class Exercise:
    """A subject that a workload may probe; `_per_{}` of its rows is filled with the denominator.

    If its signs contradict each other, its `parts` are tested.
    """

    about: str
    does: str
    signs: tuple[Sign, ...]
    parts: tuple[Exercise, ...] = ()


SENT, RECEIVED = Sign("net_tx_per_{}", "bytes sent"), Sign("net_rx_per_{}", "bytes received")
SUBJECTS = (
    Exercise(
        "engine",
        "spends more of its CPU time in user mode",
        (
            Sign(KERNEL_SHARE, "share of kernel mode", SHARE, less=True),
            Sign("server_user_per_statement", "CPU time in user mode a statement"),
        ),
    ),
    Exercise(
        "storage",
        "uses storage more",
        (
            Sign("disk_reads_per_{}", "read requests"),
            Sign("disk_writes_per_{}", "write requests"),
            Sign("disk_read_kb_per_{}", "bytes read"),
            Sign("disk_write_kb_per_{}", "bytes written"),
            Sign("disk_flushes_per_{}", "flushes"),
        ),
    ),
    Exercise(
        "network",
        "uses the network more",
        (SENT, RECEIVED),
        parts=(
            Exercise("network", "sends more over the network", (SENT,)),
            Exercise("network", "receives more over the network", (RECEIVED,)),
        ),
    ),
    Exercise(
        "kernel",
        "uses the kernel more",
        (
            Sign(KERNEL_SHARE, "share of kernel mode", SHARE),
            Sign("switches_per_{}", "context switches"),
            Sign("syscalls_per_{}", "system calls"),
            Sign("interrupts_per_{}", "interrupts"),
        ),
    ),
)


def exercises(table: Table, side: int) -> Iterator[Sentence]:
    """One sentence per subject that a side or the reference exercises more."""
    per = "CPU-second" if table.row("statements_per_CPU-second") else "operation"
    for subject in SUBJECTS:
        yield from _of_subject(table, subject, side, per)


def _of_subject(table: Table, subject: Exercise, side: int, per: str) -> Iterator[Sentence]:
    votes, directions = [], set()
    for sign in subject.signs:
        row = table.row(sign.row.format(per))
        if row is None or (sign.row == KERNEL_SHARE and not _by_server(table, side)):
            continue
        unit = -1 if sign.less else 1
        if way := direction(row.versus[side]):
            directions.add(unit * way)
        if vote := unit * sure(row.versus[side], sign.factor):
            votes.append((sign, row, vote))
    if len(directions) > 1:
        for part in subject.parts:
            yield from _of_subject(table, part, side, per)
    if len(directions) != 1 or not votes:
        return
    better, other = (side, table.base) if directions == {1} else (table.base, side)
    phrases = [f"{_ratio(row, side, of_side=better == side)} × the {sign.phrase}" for sign, row, _ in votes]
    values = "; ".join(f"{row.label} {value(row, better)} against {value(row, other)}" for _, row, _ in votes)
    counted = f" per {_unit(per)}" if any("{}" in sign.row for sign, *_ in votes) else ""
    names = [table.sides[place].name for place in (better, other)]
    of_share = votes[0][0].less
    does = subject.does if of_share or subject.about != "engine" else "uses more CPU time in user mode"
    text = f"{names[0]} {does} than {names[1]}: {', '.join(phrases)}{counted} [{values}]."
    brief = f"{names[0]} {does}" + (f" than {names[1]}" if len(table.sides) > 2 else "")
    if not of_share:
        brief += f": {' and '.join(phrases[:BRIEF])}{counted.removesuffix(' of the server')}"
    keys = tuple(row.key for _, row, _ in votes)
    yield Sentence("exercises", text, keys, names[0], subject.about, brief=brief)


def _by_server(table: Table, side: int) -> bool:
    """Whether the server used most of its CPUs' time on both sides: their share of kernel mode is its own."""
    row = table.row(BY_SERVER.row)
    values = [row.cells[place].value for place in (side, table.base)] if row else []
    return row is not None and all(v is not None and BY_SERVER.is_met(v * row.factor) for v in values)


def _ratio(row: Row, side: int, *, of_side: bool) -> str:
    """The better side's value as a multiple of the other's."""
    versus = row.versus[side]
    centre = versus.centre if versus and versus.centre else 1.0
    return times(centre if of_side else 1 / centre)


def _unit(per: str) -> str:
    return "CPU-second of the server" if per == "CPU-second" else per
