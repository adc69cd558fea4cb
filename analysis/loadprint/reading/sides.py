"""Sides: the repeats of one scenario, from a run directory or from an execution.

A run that is not complete, or not there, is no repeat: it is listed as missing with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.errors import InputError
from loadprint.reading.recording import Run, open_run, require_intact


@dataclass(frozen=True)
class Side:
    """All repeats of one scenario; `missing` holds (run id, reason)."""

    name: str
    label: str
    runs: tuple[Run, ...]
    missing: tuple[tuple[str, str], ...] = ()
    execution: dict[str, Any] | None = None


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


def _require_finished(run: Run) -> None:
    if run.journals:
        raise InputError(run.journals[0], "was never finished", f"run `loadprint-collect finish {run.path}`")


def _why(run: Run) -> str:
    reason = run.meta.get("reason")
    return f"{run.status}: {reason}" if reason else run.status
