"""Writes sentences by rules over the rows; each cites its rows with their values.

A sentence on one side needs conditions that are true in every repeat. A sentence that compares sides needs a
ratio whose interval is beyond a factor. With fewer than three repeats there is no interval: costs then need
repeats that do not overlap, "by single values", and no side is reported to exercise more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadprint import numbers
from loadprint.judging.void import CLIENT_BOUND
from loadprint.sentences.exercises import exercises
from loadprint.sentences.ledger_difference import LEDGERS, ledger_difference
from loadprint.sentences.ratios import FAR, apart, sure, times, value
from loadprint.sentences.rules import FIRST, LAST, Condition, Rule
from loadprint.tables.table import Row, Sentence, Table

SHOWN = 5
DISK = "{disk}"
COSTS = (
    ("server_cpu_per_{}", "the server CPU"),
    ("switches_per_{}", "the context switches"),
    ("disk_write_kb_per_{}", "the bytes written to disk"),
    ("net_tx_per_{}", "the bytes sent"),
    ("net_rx_per_{}", "the bytes received"),
)


def sentences(table: Table) -> tuple[Sentence, ...]:
    """All sentences, the most important first; text and Markdown show the first few."""
    sides = range(len(table.sides))
    pairs = [place for place in sides if place != table.base]
    by_kind = (
        [(side, _costs(table, side)) for side in pairs],
        *([(side, ledger_difference(table, side, ledger)) for side in pairs] for ledger in LEDGERS),
    )
    of_work = [(side, text) for kind in by_kind for side, text in kind if text]
    same = {side for side in pairs if table.sides[side].operation == table.sides[table.base].operation}
    first = [text for rule in FIRST for side in sides if (text := _of_side(table, rule, side))]
    alike = [
        *(work for work in of_work if work[0] in same),
        *((side, text) for side in pairs for text in exercises(table, side)),
    ]
    unlike = [_with_doubts(table, *work) for work in of_work if work[0] not in same]
    last = [
        text
        for rule in LAST
        for side in sides
        # a client-bound server may not have reached its own limit
        if not (rule.id == "cpu-bound" and CLIENT_BOUND in table.sides[side].doubts)
        and (text := _of_side(table, rule, side))
    ]
    before = [*first, *(_with_doubts(table, *work) for work in alike)]
    # a comparison of different operations is never the first
    ordered = [*before, *unlike, *last] if before else [*last, *unlike]
    enough = bool(before or last)
    return tuple(replace(one, shown=enough and place < SHOWN) for place, one in enumerate(ordered))


def _with_doubts(table: Table, side: int, sentence: Sentence) -> Sentence:
    """A sentence that compares a side with the reference, with what makes this comparison doubtful."""
    comparable = next((verdict.answer for verdict in table.verdicts if verdict.key == "comparable"), "")
    doubts = ["not comparable"] if comparable == "no" else []
    heads = (table.sides[side], table.sides[table.base])
    doubts += [f"{head.name}: {', '.join(head.doubts)}" for head in heads if head.doubts]
    if not doubts:
        return sentence
    text = f" ({'; '.join(doubts)})"
    return replace(sentence, text=f"{sentence.text.removesuffix('.')}{text}.", brief=sentence.brief + text)


def _of_side(table: Table, rule: Rule, side: int) -> Sentence | None:
    """The sentence of a rule on a side, with the rows that it cites; None if the rule is not met."""
    needed = [(condition, _row(table, condition.row, side)) for condition in rule.needs]
    if not all(_holds(table, condition, row, side) for condition, row in needed):
        return None
    signs = [(condition, _row(table, condition.row, side)) for condition in rule.signs]
    met = [row for condition, row in signs if row and _holds(table, condition, row, side)]
    if rule.signs and not met:
        return None
    cited = (
        [row for _, row in needed if row] + met + [r for key in rule.also if (r := _row(table, key, side))]
    )
    rows = [row for row in dict.fromkeys(cited) if row.cells[side].value is not None]
    text = rule.text.format(side=table.sides[side].name)
    values = [f"{_label(table, row)} {value(row, side)}" for row in rows]
    return Sentence(
        rule.id,
        f"{text} [{'; '.join(values)}].",
        tuple(row.key for row in rows),
        table.sides[side].name,
        rule.exercises,
        brief=f"{text} ({values[0]})" if values else text,
    )


def _holds(table: Table, condition: Condition, row: Row | None, side: int) -> bool:
    values = _repeats(row, side)
    if row is None or not values:
        return condition.optional
    if condition.unless and _repeats(table.row(condition.unless), side):
        return False
    unit = 1.0
    if condition.of:
        base = _repeats(table.row(condition.of), side)
        if len(base) != len(values) or not all(base):
            return False
        values, unit = [value / of for value, of in zip(values, base, strict=True)], 1 / row.factor
    results = [condition.is_met(value * row.factor * unit) for value in values]
    return any(results) if condition.any_repeat else all(results)


def _repeats(row: Row | None, side: int) -> list[float]:
    return [] if row is None else row.cells[side].measured


def _row(table: Table, key: str, side: int) -> Row | None:
    """A row by key; `{disk}` is the busiest of the disks with the server's files."""
    if DISK not in key:
        return table.row(key)
    disks = [group.key.partition("_")[2] for group in table.groups if group.has_files]
    return table.row(key.replace(DISK, max(disks, key=lambda disk: _traffic(table, disk, side), default="")))


