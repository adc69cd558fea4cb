"""Computes the `Result` of an experiment from its run directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.commands.ab.analysis import analyse
from loadprint.commands.ab.gates import Limits
from loadprint.commands.ab.result import Check, Result
from loadprint.commands.ab.windows import windows
from loadprint.errors import InputError
from loadprint.reading import bounds, documents
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.cpusets import cpuset
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run, open_run, read_object, require_intact

DESCRIBED = Path("load") / "experiment.json"
NEEDED = {
    "": ("name", "title"),
    "gates": ("mix_distance", "load_difference"),
    "schedule": ("order", "blocks", "window", "settle"),
    "treatment": ("apply", "revert"),
}


def is_experiment(path: Path) -> bool:
    """Whether a path is the recording of an A/B experiment."""
    return (path / DESCRIBED).is_file()


def result(path: Path) -> Result:
    """Compute the figures of an experiment. Raises InputError if `path` is not a recording of one."""
    run = open_run(path)
    require_intact(run)
    if not is_experiment(path):
        raise InputError(path, "not an A/B experiment", "give a directory that `loadprint ab run` wrote")
    described = path / DESCRIBED
    experiment = read_object(described)
    for part, keys in NEEDED.items():
        holder = (experiment.get(part) or {}) if part else experiment
        if missing := [key for key in keys if holder.get(key) is None]:
            raise InputError(described, f"no key {part}{'.' if part else ''}{missing[0]}", COPY_AGAIN)
    gates, schedule = experiment["gates"], experiment["schedule"]
    known = {key: gates[key] for key in Limits.__dataclass_fields__ if gates.get(key) is not None}
    limits = Limits(**known)
    measured = []
    if (path / "server" / "ticks.parquet").is_file():
        measured = windows(run, Store(), cpuset(run, "server"))
    elif run.status == "running":
        fix = f"wait for its end; if none of its processes runs: `loadprint ab revert {path}`"
        raise InputError(path, "is still running, or was killed with all its processes", fix)
    facts = Result(
        experiment["name"],
        experiment["title"],
        schedule["order"],
        status="complete" if run.status == "complete" else "aborted",
        reason=str(run.meta.get("reason") or ("it is still running" if run.status == "running" else "")),
        checks=_guards(path),
        flips=_flips(run),
        facts=_facts(run, experiment),
    )
    return analyse(measured, limits, facts)


def _guards(path: Path) -> tuple[Check, ...]:
    """Read the checks of the guards, written at the end."""
    file = path / "load" / "guards.json"
    if not file.is_file():
        return (Check("guards", "untested", "its process was killed and did not record them"),)
    try:
        listed = read_object(file)["checks"]
        checks = tuple(Check(*(str(check[key]) for key in ("name", "state", "text"))) for check in listed)
    except (KeyError, TypeError) as error:
        raise InputError(file, f"no key {error}", COPY_AGAIN) from error
    return checks or (Check("guards", "untested", "only the guard silence was set"),)


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
    file = path / "load" / "switches.jsonl"
    if not file.is_file():
        return
    begin_ns = 0
    for line in bounds.read_text(file, bounds.LINES, COPY_AGAIN, errors="replace").splitlines():
        try:
            each: dict[str, Any] = documents.loads(line)
            if each.get("event") == "begin":
                begin_ns = int(each["monotonic_ns"])
            elif each.get("what") in ("apply", "revert"):
                seconds = (int(each["monotonic_ns"]) - begin_ns) / 1e9
                yield Flip(begin_ns, seconds, each["what"], each["exit"], each["why"])
        except (ValueError, KeyError, TypeError, AttributeError):  # cut off by a kill
            continue


def _flips(run: Run) -> tuple[str, ...]:
    """Return one line per switch: seconds since the start, command, exit status, duration, reason."""
    measure = run.phase("measure")
    if measure is None:
        return ()
    lines = []
    for each in flips(run.path):
        how = "timed out" if each.exit is None else f"exit {each.exit}"
        at = (each.begin_ns - measure.begin_ns) / 1e9
        lines.append(f"{at:8.1f} s  {each.command:<6}  {how} after {each.seconds:.2f} s  ({each.why})")
    return tuple(lines)


def _facts(run: Run, experiment: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    treatment, schedule = experiment["treatment"], experiment["schedule"]
    facts = [
        ("apply", str(treatment["apply"])),
        ("revert", str(treatment["revert"])),
        (
            "schedule",
            f"{schedule['order']}, {schedule['blocks']} blocks, windows of {schedule['window']:g} s; "
            f"settling {schedule['settle']:g} s",
        ),
    ]
    host = run.fingerprint("server").get("host")
    if host:
        facts.append(("host", str(host)))
    return tuple(facts)
