"""Writes the sentences on the rows that explain a difference in latency, or in the server's CPU time.

The differences of all rows of a ledger add up to the difference of its total. A row is named if it certainly
differs; the rest is one sum. The rows of what the ledger cannot explain are always named. Of a ledger that is
marked as not closing, only this is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.catalogue.files import unit_name
from loadprint.metrics import cpu_groups, cpu_time_rows, ledger_rows
from loadprint.sentences.ratios import apart, direction
from loadprint.tables.table import Group, Row, Sentence, Table, Versus

NAMED = 5
BRIEF = 2  # terms in one line
LEAST = 0.02  # of the difference, for a row to be named
ROUNDING = 1e-6  # of a value, or of the row's unit


@dataclass(frozen=True)
class Ledger:
    """A ledger of the table: how the keys of its groups start, and of its total and unexplained rows."""

    id: str
    measure: str
    groups: str
    total: str
    unexplained: tuple[str, ...]


TIME = Ledger(
    "time-difference",
    "latency",
    "time_",
    f"time_{ledger_rows.LATENCY}_per_",
    tuple(f"time_{name}_per_" for name in (ledger_rows.CLIENT_UNEXPLAINED, ledger_rows.UNEXPLAINED)),
)
CPU = Ledger(
    "cpu-difference",
    "server CPU",
    f"{cpu_time_rows.PREFIX}server_",
    f"{cpu_time_rows.PREFIX}server_{cpu_time_rows.ALL}_per_",
    tuple(
        f"{cpu_time_rows.PREFIX}server_{key}_per_"
        for key in (*cpu_groups.UNDECIDED, cpu_time_rows.NOT_SAMPLED)
    ),
)
LEDGERS = (TIME, CPU)


def ledger_difference(table: Table, side: int, ledger: Ledger) -> Sentence | None:
    """The sentence on a side; None if the total does not certainly differ, or its rows do not add up."""
    group = next((group for group in table.groups if group.key.startswith(ledger.groups)), None)
    whole = _row(group, ledger.total)
    if group is None or whole is None or not (_certain(whole.versus[side]) or apart(table, whole, side)):
        return None
    name, work = table.sides[side].name, unit_name(group.key.rpartition("_")[2])
    of_what = f"{ledger.measure} per {work}"
    if text := _not_closing(table, group, side):
        keys = (whole.key, *(row.key for row in group.rows if _is_open(row, (side, table.base))))
        return Sentence(ledger.id, f"{text} [{of_what}].", keys, name, "", brief=f"{text} ({of_what})")
    difference = _difference(table, whole, side)
    rows = _terms(group, whole, (side, table.base))
    differences = [_difference(table, row, side) for row in rows]
    if not rows or not math.isclose(math.fsum(differences), difference, rel_tol=LEAST):
        return None
    single = whole.versus[side] is not None and not _certain(whole.versus[side])
    unexplained = [row for row in rows if row.key.startswith(ledger.unexplained)]
    named = [
        row
        for row in sorted(rows, key=lambda row: -abs(_difference(table, row, side)))
        if row not in unexplained
        and (single or _certain(row.versus[side]))
        and abs(_difference(table, row, side)) >= LEAST * abs(difference)
    ][:NAMED]
    # commas separate the terms
    amounts = [(row.label.replace(",", ""), _difference(table, row, side)) for row in (*named, *unexplained)]
    amounts.sort(key=lambda named: -abs(named[1]))
    in_brief = amounts[:BRIEF]
    others = [row for row in rows if row not in named and row not in unexplained]
    rest = [of_row for row in others if (of_row := _difference(table, row, side))]
    if rest:
        amounts.append((f"{len(rest)} other row{'s' if len(rest) > 1 else ''}", math.fsum(rest)))
        # the one line cuts no sum that is larger than what it names
        if all(abs(amounts[-1][1]) >= abs(amount) for _, amount in in_brief[-1:]):
            in_brief.append(amounts[-1])
    places = numbers.decimals([difference * whole.factor])

    def joined(terms: Sequence[tuple[str, float]]) -> str:
        signed = (numbers.signed(amount, whole.factor, places) if amount else "0" for _, amount in terms)
        return ", ".join(f"{label} {amount}" for (label, _), amount in zip(terms, signed, strict=True))

    text = f"{name} against {table.reference}: {numbers.signed(difference, whole.factor, places)}"
    text += f" {whole.shown} of {of_what}{', by single values' if single else ''}"
    brief = f"{text}: {joined(in_brief)}{', …' if len(amounts) > len(in_brief) else ''}"
    text += f": {joined(amounts)}."
    return Sentence(ledger.id, text, tuple(row.key for row in (whole, *named)), name, "", brief=brief)


def _not_closing(table: Table, group: Group, side: int) -> str:
    """Which of both sides' ledgers are marked as not closing, with the largest share; empty if none is."""
    texts = []
    for place in (side, table.base):
        shares = [abs(row.cells[place].unexplained or 0.0) for row in group.rows]
        if any(shares):
            name = table.sides[place].name
            texts.append(f"the ledger of {name} does not close: {100 * max(shares):.0f} % unexplained")
    return "; ".join(texts)


def _is_open(row: Row, places: tuple[int, int]) -> bool:
    return any(row.cells[place].unexplained is not None for place in places)


def _terms(group: Group, whole: Row, sides: tuple[int, int]) -> list[Row]:
    """The rows that add up to the total: without parts of others, and what no side recorded."""
    rows = [row for row in group.rows if row.view != "usual" and not row.part and row is not whole]
    recorded = [row for row in rows if any(row.cells[place].value is not None for place in sides)]
    names = {ledger_rows.name_of(row.key) for row in recorded}
    # rows of the other ledger have no name
    kept = ledger_rows.terms(names) | {""}
    return [row for row in recorded if ledger_rows.name_of(row.key) in kept]


def _row(group: Group | None, start: str) -> Row | None:
    return next((row for row in group.rows if row.key.startswith(start)), None) if group else None


def _difference(table: Table, row: Row, side: int) -> float:
    """Difference of the means, NaN if one is missing; one of rounding is 0."""
    value, base = row.cells[side].value, row.cells[table.base].value
    if value is None or base is None:
        return math.nan
    return 0.0 if math.isclose(value, base, rel_tol=ROUNDING, abs_tol=ROUNDING / row.factor) else value - base


def _certain(versus: Versus | None) -> bool:
    """Whether the interval excludes "no effect"."""
    return versus is not None and versus.low is not None and direction(versus) != 0
