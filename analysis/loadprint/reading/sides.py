"""What the words on the command line stand for: runs, EXECUTION:side, a whole EXECUTION, or an sa file.

A run that is not complete, or not there, is no repeat: it is listed as missing with its reason.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.errors import InputError
from loadprint.reading.recording import Run, open_run, read_object, require_intact

MOST_SIDES = 6  # beside each other a table is not read any more; `sweep` is for that


@dataclass(frozen=True)
class Side:
    """All repeats of one scenario; `missing` holds (run id, reason)."""

    name: str
    label: str
    runs: tuple[Run, ...]
    missing: tuple[tuple[str, str], ...] = ()
    execution: dict[str, Any] | None = None


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


def split(word: str) -> tuple[Path, str | None]:
    """Path and side name of EXECUTION:side, or a path alone. Raises InputError."""
    path = Path(word)
    if path.exists() or ":" not in word:
        return path, None
    directory, _, name = word.rpartition(":")
    if not Path(directory).is_dir():
        raise InputError(directory, "no such execution", "give the directory that holds execution.json")
    return Path(directory), name


def sides_of(execution: dict[str, Any], path: Path) -> list[str]:
    """Names of an execution's sides. Raises InputError where it lists none."""
    sides, runs = execution.get("sides"), execution.get("runs")
    complete = (
        isinstance(sides, dict)
        and isinstance(runs, list)
        and all(isinstance(r, dict) and _is_name(r.get("id")) for r in runs)
    )
    if not sides or not complete:
        raise InputError(
            path / "execution.json", "does not list `sides` and `runs`", "copy the execution again"
        )
    return list(sides)


def _is_name(given: Any) -> bool:
    """Whether a run's id names a directory inside the execution."""
    return isinstance(given, str) and given not in {"", ".", ".."} and Path(given).name == given


def every_side(path: Path, execution: dict[str, Any]) -> Iterator[Side]:
    """All sides of an execution; one of which no repeat is complete has no runs, and says why."""
    for name in sides_of(execution, path):
        try:
            yield side_of(path, execution, name)
        except InputError as error:
            yield Side(name, name, (), ((name, error.what),))


def side_of(path: Path, execution: dict[str, Any], name: str) -> Side:
    """One side with the repeats that are complete and whole. Raises InputError where none is."""
    runs: list[Run] = []
    missing: list[tuple[str, str]] = []
    for planned in execution["runs"]:
        if planned.get("side") != name:
            continue
        directory = path / planned["id"]
        if not (directory / "run.json").is_file():
            missing.append(
                (planned["id"], "not run" if not directory.is_dir() else "its run.json is missing")
            )
            continue
        try:
            run = open_run(directory)
            if run.status != "complete":
                missing.append((planned["id"], _why(run)))
                continue
            _require_finished(run)
            require_intact(run)
        except InputError as error:
            # one spoiled repeat must not hide the others
            missing.append((planned["id"], str(error)))
            continue
        runs.append(run)
    if not runs:
        reasons = "; ".join(f"{run}: {reason}" for run, reason in missing) or "the plan has no run of it"
        raise InputError(
            f"{path}:{name}", f"no complete repeat ({reasons})", "run the campaign again, it resumes"
        )
    label = (execution["sides"].get(name) or {}).get("label") or name
    return Side(name, label, tuple(runs), tuple(missing), execution)


def single(path: Path) -> Side:
    """One run directory as a side. Raises InputError where it cannot be used."""
    run = open_run(path)
    _require_finished(run)
    if run.status != "complete" and run.result is None:
        raise InputError(path, f"the run is {_why(run)}", "run it again")
    require_intact(run)
    name = str(run.meta.get("side") or run.id)
    return Side(name, str(run.meta.get("workload") or name), (run,))


def _imported(path: Path) -> Side:
    """Another tool's file: a run directory is made of it for as long as this program lives."""
    from loadprint.importing import sar  # noqa: PLC0415  only files of sysstat need it
    from loadprint.importing.writer import write_run  # noqa: PLC0415  pyarrow is slow to import

    folder = Path(tempfile.mkdtemp(prefix="loadprint-import-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return single(write_run(folder / path.stem, sar.load(path)))


def _require_finished(run: Run) -> None:
    if run.journals:
        raise InputError(run.journals[0], "was never finished", f"run `loadprint-collect finish {run.path}`")


def _why(run: Run) -> str:
    reason = run.meta.get("reason")
    return f"{run.status}: {reason}" if reason else run.status


def _distinct(sides: list[Side]) -> list[Side]:
    """Give sides that share a name one each: the run's own id, else a number in the order given."""
    names = [side.name for side in sides]
    if len(set(names)) == len(names):
        return sides
    ids = [side.runs[0].id if len(side.runs) == 1 else side.name for side in sides]
    if len(set(ids)) < len(ids):
        ids = [f"{name}#{number}" for number, name in enumerate(ids, start=1)]
    return [Side(i, s.label, s.runs, s.missing, s.execution) for i, s in zip(ids, sides, strict=True)]
