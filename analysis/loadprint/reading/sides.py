"""Opens sides: the repeats of one scenario, from a run directory or an execution.

Runs that are incomplete or absent are listed as missing with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadprint.errors import InputError
from loadprint.reading.documents import read
from loadprint.reading.recording import Run, open_run, require_intact
from loadprint.reading.run_documents import ExecutionPlan, PlannedSide
from loadprint.reading.segments import sides_in

PLAN = "execution.json"
NO_EXECUTION = ExecutionPlan()


@dataclass(frozen=True)
class Side:
    """All repeats of one scenario, and its execution; `missing` holds (run id, reason).

    `planned`: what its execution calls it, if it has another name beside sides of other executions.
    """

    name: str
    label: str
    runs: tuple[Run, ...]
    missing: tuple[tuple[str, str], ...] = ()
    execution: ExecutionPlan = NO_EXECUTION
    planned: str = ""

    @property
    def plan(self) -> PlannedSide:
        """Its entry in the execution; empty for a single run."""
        return self.execution.side(self.planned or self.name)

    @property
    def by_precision(self) -> bool:
        """Whether a precision of its campaign decided on the number of its runs."""
        return self.execution.campaign.precision is not None


def split(operand: str) -> tuple[Path, str | None]:
    """Path and side name of EXECUTION:side, or a path alone. Raises InputError."""
    path = Path(operand)
    if path.exists() or ":" not in operand:
        return path, None
    directory, _, name = operand.rpartition(":")
    if not Path(directory).is_dir():
        raise InputError(directory, "no such execution", "give the directory that contains execution.json")
    return Path(directory), name


def read_plan(path: Path) -> ExecutionPlan:
    """The plan of the execution in a directory. Raises InputError if there is none, or it has no sides."""
    if not (path / PLAN).is_file():
        raise InputError(path, "contains no execution.json", "give the directory of an execution")
    execution = read(path / PLAN, ExecutionPlan)
    if not execution.sides:
        raise InputError(path / PLAN, "`sides` is empty", "copy the execution again")
    return execution


def every_side(path: Path, execution: ExecutionPlan) -> Iterator[Side]:
    """All sides of an execution; a side without a complete repeat has no runs and a reason."""
    for name in execution.sides:
        try:
            yield side_of(path, execution, name)
        except InputError as error:
            yield Side(name, name, (), ((name, error.what),))


def read_execution(path: Path) -> tuple[ExecutionPlan, list[Side]]:
    """An execution with all its sides. Raises InputError if none of its runs is complete."""
    execution = read_plan(path)
    sides = list(every_side(path, execution))
    if not any(side.runs for side in sides):
        raise InputError(path, "none of its runs is complete", "run the campaign again, it resumes")
    return execution, sides


def side_of(path: Path, execution: ExecutionPlan, name: str) -> Side:
    """One side with its complete and undamaged repeats. Raises InputError if there are none."""
    runs: list[Run] = []
    missing: list[tuple[str, str]] = []
    for planned in execution.runs:
        if planned.side != name:
            continue
        directory = path / planned.id
        if not (directory / "run.json").is_file():
            missing.append((planned.id, "its run.json is missing" if directory.is_dir() else "not run"))
            continue
        try:
            run = open_run(directory)
            if run.meta.status != "complete":
                missing.append((planned.id, _why(run)))
                continue
            _require_finished(run)
            require_intact(run)
            runs.append(_in_its_slices(run))
        except InputError as error:
            # a damaged repeat must not hide the others
            missing.append((planned.id, str(error)))
    if not runs:
        reasons = (
            "; ".join(f"{run}: {reason}" for run, reason in missing) or "the plan has no run of this side"
        )
        raise InputError(
            f"{path}:{name}", f"no complete repeat ({reasons})", "run the campaign again: it resumes"
        )
    return Side(name, execution.side(name).label or name, tuple(runs), tuple(missing), execution)


def taking_turns(path: Path, name: str | None) -> list[Side]:
    """The sides that took turns in a run, or the named one; none if there was one side.

    Raises InputError for a name that is no side, or if the run cannot be used.
    """
    (run,) = single(path).runs
    sides = sides_in(run)
    if name is not None and name not in sides:
        if not sides:
            fix = "give EXECUTION:side or a run directory"
            raise InputError(path, "does not contain execution.json, and has one side", fix)
        raise InputError(f"{path}:{name}", f"no side `{name}`", f"its sides are {', '.join(sides)}")
    return [Side(side, side, sides[side]) for side in (sides if name is None else [name])]


def single(path: Path) -> Side:
    """One run directory as a side. Raises InputError if it cannot be used."""
    run = open_run(path)
    _require_finished(run)
    if run.meta.status != "complete" and not run.result:
        raise InputError(path, f"the run is {_why(run)}", "run it again")
    require_intact(run)
    name = run.meta.side or run.id
    return Side(name, run.meta.workload or name, (_in_its_slices(run),))


def _in_its_slices(run: Run) -> Run:
    """A run of a campaign, with the slices of its own side as segments if the sides alternate.

    Raises InputError.
    """
    own = sides_in(run).get(run.meta.side or "", ()) if run.slices else ()
    return own[0] if own else run


def _require_finished(run: Run) -> None:
    if run.journals:
        raise InputError(run.journals[0], "is not finished", f"run `loadprint-collect finish {run.path}`")


def _why(run: Run) -> str:
    return f"{run.meta.status}: {run.meta.reason}" if run.meta.reason else run.meta.status
