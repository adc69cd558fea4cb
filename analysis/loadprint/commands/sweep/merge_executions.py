"""Several executions of one sweep as one, with the server as one more dimension: versions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import Cell, Swept
from loadprint.errors import InputError

# what must be alike for the server to be what differs
ASKED = ("mode", "phases", "state", "placement", "data", "sides", "scale", "variables")
NOT_INTERLEAVED = (
    "these are executions after one another, not runs in random order: what changed on the host meanwhile "
    "counts as a difference; a third execution, of the first server again, tells"
)


def read(paths: Sequence[Path]) -> Swept:
    """Read executions; each one's cells get `server`, its version, as a dimension.

    Raises InputError where one is unusable, of mode equal-load, or counts as the same server as another.
    """
    if len(paths) == 1:
        return cells.read(paths[0])
    found = [cells.read(path) for path in paths]
    for each in found:
        if (each.execution.get("campaign") or {}).get("mode") == "equal-load":
            mend = f"`loadprint compare {each.path}:@70 …` lays the sides of several executions side by side"
            raise InputError(each.path, "is of mode equal-load, whose rates are its own", mend)
    labels = [_server(each) for each in found]
    if len(set(labels)) < len(labels):
        # the same server twice: told apart by when
        labels = [each.path.resolve().name for each in found]
    if len(set(labels)) < len(labels):
        raise InputError(found[-1].path, "is given twice", "name each execution once")
    first = found[0]
    return Swept(
        first.path,
        first.execution | {"reference": _named(first.reference, labels[0])},
        tuple(_cell(cell, label) for each, label in zip(found, labels, strict=True) for cell in each.cells),
        tuple((f"{each.path.name}/{run}", why) for each in found for run, why in each.missing),
        (NOT_INTERLEAVED, *_differences(found)),
    )


def _server(swept: Swept) -> str:
    """Flavour and version of the server, as the campaign's runs have it."""
    for cell in swept.cells:
        for run in cell.runs:
            told = (run.run.meta.get("versions") or {}).get("server") or (run.run.server or {}).get("version")
            if told:
                return str(told)
    return swept.path.resolve().name


def _named(name: str, label: str) -> str:
    return f"{name} {label}"


def _cell(cell: Cell, label: str) -> Cell:
    own = cell.plan.get("cell") or {}
    plan = cell.plan | {"cell": {**own, "server": label}}
    return replace(cell, name=_named(cell.name, label), plan=plan)


def _differences(found: Sequence[Swept]) -> list[str]:
    """Parts of the campaign, and hosts, in which the executions differ beside the server's source."""
    first, said = _asked(found[0]), []
    for each in found[1:]:
        own = _asked(each)
        keys = [key for key in first if own[key] != first[key]]
        if keys:
            said.append(f"{each.path} differs from {found[0].path} in {', '.join(keys)} too")
    return said


def _asked(swept: Swept) -> dict[str, Any]:
    campaign = swept.execution.get("campaign") or {}
    server = {key: value for key, value in (campaign.get("server") or {}).items() if key != "source"}
    roles = [run.run.meta.get("roles") for cell in swept.cells for run in cell.runs]
    return {key: campaign.get(key) for key in ASKED} | {"server": server, "hosts or CPUs": roles[:1]}