def _traffic(table: Table, disk: str, side: int) -> float:
    rows = [table.row(f"disk_{disk}_{part}") for part in ("read_kb", "write_kb")]
    return sum(row.cells[side].value or 0.0 for row in rows if row)


def _label(table: Table, row: Row) -> str:
    """A row's label, with the device, unit of work or set of its group."""
    group = next(group for group in table.groups if row in group.rows)
    kind, _, device = group.key.partition("_")
    if kind in {"disk", "nic"}:
        return f"{device} {row.label}"
    return (
        f"{row.label} per {device}"
        if kind == "cost"
        else f"load's {row.label}"
        if row.key.startswith("cpu_load_")
        else row.label
    )


def _costs(table: Table, side: int) -> Sentence | None:
    """The sentence on a side's costs per unit of work, as multiples of the reference's."""
    name = table.sides[side].name
    for per, unit in (
        ("operation", table.sides[side].operation),
        ("commit", "commit"),
        ("statement", "client statement"),
    ):
        costs = list(_far_costs(table, side, per))
        if not costs:
            continue
        phrases = [f"{times(ratio)} × {phrase}" for _, phrase, ratio, _ in costs]
        changed = _rows(table, side, per)
        single = any(alone for *_, alone in costs)
        values = "; ".join(
            f"{row.label} {value(row, side)} against {value(row, table.base)}" for row, *_ in costs
        )
        rows = f" ({changed[0]} rows, in {table.reference} {changed[1]})" if changed else ""
        text = f"Per {unit}{rows}, {name} uses {_listed(phrases)} of {table.reference}"
        text += f"{', by single values' if single else ''} [{values}]."
        brief = f"{name} uses {phrases[0]} of {table.reference} per {unit.partition(' (')[0]}"
        brief += f" ({changed[0]} rows against {changed[1]})" if changed else ""
        brief += ", by single values" if single else ""
        return Sentence("costs", text, tuple(row.key for row, *_ in costs), name, "", brief=brief)
    return None


def _rows(table: Table, side: int, per: str) -> tuple[str, str] | None:
    """The rows that a commit contains, because commits of two workloads can differ by orders of magnitude."""
    row = table.row("rows_changed_per_commit") if per == "commit" else None
    if row is None or None in (row.cells[side].value, row.cells[table.base].value):
        return None
    both = (row.cells[place].value or 0.0 for place in (side, table.base))
    changed, base = (numbers.brief(value, 4) for value in both)
    return changed, base


def _far_costs(table: Table, side: int, per: str) -> Iterator[tuple[Row, str, float, bool]]:
    """Rows beyond the factor: the row, its phrase, the ratio, whether by single values."""
    for key, phrase in COSTS:
        row = table.row(key.format(per))
        versus = row.versus[side] if row else None
        if row is None or versus is None or versus.centre is None or versus.kind != "ratio":
            continue
        if sure(versus, FAR):
            yield row, phrase, versus.centre, False
        elif apart(table, row, side, FAR):
            yield row, phrase, versus.centre, True


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
