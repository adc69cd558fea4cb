"""Reads and validates a campaign file; every error names the file, the line and the key.

YAML is composed, not loaded, to keep the line of each key; pydantic then checks names and types.
loadprint-load checks the workloads and their options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path

from pydantic import ValidationError

from loadprint.commands.campaign.campaign_model import Campaign
from loadprint.commands.campaign.load_program import LoadProgram
from loadprint.commands.campaign.template import fill_in
from loadprint.configuration.document import Document, DocumentError, compose, override, scaled
from loadprint.configuration.mistakes import describe, hint
from loadprint.reading.declared import DECLARED

MAX_SCALES = 20  # each is validated with the whole campaign


def load(
    path: Path,
    overrides: Sequence[str] = (),
    program: LoadProgram | None = None,
    scales: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> Campaign:
    """Read, scale, override and validate the campaign in `path`.

    `overrides` are `a.b=value` with YAML values; without `program` workloads and their options are not
    checked; `scales` are names of sets of overrides in the file. Sides that need a `missing` program are left
    out. Raises DocumentError.
    """
    document = compose(path)
    in_file = document.data.get("scales")
    if isinstance(in_file, dict) and len(in_file) > MAX_SCALES:
        raise DocumentError(f"{document.place(('scales',))}: more than {MAX_SCALES} scales; leave some out")
    # sets that are not chosen are validated too
    for name in in_file if isinstance(in_file, dict) else ():
        if name not in scales:
            _resolved(document, [name], (), program)
    campaign = _resolved(document, scales, overrides, program)
    return without(campaign, missing) if missing else campaign


def without(campaign: Campaign, missing: Sequence[str]) -> Campaign:
    """Leave out the sides that need a missing program. Raises DocumentError if they cannot be spared."""
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
    if kept.design == "alternate" and len(kept.columns) < 2:
        raise DocumentError(f"{'; '.join(reasons)}; one side cannot alternate, {campaign.instead}")
    return kept


def _resolved(
    document: Document, scales: Sequence[str], overrides: Sequence[str], program: LoadProgram | None
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
    if program:
        program.check(document, campaign)
    recorder = campaign.recorder
    _check_names(document, ("recorder", "probes"), "probe", recorder.probes, DECLARED)
    _check_names(document, ("recorder", "more_probes"), "probe", recorder.more_probes, DECLARED)
    if campaign.precision is not None:
        from loadprint.catalogue.files import catalogue  # noqa: PLC0415  for a precision only

        _check_names(document, ("rows",), "row", campaign.rows, catalogue().named_rows)
    return campaign


def _check_names(
    document: Document, loc: tuple[str, ...], what: str, names: Sequence[str], entries: Mapping[str, object]
) -> None:
    """Refuse names that do not exist. Raises DocumentError."""
    if unknown := [name for name in names if name not in entries]:
        near = hint(unknown[0], list(entries), "known are")
        raise DocumentError(f'{document.place(loc)}: {".".join(loc)}: no {what} "{unknown[0]}"; {near}')
