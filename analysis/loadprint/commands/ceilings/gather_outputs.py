"""Reads a directory of tool outputs and writes `ceilings.json`.

`steps.json` lists the steps: a step is one command, run several times; its outputs are `STEP.1`,
`STEP.2`, … A failed step has `STEP.failed` with the tool's last output.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from loadprint.commands.ceilings import claims, outputs
from loadprint.commands.ceilings.outputs import MEASURES, Measure, MeasuredRepeat
from loadprint.errors import InputError, as_input_error
from loadprint.printable import printable
from loadprint.reading import bounds
from loadprint.reading.documents import EachScalar, Integer, JsonObject, Listed, Named, read
from loadprint.reading.recording import refuse_special_files
from loadprint.safe_files import write_output

STEPS = "steps.json"
FIX = "let ansible/ceilings.yml write it"


class CeilingStep(JsonObject):
    """A command that was run several times."""

    id: str
    measure: str
    tool: str
    depth: Integer | None = None
    argv: Listed[str] = ()


class CeilingPlan(JsonObject):
    """steps.json."""

    host: str
    date: str
    nic: str
    claimed: EachScalar = {}
    tools: Named[str] = {}
    steps: Listed[CeilingStep]
    left_out: Named[str] = {}


class _Step(NamedTuple):
    """The repeats of a step; `failed` has the reason of each repeat without a figure."""

    planned: CeilingStep
    repeats: Listed[MeasuredRepeat] = ()
    failed: Listed[str] = ()


def gather(directory: Path) -> dict[str, Any]:
    """Read a directory of outputs. Raises InputError if `steps.json`, a claim or another file is unusable."""
    refuse_special_files(directory)
    plan = read(directory / STEPS, CeilingPlan)
    claimed = claims.read(plan.claimed)
    entries, missing = [], []
    for measure in MEASURES.values():
        planned = [step for step in plan.steps if step.measure == measure.id]
        steps = [_step(directory, step) for step in planned]
        done = [step for step in steps if step.repeats]
        left_out = plan.left_out.get(measure.id)
        if done:
            entries.append(_entry(measure, plan, done, claimed.get(measure.id)))
        elif steps or left_out:
            reason = left_out or steps[0].failed[0]
            missing.append({"id": measure.id, "label": measure.label, "reason": reason})
    return {"format_version": 1, "ceilings": entries, "missing": missing}


def _step(directory: Path, planned: CeilingStep) -> _Step:
    """Read one step; a repeat without a figure is not counted."""
    name = Path(planned.id).name  # of `../x`, only x
    failed = directory / f"{name}.failed"
    if failed.is_file():
        output = bounds.read_text(failed, bounds.TABLE, FIX, errors="replace")
        return _Step(planned, failed=(f"{planned.tool}: {_error_message(output)}",))
    repeats, errors = [], []
    files = [path for path in directory.glob(f"{name}.*") if path.suffix[1:].isdecimal()]
    for path in sorted(files, key=lambda path: int(path.suffix[1:])):
        try:
            repeats.append(outputs.read(planned.measure, bounds.read_text(path, bounds.TABLE, FIX)))
        except (InputError, ValueError) as error:
            message = error.what if isinstance(error, InputError) else str(error)
            errors.append(printable(f"{planned.tool}: {path.name}: {message}"))
    if not repeats and not errors:
        errors.append("it was not run")
    return _Step(planned, tuple(repeats), tuple(errors))


def _error_message(output: str) -> str:
    """Return the error of a failed tool: iperf3's is in its JSON, that of others is the last line."""
    iperf = re.search(r'"error":\s*"([^"\n]+)', output)
    return printable(iperf.group(1) if iperf else outputs.last_line(output)) or "it printed no message"


def _entry(measure: Measure, plan: CeilingPlan, steps: list[_Step], claimed: float | None) -> dict[str, Any]:
    """Return one ceiling: the best repeat of the queue depth with the best median."""
    best = max(steps, key=lambda step: median(repeat.value for repeat in step.repeats))
    top = max(best.repeats, key=lambda repeat: repeat.value)
    argv, tool, depth = best.planned.argv, best.planned.tool, best.planned.depth
    entry: dict[str, Any] = {
        "id": measure.id,
        "label": measure.label,
        "quantity": measure.quantity.format(nic=plan.nic),
        "value": top.value,
        "unit": measure.unit,
        "values": [repeat.value for repeat in best.repeats],
        "latency_s": dict(top.latency_s),
        "tool": plan.tools.get(tool, tool),
        "command": shlex.join([os.path.basename(argv[0]), *argv[1:]] if argv else []),
        "date": plan.date,
        "host": plan.host,
    }
    if depth is not None:
        entry["depth"] = depth
        entry["depths"] = {
            str(step.planned.depth): [repeat.value for repeat in step.repeats] for step in steps
        }
    if best.failed:
        entry["failed"] = list(best.failed)
    if claimed is not None:
        entry["claimed"] = claimed
    return entry if measure.row else {**entry, "row": False}


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write `ceilings.json` atomically, with mode 0600. Raises InputError."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with as_input_error(path, "name another file after -o"):
        write_output(path, text.encode(), 0o600)
