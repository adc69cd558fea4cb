"""Reads a campaign file and says, for every mistake, the file, the line and the key.

YAML is composed (not just loaded), so that each key keeps its line; pydantic then checks names and types.
What it cannot see: whether a workload takes an option; the generator says that when it prepares the data.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from .campaign_model import Campaign

Loc = tuple[str | int, ...]


class CampaignError(Exception):
    """A campaign that cannot be used; the message is one line with the place and the mend."""


@dataclass
class Document:
    """A YAML mapping and where each of its keys stands.

    `data` holds plain Python values; `places` maps a path of keys to `FILE:LINE` (or the `--set` that gave
    it).
    """

    name: str
    data: dict[str, Any]
    places: dict[Loc, str] = field(default_factory=dict)

    def place(self, loc: Loc) -> str:
        """Give the place of `loc`, or of the nearest parent that has one."""
        for length in range(len(loc), 0, -1):
            if loc[:length] in self.places:
                return self.places[loc[:length]]
        return self.name


def load(path: Path, overrides: Sequence[str] = (), workloads: Sequence[str] = ()) -> Campaign:
    """Read, override and validate the campaign in `path`.

    `overrides` are `a.b=value` with YAML values; `workloads` are the names that the generator knows (none:
    not checked). Raises CampaignError.
    """
    document = _compose(path)
    for override in overrides:
        _override(document, override)
    try:
        campaign = Campaign.model_validate(document.data)
    except ValidationError as error:
        raise CampaignError(_describe(document, error)) from None
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


def _compose(path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except FileNotFoundError:
        raise CampaignError(f"{path}: no such campaign file{_neighbours(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CampaignError(f"{path}: cannot read it: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise CampaignError(f"{path}:{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise CampaignError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(root, yaml.MappingNode):
        raise CampaignError(f"{path}:1: a campaign is a mapping of keys, see ansible/campaigns/quick.yml")
    document = Document(str(path), {})
    document.data = _value(root, (), document)
    return document


def _neighbours(path: Path) -> str:
    names = sorted(other.stem for other in path.parent.glob("*.yml"))
    return f"; there are: {', '.join(names)}" if names else ""


def _value(node: yaml.Node, loc: Loc, document: Document) -> Any:
    """Turn a node into Python values and note the place of every key below it."""
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*loc, index), document) for index, child in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise CampaignError(f"{document.name}:{node.start_mark.line + 1}: {error}") from None
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = f"{document.name}:{key_node.start_mark.line + 1}"
        key = str(key_node.value)
        if key in result:
            raise CampaignError(
                f'{place}: "{key}" is given twice; the first is at {document.place((*loc, key))}'
            )
        document.places[(*loc, key)] = place
        result[key] = _value(value_node, (*loc, key), document)
    return result


def _override(document: Document, override: str) -> None:
    name, equals, text = override.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise CampaignError(f"--set {override}: write it as key.key=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise CampaignError(f"--set {override}: the value is not YAML") from None
    target = document.data
    for depth, key in enumerate(keys[:-1], start=1):
        below = target.setdefault(key, {})
        if not isinstance(below, dict):
            raise CampaignError(f"--set {override}: {'.'.join(keys[:depth])} holds one value, no keys")
        target = below
    target[keys[-1]] = value
    document.places[tuple(keys)] = f"--set {name}"


def _describe(document: Document, error: ValidationError) -> str:
    """Describe the first mistake in the file's order; the others are counted.

    A misspelt key is also a missing one: unknown keys come first.
    """
    mistakes = error.errors()
    unknown = [mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"]
    first = min(unknown or mistakes, key=lambda mistake: _line(document.place(mistake["loc"])))
    loc = first["loc"]
    where = ".".join(str(part) for part in loc)
    if first["type"] == "extra_forbidden":
        known = _keys(loc[:-1])
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


def _keys(loc: Loc) -> list[str]:
    """List the keys that the model has at `loc` (a mapping of free names counts as one step)."""
    model: type[BaseModel] = Campaign
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
