"""Resolves operands to sides: a run, RUN:side, EXECUTION:side, an EXECUTION, or an sa file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadprint import temporary
from loadprint.errors import InputError
from loadprint.reading.run_documents import ExecutionPlan
from loadprint.reading.sides import PLAN, Side, read_plan, side_of, single, split, taking_turns
from loadprint.reading.slices import SLICES

MAX_SIDES = 6  # of one table; `sweep` prints executions with more sides


def resolve(words: Sequence[str], *, minimum: int = 2) -> tuple[list[Side], str | None]:
    """Return the sides in the given order, and the reference that a campaign declares.

    Raises InputError for an unusable operand, and for fewer sides than `minimum`.
    """
    sides: list[Side] = []
    declared: str | None = None
    for word in words:
        path, name = split(word)
        if (path / PLAN).is_file():
            execution = read_plan(path)
            chosen, reference = _chosen(path, execution, name)
            declared = declared or reference
            sides += [side_of(path, execution, name) for name in chosen]
        elif path.is_file():
            sides.append(_imported(path))
        elif name is not None or (path / SLICES).is_file():
            sides += taking_turns(path, name)
        else:
            sides.append(single(path))
    if len(sides) < minimum:
        raise InputError(
            " ".join(words),
            "one side, two or more needed",
            "`loadprint show` prints a run, `loadprint report` writes a page of one side",
        )
    distinct = _distinct(sides)
    reference = next((side.name for side in distinct if declared in {side.name, side.planned}), None)
    return distinct, reference


def _chosen(path: Path, execution: ExecutionPlan, name: str | None) -> tuple[list[str], str | None]:
    """Return the sides of an execution that an operand selects, and their reference.

    Without a name, an execution of mode equal-load stands for the sides at its middle load, where all do
    equal work.
    """
    loads = fractions(execution)
    if name is None and loads:
        name = f"@{100 * loads[len(loads) // 2]:g}"
    if name is not None and (loads or name != "@max"):
        sides = named(path, execution, name)
        reference = execution.reference + (name if name.startswith("@") and name != "@max" else "")
        return sides, reference if reference in sides else None
    if len(execution.sides) > MAX_SIDES:
        raise InputError(
            path,
            f"has {len(execution.sides)} sides, one table compares at most {MAX_SIDES}",
            f"use `loadprint sweep {path}`, or name sides as {path}:SIDE",
        )
    return list(execution.sides), execution.reference or None


def fractions(execution: ExecutionPlan) -> list[float]:
    """The loads of an execution of mode equal-load, as shares of the maximum, in rising order."""
    return sorted({side.fraction for side in execution.sides.values() if side.fraction})


def named(path: Path, execution: ExecutionPlan, name: str) -> list[str]:
    """Return the side of this name, or all sides at one load. Raises InputError if there is none.

    `@70` stands for the sides at 70 % of the maximum load, `@max` for those at saturation.
    """
    if name == "@max":
        sides = [side for side, planned in execution.sides.items() if not planned.fraction]
    elif name.startswith("@"):
        sides = [side for side in execution.sides if side.endswith(name)]
    else:
        sides = [name] if name in execution.sides else []
    if sides:
        return sides
    fix = f"its sides are {', '.join(execution.sides)}"
    if loads := fractions(execution):
        fix += f"; all at one load: @max, {', '.join(f'@{100 * load:g}' for load in loads)}"
    raise InputError(f"{path}:{name}", f"no side `{name}`", fix)


def _imported(path: Path) -> Side:
    """Convert another tool's file to a temporary run directory, which is removed at exit."""
    from loadprint.importing import sar  # noqa: PLC0415  only files of sysstat need it
    from loadprint.importing.writer import write_run  # noqa: PLC0415  pyarrow is slow to import

    imported = sar.load(path)
    return single(write_run(temporary.directory("loadprint-import-") / path.stem, imported))


def _distinct(sides: list[Side]) -> list[Side]:
    """Rename sides that share a name: to the run's id, else with a number in the given order."""
    names = [side.name for side in sides]
    if len(set(names)) == len(names):
        return sides
    ids = [side.runs[0].id if len(side.runs) == 1 else side.name for side in sides]
    if len(set(ids)) < len(ids):
        ids = [f"{name}#{number}" for number, name in enumerate(names, start=1)]
    return [replace(side, name=name, planned=side.name) for name, side in zip(ids, sides, strict=True)]
