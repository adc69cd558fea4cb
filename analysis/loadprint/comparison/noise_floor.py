"""Measures the noise floor: how far apart sides of one configuration are in an A/A, row by row.

An A/A is an execution whose sides have the same configuration. An interval includes only the spread between
repeats; the floor also includes effects of the order of runs, the place on disk and the time of day.
tables/marks.py marks a ratio within the floor with `~`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from loadprint.comparison.compare_sides import compare
from loadprint.errors import InputError
from loadprint.reading.run_documents import ExecutionPlan
from loadprint.reading.sides import read_plan, side_of
from loadprint.tables.table import Cell, Floor, NoiseFloor

NAMES = ("label", "of", "cell")  # keys of a side that configure nothing
HINT = "use an execution whose sides have the same configuration, as the campaign `aa` makes it"


def measured(path: Path) -> NoiseFloor:
    """Read an A/A execution. Raises InputError if it is not one, or if its sides differ."""
    execution = read_plan(path)
    names = list(execution.sides)
    if len(names) < 2:
        raise InputError(path, "is not an A/A: it has one side only", HINT)
    _require_alike(path, execution, names)
    table = compare([side_of(path, execution, name) for name in names], None)
    comparable = next(verdict for verdict in table.verdicts if verdict.key == "comparable")
    if comparable.answer in ("no", "with reserve"):
        what = f"is not an A/A: its sides ran under different configurations ({comparable.text})"
        raise InputError(path, what, HINT)
    floors = {row.key: floor for row in table.rows if (floor := _floor(row.cells))}
    return NoiseFloor(str(path), floors, tuple(names), tuple(len(head.repeats) for head in table.sides))


def _require_alike(path: Path, execution: ExecutionPlan, names: Sequence[str]) -> None:
    """Raise InputError naming the first key in which a side's plan differs from the first side's."""
    plans = [
        {key: value for key, value in execution.sides[name].items() if key not in NAMES} for name in names
    ]
    for name, plan in zip(names[1:], plans[1:], strict=True):
        for key in sorted(plan.keys() | plans[0].keys()):
            if plan.get(key) != plans[0].get(key):
                raise InputError(path, f"is not an A/A: {names[0]} and {name} differ in `{key}`", HINT)


def _floor(cells: Sequence[Cell]) -> Floor | None:
    """Largest distance between any two sides: of logs of geometric means, and of means in the row's unit."""
    measured = [cell.measured for cell in cells]
    if not all(measured):
        return None
    means = [math.fsum(values) / len(values) for values in measured]
    positive = all(value > 0 for values in measured for value in values)
    logs = (
        [math.fsum(math.log(value) for value in values) / len(values) for values in measured]
        if positive
        else []
    )
    return Floor(max(logs) - min(logs) if positive else None, max(means) - min(means))
