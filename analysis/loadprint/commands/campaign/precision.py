"""Looks at the starts so far of sides that alternate: the answer, and whether it is precise enough to end.

A look uses the widths of the intervals only, never the ratios: to add starts until a difference is
significant would find one in equal sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadprint.catalogue.files import catalogue
from loadprint.commands.campaign.execution import complete_starts, require, spent_s, write
from loadprint.comparison.compare_sides import compare
from loadprint.configuration.field_types import minutes
from loadprint.numbers import brief
from loadprint.reading.sides import Side, read_plan, side_of
from loadprint.statistics.stats import MIN_REPEATS, more_repeats
from loadprint.statistics.stopping import FIRST_LOOK, wider
from loadprint.tables.table import Row, Versus


@dataclass(frozen=True)
class Look:
    """`answer` is a line for the progress; `ended` is why no start is added, empty if one is."""

    answer: str = ""
    ended: str = ""


def look(directory: Path) -> Look:
    """Look at the complete starts of an execution; without the starts that were planned and are not needed.

    Raises InputError and DocumentError.
    """
    document = require(directory).document
    campaign = document["campaign"]
    starts = complete_starts(directory, document)
    within, left_s = minutes(campaign["within"]), campaign["within"] - spent_s(directory, document)
    may_end = campaign["precision"] is not None and not document.get("ended_by")
    if len(starts) < MIN_REPEATS:
        if not may_end or left_s > 0:
            return Look()
        ended = f"within {within}: {len(starts)} complete start{'' if len(starts) == 1 else 's'}"
        _end(directory, document, ended)
        return Look("", ended)
    execution = read_plan(directory)
    sides = [side_of(directory, execution, name) for name in execution.sides]
    table = compare(sides, execution.reference)
    by_key = {row.key: row for row in table.rows}
    rows = {name: _row(by_key, catalogue().named_rows[name]) for name in campaign["rows"]}
    first = next(iter(rows))
    answer = _answer(first, rows[first])
    if not may_end:
        return Look(answer)
    widths = {name: _half_width(row) for name, row in rows.items()}
    said, more = _judged(widths, campaign["precision"], len(starts))
    fit = int(left_s / _start_s(sides))
    if more != 0 and fit > 0:
        if more is None or more > fit:
            said = f"{said}, {fit} fit{'s' * (fit == 1)} into {within}"
        # the answer is of the first ratio, which need not be the widest
        of_answer = f"{first} ±{answer.rpartition('±')[2]}, "
        if said.startswith(of_answer):
            return Look(f"{answer}, {said.removeprefix(of_answer)}")
        return Look("; ".join(filter(None, (answer, said))))
    ended = said if more == 0 else f"within {within}: {said}"
    _end(directory, document, ended)
    return Look(answer, ended)


def _judged(widths: dict[str, float | None], wanted: float, starts: int) -> tuple[str, int | None]:
    """Say how precise the widest row is; with how many more starts it has the wanted precision, if known."""
    if lacking := [name for name, width in widths.items() if width is None]:
        return f"{lacking[0]} has no interval", None
    name, widest = max(
        ((name, width) for name, width in widths.items() if width is not None), key=lambda named: named[1]
    )
    if widest <= math.log1p(wanted):
        if starts >= FIRST_LOOK:
            return f"precision {_percent(widest)} % after {starts} starts", 0
        return f"{name} ±{_percent(widest)} %, {starts} of at least {FIRST_LOOK} starts", FIRST_LOOK - starts
    least = max(starts + 1, FIRST_LOOK)
    more = more_repeats(widest, starts, math.log1p(wanted), paired=True, least=least, widened=wider)
    about = "more than a thousand" if more is None else f"about {more}"
    starts_more = f"{about} more start{'' if more == 1 else 's'}"
    return f"{name} ±{_percent(widest)} %, {starts_more} for {brief(100 * wanted, 3)} %", more


def _row(by_key: dict[str, Row], key: str) -> Row | None:
    """The row; of costs that of an operation, where the sides count the same and no other unit has rows."""
    cost, per, _ = key.partition("_per_")
    return by_key.get(key) or by_key.get(f"{cost}_per_operation" if per else "")


def _ratios(row: Row | None) -> Sequence[Versus]:
    return [ratio for ratio in row.versus if ratio and ratio.kind == "ratio"] if row else []


def _half_width(row: Row | None) -> float | None:
    """Half the width of the widest interval of a row, of logs; None if a side has none."""
    halves = [math.log(ratio.high / ratio.low) / 2 for ratio in _ratios(row) if ratio.low and ratio.high]
    return max(halves) if row and len(halves) == len(row.cells) - 1 else None


def _answer(name: str, row: Row | None) -> str:
    """The first ratio of a row, and half the width of its interval; empty without an interval."""
    for ratio in _ratios(row)[:1]:
        if ratio.low and ratio.high and ratio.centre is not None:
            return f"{name} {ratio.centre:.3g} ±{_percent(math.log(ratio.high / ratio.low) / 2)} %"
    return ""


def _percent(log: float) -> str:
    return f"{100 * math.expm1(log):.2g}"


def _start_s(sides: Sequence[Side]) -> float:
    """Seconds since the begin of the last start: the next one takes about as long."""
    begins = [run.meta.started_realtime_ns or 0 for side in sides for run in side.runs]
    return datetime.now(UTC).timestamp() - max(begins) / 1e9


def _end(directory: Path, document: dict[str, Any], ended: str) -> None:
    """Store what ended the campaign, and remove the starts that were not made from its plan."""
    begun = {run["block"] for run in document["runs"] if (directory / run["id"] / "run.json").is_file()}
    document["runs"] = [run for run in document["runs"] if run["block"] in begun]
    document["campaign"]["starts"] = len(begun)
    document["ended_by"] = ended
    write(directory, document)
