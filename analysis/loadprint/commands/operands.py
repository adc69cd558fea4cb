"""Operands of the commands: a run, EXECUTION:side, a whole EXECUTION, or an sa file, as sides."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadprint.errors import InputError
from loadprint.reading.recording import read_object
from loadprint.reading.sides import Side, side_of, sides_of, single, split

MOST_SIDES = 6  # a table with more columns is not readable; `sweep` prints those


def resolve(words: Sequence[str], *, least: int = 2) -> tuple[list[Side], str | None]:
    """Sides in the order given, and the reference that a campaign declares.

    Raises InputError, also where there are fewer than `least`.
    """
    sides: list[Side] = []
    declared: str | None = None
    for word in words:
        path, name = split(word)
        if (path / "execution.json").is_file():
            execution = read_object(path / "execution.json")
            known = sides_of(execution, path)
            chosen, reference = _chosen(path, execution, known, name)
            declared = declared or reference
            sides += [side_of(path, execution, each) for each in chosen]
        elif path.is_file():
            sides.append(_imported(path))
        elif name is not None:
            raise InputError(path, "holds no execution.json", "give EXECUTION:side or a run directory")
        else:
            sides.append(single(path))
    if len(sides) < least:
        raise InputError(
            " ".join(words),
            "is one side",
            "give two or more to compare; `loadprint report` makes a page of one, `loadprint inspect` tells "
            "what a run holds",
        )
    return _distinct(sides), declared


def _chosen(
    path: Path, execution: dict[str, Any], known: list[str], name: str | None
) -> tuple[list[str], str | None]:
    """Sides that a word stands for, and their reference.

    `@70` are all sides at 70 % of the load, `@max` those at saturation. An execution of mode equal-load
    without a name stands for the sides at its middle load: equal work is what it is about.
    """
    reference = execution.get("reference")
    fractions = sorted(
        {side["fraction"] for side in execution["sides"].values() if (side or {}).get("fraction")}
    )
    if name is None and fractions:
        name = f"@{100 * fractions[len(fractions) // 2]:g}"
    if name is None:
        if len(known) > MOST_SIDES:
            raise InputError(
                path,
                f"has {len(known)} sides, too many to lay side by side",
                f"use `loadprint sweep {path}`, or name some as {path}:SIDE",
            )
        return known, reference
    if name == "@max" and fractions:
        return [side for side in known if "@" not in side], reference
    if name.startswith("@"):
        found = [side for side in known if side.endswith(name)]
        if found:
            return found, f"{reference}{name}" if f"{reference}{name}" in found else None
    elif name in known:
        return [name], reference if name == reference else None
    loads = f", all at once @max, {', '.join(f'@{100 * each:g}' for each in fractions)}" if fractions else ""
    raise InputError(f"{path}:{name}", f"no side `{name}`", f"its sides are {', '.join(known)}{loads}")


def _imported(path: Path) -> Side:
    """Another tool's file: a run directory is made of it for as long as this program lives."""
    from loadprint.importing import sar  # noqa: PLC0415  only files of sysstat need it
    from loadprint.importing.writer import write_run  # noqa: PLC0415  pyarrow is slow to import

    folder = Path(tempfile.mkdtemp(prefix="loadprint-import-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return single(write_run(folder / path.stem, sar.load(path)))


def _distinct(sides: list[Side]) -> list[Side]:
    """Give sides that share a name one each: the run's own id, else a number in the order given."""
    names = [side.name for side in sides]
    if len(set(names)) == len(names):
        return sides
    ids = [side.runs[0].id if len(side.runs) == 1 else side.name for side in sides]
    if len(set(ids)) < len(ids):
        ids = [f"{name}#{number}" for number, name in enumerate(ids, start=1)]
    return [Side(i, s.label, s.runs, s.missing, s.execution) for i, s in zip(ids, sides, strict=True)]
