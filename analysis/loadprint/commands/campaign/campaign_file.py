"""Reads and validates a campaign file; every error names the file, the line and the key.

YAML is composed, not loaded, to keep the line of each key; pydantic then checks names and types.
Options of a workload are not checked here: the generator checks them when it prepares the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from pydantic import ValidationError

from loadprint.commands.campaign.campaign_model import Campaign
from loadprint.commands.campaign.template import fill_in
from loadprint.configuration.document import Document, DocumentError, compose, override, scaled
from loadprint.configuration.mistakes import describe, hint

MAX_SCALES = 20  # each is validated with the whole campaign


def load(
    path: Path,
    overrides: Sequence[str] = (),
    workloads: Sequence[str] = (),
    scales: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> Campaign:
    """Read, scale, override and validate the campaign in `path`.

    `overrides` are `a.b=value` with YAML values; `workloads` are the names of the generator's
    workloads (none: not checked); `scales` are names of sets of overrides in the file. Sides that need a
    `missing` program are left out. Raises DocumentError.
    """
    document = compose(path)
    in_file = document.data.get("scales")
    if isinstance(in_file, dict) and len(in_file) > MAX_SCALES:
        raise DocumentError(f"{document.place(('scales',))}: more than {MAX_SCALES} scales; leave some out")
    # sets that are not chosen are validated too
    for name in in_file if isinstance(in_file, dict) else ():
        if name not in scales:
            _resolved(document, [name], (), workloads)
    campaign = _resolved(document, scales, overrides, workloads)
    return without(campaign, missing) if missing else campaign


def without(campaign: Campaign, missing: Sequence[str]) -> Campaign:
    """Leave out the sides that need a missing program. Raises DocumentError if it is the reference."""
    left_out = {
        name: [program for program in side.needs if program in missing]
        for name, side in campaign.sides.items()
    }
    sides = {name: side for name, side in campaign.sides.items() if not left_out[name]}
    reasons = [
        f"side {name} is left out: the load's host has no {program}; {campaign.sides[name].needs[program]}"
        for name, programs in left_out.items()
        for program in programs[:1]
    ]
    kept = campaign.model_copy(update={"sides": sides, "left_out": reasons})
    if campaign.reference not in kept.columns:
        raise DocumentError(f"{'; '.join(reasons)}; the reference {campaign.reference} needs it")
    return kept


def _resolved(
    document: Document, scales: Sequence[str], overrides: Sequence[str], workloads: Sequence[str]
) -> Campaign:
    document = Document(document.name, deepcopy(document.data), dict(document.places))
    for name in scales:
        document = scaled(document, name)
    for text in overrides:
        override(document, text)
    if isinstance(in_file := document.data.get("scales"), dict):
        document.data["scales"] = {name: {} for name in in_file}
    document.data.setdefault("scale", list(scales))
    fill_in(document)
    try:
        campaign = Campaign.model_validate(document.data)
    except ValidationError as error:
        raise DocumentError(describe(document, error, Campaign)) from None
    if workloads:
        _check_workloads(document, campaign, workloads)
    if campaign.precision is not None:
        from loadprint.catalogue.files import catalogue  # noqa: PLC0415  for a precision only

        known = list(catalogue().named_rows)
        for name in campaign.rows:
            if name not in known:
                raise DocumentError(
                    f'{document.place(("rows",))}: rows: no row "{name}"; {hint(name, known, "known are")}'
                )
    return campaign


def _check_workloads(document: Document, campaign: Campaign, known: Sequence[str]) -> None:
    for group, entries in (("data", campaign.data), ("sides", campaign.sides)):
        for name, entry in entries.items():
            if entry.workload not in known:
                place, near = (
                    document.place((group, name, "workload")),
                    hint(entry.workload, known, "known are"),
                )
                raise DocumentError(f'{place}: unknown workload "{entry.workload}" in {group}.{name}; {near}')
