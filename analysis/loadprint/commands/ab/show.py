"""From a run directory to a `Result`: everything is worked out again from what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadprint.commands.ab.analysis import About, analyse
from loadprint.commands.ab.gates import Limits
from loadprint.commands.ab.result import Check, Result
from loadprint.commands.ab.windows import windows
from loadprint.errors import InputError
from loadprint.reading import bounds, documents
from loadprint.reading.cpusets import cpuset, user_hz
from loadprint.reading.queries import Store
from loadprint.reading.recording import COPY_AGAIN, Run, open_run, read_object, require_intact

NEEDED = {
    "": ("name", "title"),
    "gates": ("mix_distance", "load_difference"),
    "schedule": ("order", "blocks", "window", "settle"),
    "treatment": ("apply", "revert"),
}


def result(path: Path) -> Result:
    """Work an experiment's figures out. Raises InputError where `path` is no recording of one."""
    run = open_run(path)
    require_intact(run)
    described = path / "load" / "experiment.json"
    if not described.is_file():
        raise InputError(path, "is not an A/B experiment", "give a directory that `loadprint ab run` made")
    experiment = read_object(described)
    for part, keys in NEEDED.items():
        holder = (experiment.get(part) or {}) if part else experiment
        if lacking := [key for key in keys if holder.get(key) is None]:
            raise InputError(described, f"lacks the key {part}{'.' if part else ''}{lacking[0]}", COPY_AGAIN)
    gates, schedule = experiment["gates"], experiment["schedule"]
    limits = Limits(gates["mix_distance"], gates["load_difference"], gates.get("min_cpu"))
    name, title, order = experiment["name"], experiment["title"], schedule["order"]
    found = []
    if (path / "server" / "ticks.parquet").is_file():
        found = windows(run, Store(), cpuset(run, "server"), user_hz(run, "server"))
    elif run.status == "running":
        mend = f"wait for its end; if nothing of it runs any more: `loadprint ab revert {path}`"
        raise InputError(path, "is still running, or was killed with all its processes", mend)
    about = About(
        name,
        order,
        title,
        status="complete" if run.status == "complete" else "aborted",
        reason=str(run.meta.get("reason") or ("it is still running" if run.status == "running" else "")),
        guards=_guards(path),
        flips=_flips(run),
        facts=_facts(run, experiment),
    )
    return analyse(found, limits, about)


def _guards(path: Path) -> tuple[Check, ...]:
    """What the guards saw; after a kill of the controller nobody has told it."""
    file = path / "load" / "guards.json"
    if not file.is_file():
        return (Check("guards", "untested", "the controller was killed before it told what they saw"),)
    try:
        listed = read_object(file)["checks"]
        told = tuple(Check(*(str(check[key]) for key in ("name", "state", "text"))) for check in listed)
    except (KeyError, TypeError) as error:
        raise InputError(file, f"lacks the key {error}", COPY_AGAIN) from error
    return told or (Check("guards", "untested", "none was set but silence"),)


def _flips(run: Run) -> tuple[str, ...]:
    """Each use of the switch: seconds since the begin, command, exit, and what it said."""
    file = run.path / "load" / "switches.jsonl"
    measure = run.phase("measure")
    if not file.is_file() or measure is None:
        return ()
    told, begun = [], 0
    for line in bounds.read_text(file, bounds.LINES, COPY_AGAIN, errors="replace").splitlines():
        try:
            each: dict[str, Any] = documents.loads(line)
            if each.get("event") == "begin":
                begun = int(each["monotonic_ns"])
            elif each.get("what") in ("apply", "revert"):
                took = (int(each["monotonic_ns"]) - begun) / 1e9
                how = "timed out" if each["exit"] is None else f"exit {each['exit']}"
                at = (begun - measure.begin_ns) / 1e9
                told.append(f"{at:8.1f} s  {each['what']:<6}  {how} after {took:.2f} s  ({each['why']})")
        except (ValueError, KeyError, TypeError, AttributeError):  # no line of the keeper's
            continue
    return tuple(told)


def _facts(run: Run, experiment: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    treatment, schedule = experiment["treatment"], experiment["schedule"]
    said = [
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
        said.append(("host", str(host)))
    return tuple(said)
