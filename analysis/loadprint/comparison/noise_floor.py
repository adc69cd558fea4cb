"""The noise floor: how far apart sides of one and the same configuration came out, row by row.

An A/A is an execution whose sides differ in nothing but their name. A ratio that is no larger than what it
saw there is marked `~`, whatever its interval says: an interval knows the spread between its own repeats, not
what the order of runs, the place on disk or the hour of the day add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadprint import numbers
from loadprint.comparison.compare_sides import compare
from loadprint.errors import InputError
from loadprint.reading.recording import read_object
from loadprint.reading.sides import side_of, sides_of
from loadprint.sentences.sentences import sentences
from loadprint.tables.table import Cell, Floor, Table, Versus

NAMES = ("label", "of", "cell")  # keys of a side that configure nothing
ROUNDING = 1e-9  # so that an A/A lies inside of its own floor
MEND = "give an execution whose sides are configured alike, as the campaign `aa` makes"


@dataclass(frozen=True)
class NoiseFloor:
    """Floors by row of one A/A, and what it was: its path, sides and repeats a side."""

    path: str
    floors: dict[str, Floor]
    sides: tuple[str, ...]
    repeats: tuple[int, ...]


def measured(path: Path) -> NoiseFloor:
    """Read an A/A execution. Raises InputError where it is none, or its sides are not the same."""
    if not (path / "execution.json").is_file():
        raise InputError(path, "holds no execution.json", MEND)
    execution = read_object(path / "execution.json")
    names = sides_of(execution, path)
    if len(names) < 2:
        raise InputError(path, "has one side only, which is no A/A", MEND)
    _require_alike(path, execution, names)
    table = compare([side_of(path, execution, name) for name in names], None)
    comparable = next(verdict for verdict in table.verdicts if verdict.key == "comparable")
    if comparable.answer in ("no", "with reserve"):
        what = f"is no A/A: its sides ran under different configurations ({comparable.text})"
        raise InputError(path, what, MEND)
    floors = {row.key: found for group in table.groups for row in group.rows if (found := _floor(row.cells))}
    return NoiseFloor(str(path), floors, tuple(names), tuple(len(head.repeats) for head in table.sides))


def applied(table: Table, noise: NoiseFloor) -> Table:
    """Table whose rows know their floor, and whose ratios inside of it are marked `~` with a footnote."""
    text = f"no further apart than sides of one configuration came out in the A/A {noise.path}"
    number = len(table.footnotes) + 1
    used = False
    groups = []
    for group in table.groups:
        rows = []
        for row in group.rows:
            floor = noise.floors.get(row.key)
            inside = [
                found is not None and floor is not None and _inside(found, floor) for found in row.versus
            ]
            used |= any(inside)
            versus = tuple(
                replace(found, mark="~", notes=(*found.notes, number)) if found and within else found
                for found, within in zip(row.versus, inside, strict=True)
            )
            rows.append(replace(row, versus=versus, floor=floor))
        groups.append(replace(group, rows=tuple(rows)))
    marked = replace(
        table,
        groups=tuple(groups),
        footnotes=(*table.footnotes, text) if used else table.footnotes,
        method=(*table.method, _told(table, noise)),
    )
    return replace(marked, sentences=sentences(marked))


def _require_alike(path: Path, execution: dict[str, Any], names: Sequence[str]) -> None:
    """Raise InputError naming the first key in which a side's plan differs from the first side's."""
    plans = [
        {key: value for key, value in (execution["sides"].get(name) or {}).items() if key not in NAMES}
        for name in names
    ]
    for name, plan in zip(names[1:], plans[1:], strict=True):
        for key in sorted(plan.keys() | plans[0].keys()):
            if plan.get(key) != plans[0].get(key):
                raise InputError(path, f"is no A/A: {names[0]} and {name} differ in `{key}`", MEND)


def _floor(cells: Sequence[Cell]) -> Floor | None:
    """Largest distance between any two sides: of logs of geometric means, and of means in the row's unit."""
    known = [[value for value in cell.repeats if value is not None] for cell in cells]
    if not all(known):
        return None
    means = [math.fsum(values) / len(values) for values in known]
    positive = all(value > 0 for values in known for value in values)
    logs = (
        [math.fsum(math.log(value) for value in values) / len(values) for values in known] if positive else []
    )
    return Floor(max(logs) - min(logs) if positive else None, max(means) - min(means))


def _inside(versus: Versus, floor: Floor) -> bool:
    if versus.centre is None:
        return False
    if versus.kind == "ratio":
        return floor.log_ratio is not None and abs(math.log(versus.centre)) <= floor.log_ratio + ROUNDING
    return versus.kind == "difference" and abs(versus.centre) <= floor.difference * (1 + ROUNDING)


def _told(table: Table, noise: NoiseFloor) -> str:
    """Line below a table: which A/A, and its floor of the headline rows."""
    sides = " ".join(f"{name} × {repeats}" for name, repeats in zip(noise.sides, noise.repeats, strict=True))
    headlines = [row for group in table.groups for row in group.rows if row.headline]
    said = [
        f"{row.label} {numbers.ratio(math.exp(floor.log_ratio))}"
        for row in headlines
        if (floor := noise.floors.get(row.key)) and floor.log_ratio is not None
    ]
    largest = f"; largest ratios there: {', '.join(said)}" if said else ""
    return f"noise floor: A/A {noise.path} ({sides} repeats){largest}."
