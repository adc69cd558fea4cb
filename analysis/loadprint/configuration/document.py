"""Reads a YAML mapping with the line of each key, and applies `--set` overrides and scales.

PyYAML's composed nodes have the lines; ruamel.yaml would be a second YAML library next to Ansible's PyYAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Loc = tuple[str | int, ...]
MERGE = "tag:yaml.org,2002:merge"  # the key <<: earlier mappings have precedence, https://yaml.org/type/merge


class DocumentError(Exception):
    """An unusable file; the message is one line with the place and the fix."""


@dataclass
class Document:
    """A YAML mapping as plain Python values; `places` maps a path of keys to `FILE:LINE` or its `--set`."""

    name: str
    data: dict[str, Any]
    places: dict[Loc, str] = field(default_factory=dict)

    def place(self, loc: Loc) -> str:
        """Return the place of `loc`, or of the nearest parent that has one."""
        for length in range(len(loc), 0, -1):
            if loc[:length] in self.places:
                return self.places[loc[:length]]
        return self.name


def compose(path: Path, kind: str = "campaign", example: str = "see ansible/campaigns/quick.yml") -> Document:
    """Read a YAML file that holds one mapping. Raises DocumentError with file and line.

    `kind` names the file in messages, `example` refers to an example.
    """
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except FileNotFoundError:
        raise DocumentError(f"{path}: no such {kind} file{_neighbours(path)}; {example}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DocumentError(f"{path}:{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(root, yaml.MappingNode):
        raise DocumentError(f"{path}:1: not a mapping of keys, as a {kind} file must be; {example}")
    document = Document(str(path), {})
    document.data = _value(root, (), document)
    return document


def _neighbours(path: Path) -> str:
    names = sorted(other.stem for other in path.parent.glob("*.yml"))
    return f"; available: {', '.join(names)}" if names else ""


def _value(node: yaml.Node, loc: Loc, document: Document) -> Any:
    """Turn a node into Python values and store the place of every key below it."""
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*loc, index), document) for index, child in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise DocumentError(f"{document.name}:{node.start_mark.line + 1}: {error}") from None
    inherited: dict[str, Any] = {}
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == MERGE:
            merged = _value(value_node, loc, document)
            for each in merged if isinstance(merged, list) else [merged]:
                inherited = {**(each if isinstance(each, dict) else {}), **inherited}
            continue
        place = f"{document.name}:{key_node.start_mark.line + 1}"
        key = str(key_node.value)
        if key in result:
            raise DocumentError(
                f'{place}: duplicate key "{key}"; it is already at {document.place((*loc, key))}'
            )
        document.places[(*loc, key)] = place
        result[key] = _value(value_node, (*loc, key), document)
    return inherited | result


def override(document: Document, text: str) -> None:
    """Set one key from `key.key=value`; the value is YAML. Raises DocumentError."""
    name, equals, value_text = text.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise DocumentError(f"--set {text}: write it as key.key=value")
    try:
        value = yaml.safe_load(value_text)
    except yaml.YAMLError:
        raise DocumentError(f"--set {text}: the value is not YAML") from None
    target = document.data
    for depth, key in enumerate(keys[:-1], start=1):
        below = target.setdefault(key, {})
        if not isinstance(below, dict):
            raise DocumentError(f"--set {text}: {'.'.join(keys[:depth])} is a single value and has no keys")
        target = below
    target[keys[-1]] = value
    document.places[tuple(keys)] = f"--set {name}"


def scaled(document: Document, scale: str) -> Document:
    """Return a copy with the overrides `scales.SCALE` merged in; lists and values are replaced.

    Raises DocumentError for an unknown scale.
    """
    sets = document.data.get("scales") or {}
    if not isinstance(sets, dict) or scale not in sets:
        known = (
            f"available: {', '.join(sets)}" if isinstance(sets, dict) and sets else "the campaign has none"
        )
        raise DocumentError(f'{document.name}: no scale "{scale}"; {known}')
    merged = Document(document.name, deepcopy(document.data), dict(document.places))
    if isinstance(sets[scale], dict):
        _merge(merged, merged.data, deepcopy(sets[scale]), ("scales", scale))
    return merged


def _merge(document: Document, target: dict[str, Any], changes: Mapping[str, Any], source: Loc) -> None:
    for key, value in changes.items():
        here = (*source, key)
        below = target.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _merge(document, below, value, here)
            continue
        target[key] = value
        for loc, place in list(document.places.items()):
            if loc[: len(here)] == here:
                document.places[loc[2:]] = place
