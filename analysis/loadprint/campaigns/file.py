"""Reads a campaign file and says, for every mistake, the file, the line and the key.

YAML is composed (not just loaded), so that each key keeps its line; pydantic then checks names and types.
What it cannot see: whether a workload takes an option; the generator says that when it prepares the data.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from loadprint.campaigns.document import CampaignError, Document, Loc, compose, override, scaled
from loadprint.campaigns.model import Campaign
from loadprint.campaigns.template import fill_in

__all__ = ["CampaignError", "describe", "load"]


def load(
    path: Path,
    overrides: Sequence[str] = (),
    workloads: Sequence[str] = (),
    scales: Sequence[str] = (),
) -> Campaign:
    """Read, scale, override and validate the campaign in `path`.

    `overrides` are `a.b=value` with YAML values; `workloads` are the names that the generator knows (none:
    not checked); `scales` are names of sets of overrides in the file. Raises CampaignError.
    """
    document = compose(path)
    given = document.data.get("scales")
    # a mistake in a set that is not chosen is found too, not only on the day it is needed
    for name in given if isinstance(given, dict) else ():
        if name not in scales:
            _resolved(document, [name], (), workloads)
    return _resolved(document, scales, overrides, workloads)


def _resolved(
    document: Document, scales: Sequence[str], overrides: Sequence[str], workloads: Sequence[str]
) -> Campaign:
    document = Document(document.name, deepcopy(document.data), dict(document.places))
    for name in scales:
        document = scaled(document, name)
    for text in overrides:
        override(document, text)
    if isinstance(document.data.get("scales", {}), dict):
        document.data.pop("scales", None)
    document.data.setdefault("scale", list(scales))
    fill_in(document)
    try:
        campaign = Campaign.model_validate(document.data)
    except ValidationError as error:
        raise CampaignError(describe(document, error, Campaign)) from None
    if workloads:
        _check_workloads(document, campaign, workloads)
    return campaign


def _check_workloads(document: Document, campaign: Campaign, known: Sequence[str]) -> None:
    for group, entries in (("data", campaign.data), ("sides", campaign.sides)):
        for name, entry in entries.items():
            if entry.workload not in known:
                near = difflib.get_close_matches(entry.workload, known, n=1)
                hint = f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(known)}"
                place = document.place((group, name, "workload"))
                raise CampaignError(f'{place}: unknown workload "{entry.workload}" in {group}.{name}; {hint}')


def describe(document: Document, error: ValidationError, root: type[BaseModel]) -> str:
    """Describe the first mistake in the file's order; the others are counted. `root` is the file's model.

    A misspelt key is also a missing one: unknown keys come first.
    """
    mistakes = error.errors()
    unknown = [mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"]
    first = min(unknown or mistakes, key=lambda mistake: _line(document.place(mistake["loc"])))
    loc = first["loc"]
    where = ".".join(str(part) for part in loc)
    if first["type"] == "extra_forbidden":
        known = _keys(loc[:-1], root)
        near = difflib.get_close_matches(str(loc[-1]), known, n=1)
        parent = f" in {'.'.join(map(str, loc[:-1]))}" if len(loc) > 1 else ""
        hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}"
        text = f'unknown key "{loc[-1]}"{parent}; {hint}'
    elif first["type"] == "missing":
        text = f'key "{where}" is missing'
    else:
        text = first["msg"].removeprefix("Value error, ")
        if where:
            text = f"{where}: {text}"
        else:  # a rule over the whole file: its message begins with the key it is about
            loc = tuple(text.partition(":")[0].split("."))
    more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    return f"{document.place(loc)}: {text}{more}"


def _line(place: str) -> int:
    line = place.rpartition(":")[2]
    return int(line) if line.isdigit() else 0


def _keys(loc: Loc, root: type[BaseModel]) -> list[str]:
    """List the keys that the model has at `loc` (a mapping of free names counts as one step)."""
    model = root
    inside: type[BaseModel] | None = None
    for part in loc:
        if inside is not None:
            model, inside = inside, None
            continue
        annotation = model.model_fields[str(part)].annotation
        choices = (annotation, *get_args(annotation))
        models = [one for one in choices if isinstance(one, type) and issubclass(one, BaseModel)]
        if not models:
            return []
        if models[0] is annotation:
            model = models[0]
        else:
            inside = models[0]
    return sorted(model.model_fields) if inside is None else []
