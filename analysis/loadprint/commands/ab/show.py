"""Computes the `Result` of an experiment from its run directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadprint.commands.ab.analysis import analyse
from loadprint.commands.ab.experiment import Gates
from loadprint.commands.ab.result import Check, Result
from loadprint.commands.ab.windows import windows
from loadprint.errors import InputError
from loadprint.reading.cpusets import cpuset
from loadprint.reading.documents import Integer, JsonObject, Listed, Natural, read, read_lines
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run, open_run, require_intact

DESCRIBED = Path("load") / "experiment.json"


class TreatmentPlan(JsonObject):
    """The commands of an experiment."""

    apply: str
    revert: str


class SchedulePlan(JsonObject):
    """Order and lengths of the windows, in seconds."""

    order: str
    blocks: Natural
    window: Natural
    settle: Natural


class ExperimentPlan(JsonObject):
    """experiment.json."""

    name: str
    title: str
    treatment: TreatmentPlan
    schedule: SchedulePlan
    gates: Gates


class GuardsRecord(JsonObject):
    """guards.json: what the guards found, and whether the revert was verified."""

    checks: Listed[Check]
    reverted: bool = False
    told: str = ""


class SwitchStamp(JsonObject):
    """A line of switches.jsonl."""

    event: str = ""
    what: str = ""
    monotonic_ns: Integer
    exit: Integer | None = None
    why: str = ""


def is_experiment(path: Path) -> bool:
    """Whether a path is the recording of an A/B experiment."""
    return (path / DESCRIBED).is_file()


def result(path: Path) -> Result:
    """Compute the figures of an experiment. Raises InputError if `path` is not a recording of one."""
    run = open_run(path)
    require_intact(run)
    if not is_experiment(path):
        raise InputError(path, "not an A/B experiment", "give a directory that `loadprint ab run` wrote")
    experiment = read(path / DESCRIBED, ExperimentPlan)
    measured = []
    if (path / "server" / "ticks.parquet").is_file():
        measured = windows(run, Store(), cpuset(run, "server"))
    elif run.meta.status == "running":
        fix = f"wait for its end; if none of its processes runs: `loadprint ab revert {path}`"
        raise InputError(path, "is still running, or was killed with all its processes", fix)
    facts = Result(
        experiment.name,
        experiment.title,
        experiment.schedule.order,
        status="complete" if run.meta.status == "complete" else "aborted",
        reason=run.meta.reason or ("it is still running" if run.meta.status == "running" else ""),
        checks=_guards(path),
        flips=_flips(run),
        facts=_facts(run, experiment),
    )
    return analyse(measured, experiment.gates, facts)


def guards(path: Path) -> GuardsRecord:
    """The record of the guards. Raises InputError."""
    return read(path / "load" / "guards.json", GuardsRecord)


def _guards(path: Path) -> tuple[Check, ...]:
    """Read the checks of the guards, written at the end."""
    if not (path / "load" / "guards.json").is_file():
        return (Check("guards", "untested", "its process was killed and did not record them"),)
    return guards(path).checks or (Check("guards", "untested", "only the guard silence was set"),)


@dataclass(frozen=True)
class Flip:
    """One switch; `begin_ns` is monotonic, `exit` None if the command timed out."""

    begin_ns: int
    seconds: float
    command: str
    exit: int | None
    why: str


def flips(path: Path) -> Iterator[Flip]:
    """Yield every apply and revert of a run directory."""
    begin_ns = 0
    for _, stamp in read_lines(path / "load" / "switches.jsonl", SwitchStamp, "a switch"):
        if stamp.event == "begin":
            begin_ns = stamp.monotonic_ns
        elif stamp.what in ("apply", "revert"):
            yield Flip(begin_ns, (stamp.monotonic_ns - begin_ns) / 1e9, stamp.what, stamp.exit, stamp.why)


def _flips(run: Run) -> tuple[str, ...]:
    """Return one line per switch: seconds since the start, command, exit status, duration, reason."""
    measure = run.phase("measure")
    if measure is None:
        return ()
    lines = []
    for flip in flips(run.path):
        how = "timed out" if flip.exit is None else f"exit {flip.exit}"
        at = (flip.begin_ns - measure.begin_ns) / 1e9
        lines.append(f"{at:8.1f} s  {flip.command:<6}  {how} after {flip.seconds:.2f} s  ({flip.why})")
    return tuple(lines)


def _facts(run: Run, experiment: ExperimentPlan) -> tuple[tuple[str, str], ...]:
    treatment, schedule = experiment.treatment, experiment.schedule
    facts = [
        ("apply", treatment.apply),
        ("revert", treatment.revert),
        (
            "schedule",
            f"{schedule.order}, {schedule.blocks} blocks, windows of {schedule.window:g} s; "
            f"settling {schedule.settle:g} s",
        ),
        ("host", run.fingerprint("server").host),
    ]
    return tuple((label, text) for label, text in facts if text)
