"""Merges several executions of one sweep, with the server as one more dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import SweepCell, Swept
from loadprint.errors import InputError

# parts of a campaign that must be equal for the server to be the only difference
COMPARED = ("mode", "phases", "state", "placement", "data", "sides", "scale", "variables")
NOT_INTERLEAVED = (
    "the executions ran one after the other, not in random order: a change of the host between them appears "
    "as a difference; to detect one, run a third execution with the first server"
)


def read(paths: Sequence[Path]) -> Swept:
    """Read executions; the server's version becomes the dimension `server` of their cells.

    Raises InputError where one is unusable, of mode equal-load, or counts as the same server as another.
    """
    if len(paths) == 1:
        return cells.read(paths[0])
    executions = [cells.read(path) for path in paths]
    for merged in executions:
        if merged.execution.campaign.mode == "equal-load":
            fix = f"compare sides of several executions with `loadprint compare {merged.path}:@70 …`"
            raise InputError(merged.path, "is of mode equal-load: its rates depend on its own sides", fix)
    labels = [_server(execution) for execution in executions]
    if len(set(labels)) < len(labels):
        # the same server twice: named by time
        labels = [execution.path.resolve().name for execution in executions]
    if len(set(labels)) < len(labels):
        raise InputError(executions[-1].path, "is given twice", "name each execution once")
    first = executions[0]
    return Swept(
        first.path,
        first.execution.model_copy(update={"reference": f"{first.execution.reference} {labels[0]}"}),
        tuple(
            _cell(cell, label)
            for execution, label in zip(executions, labels, strict=True)
            for cell in execution.cells
        ),
        tuple(
            (f"{execution.path.name}/{run}", why)
            for execution in executions
            for run, why in execution.missing
        ),
        (NOT_INTERLEAVED, *_differences(executions)),
    )


def _server(swept: Swept) -> str:
    """Flavour and version of the server, as recorded by the runs."""
    for run in swept.runs:
        if version := run.run.meta.versions.get("server") or run.run.server.version:
            return str(version)
    return swept.path.resolve().name


def _cell(cell: SweepCell, label: str) -> SweepCell:
    plan = cell.plan.model_copy(update={"cell": {**cell.plan.cell, "server": label}})
    return replace(cell, name=f"{cell.name} {label}", plan=plan)


def _differences(executions: Sequence[Swept]) -> list[str]:
    """Parts of the campaign, and hosts, in which the executions differ, apart from the server's source."""
    first, texts = _compared(executions[0]), []
    for execution in executions[1:]:
        parts = _compared(execution)
        keys = [key for key in first if parts[key] != first[key]]
        if keys:
            texts.append(f"{execution.path} also differs from {executions[0].path} in {', '.join(keys)}")
    return texts


def _compared(swept: Swept) -> dict[str, Any]:
    campaign = swept.execution.campaign
    server = {key: value for key, value in campaign.server.items() if key != "source"}
    roles = [run.run.meta.roles for run in swept.runs]
    return {key: getattr(campaign, key, None) for key in COMPARED} | {
        "server": server,
        "hosts or CPUs": roles[:1],
    }
