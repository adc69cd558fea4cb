"""Reads a YAML mapping with the line of each key, and applies `--set` overrides and scales.

PyYAML's composed nodes have the lines; ruamel.yaml would be a second YAML library next to Ansible's PyYAML.
Size, nesting, values and numbers are limited: 401 bytes of nested aliases stand for 10^9 values.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from loadprint.errors import one_line
from loadprint.printable import UNSAFE

Loc = tuple[str | int, ...]
TEXT = "tag:yaml.org,2002:str"
MERGE = "tag:yaml.org,2002:merge"  # the key <<: earlier mappings have precedence, https://yaml.org/type/merge
MAX_BYTES = 256 * 1024  # of a file: the largest campaign has 8 kB
MAX_DEPTH = 32  # levels of nesting, of aliases too
MAX_VALUES = 10_000  # of a file, each alias counted with the values of its anchor
MAX_NUMBER = 100  # characters of a value that is not text
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
TOO_MANY = f"more than {MAX_VALUES:,} values, those of aliases included"


class DocumentError(Exception):
    """An unusable file; the message is one printable line with the place and the fix."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


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
    if path.is_dir() or not path.exists():
        what = "a directory, not a" if path.is_dir() else "no such"
        raise DocumentError(f"{path}: {what} {kind} file{_neighbours(path)}; {example}")
    try:
        with path.open("rb") as file:  # not all of it: /dev/zero has no end
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise DocumentError(f"{path}: larger than {MAX_BYTES // 1024} KiB, not a {kind} file; {example}")
    document = Document(str(path), {})
    root = _compose(text, document.name)
    if not isinstance(root, yaml.MappingNode):
        raise DocumentError(f"{document.name}:1: not a mapping of keys, as a {kind} file must be; {example}")
    document.data = _Reader(document).value(root, ())
    return document


def _neighbours(path: Path) -> str:
    names = sorted(other.stem for other in path.parent.glob("*.yml"))
    return f"; available: {', '.join(names)}" if names else ""


class _Loader(yaml.SafeLoader):
    """Composes a limited number of nodes to a limited depth: PyYAML's own limit is Python's stack."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.nodes += 1
        if self.depth > MAX_DEPTH or self.nodes > 2 * MAX_VALUES:  # a key is a node too
            problem = TOO_DEEP if self.depth > MAX_DEPTH else TOO_MANY
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str, name: str) -> yaml.Node | None:
    """Parse YAML. Raises DocumentError with `name` and the line."""
    try:
        return _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        what = error.problem or error.context
        what = what if what in (TOO_DEEP, TOO_MANY) else f"not YAML: {what}"
        raise DocumentError(f"{name}:{line}: {what}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # "\UFFFFFFFF" is not a character
        raise DocumentError(f"{name}: not YAML: {error}") from None


class _Reader:
    """Turns nodes into Python values, and stores the place of every key below them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.values = 0
        self.loader = _Loader("")

    def value(self, node: yaml.Node, loc: Loc, depth: int = 0) -> Any:
        """Value of a node, whose place is `loc`. Raises DocumentError, also for tags that change types."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._error(node, TOO_MANY)
        if depth > MAX_DEPTH:  # an alias can be below its anchor
            raise self._error(node, TOO_DEEP)
        implicit = self.loader.resolve(type(node), node.value, (True, False))  # type: ignore[no-untyped-call]
        if node.tag not in (TEXT, implicit):
            raise self._error(node, f"unsupported tag {node.tag}")
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*loc, index), depth + 1) for index, child in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return self._scalar(node)
        inherited: dict[str, Any] = {}
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == MERGE:
                merged = self.value(value_node, loc, depth + 1)
                for content in merged if isinstance(merged, list) else [merged]:
                    inherited = {**(content if isinstance(content, dict) else {}), **inherited}
                continue
            key, place = self._text(key_node), self._place(key_node)
            if key in result:
                first = self.document.place((*loc, key))
                raise DocumentError(f'{place}: duplicate key "{key}"; it is already at {first}')
            self.document.places[(*loc, key)] = place
            result[key] = self.value(value_node, (*loc, key), depth + 1)
        return inherited | result

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag == TEXT:
            return self._text(node)
        if len(node.value) > MAX_NUMBER:
            raise self._error(node, f"a number of {len(node.value)} characters")
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise self._error(node, str(error)) from None

    def _text(self, node: yaml.Node) -> str:
        """Text of a scalar, in which only line breaks and tabs are not printable."""
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, "a key is not text")
        text = str(node.value)
        if UNSAFE.search(text.replace("\n", "").replace("\t", "")):
            raise self._error(node, "text with a control character")
        return text

    def _place(self, node: yaml.Node) -> str:
        return f"{self.document.name}:{node.start_mark.line + 1}"

    def _error(self, node: yaml.Node, what: str) -> DocumentError:
        return DocumentError(f"{self._place(node)}: {what}")


def override(document: Document, text: str) -> None:
    """Set one key from `key.key=value`; the value is YAML. Raises DocumentError."""
    name, equals, value_text = text.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise DocumentError(f"--set {text}: write it as key.key=value")
    try:
        node = _compose(value_text, "")
        value = None if node is None else _Reader(Document("", {})).value(node, ())
    except DocumentError as error:
        what = str(error).partition(": ")[2]
        raise DocumentError(f"--set {text}: the value cannot be used: {what}") from None
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
        scales = (
            f"available: {', '.join(sets)}" if isinstance(sets, dict) and sets else "the campaign has none"
        )
        raise DocumentError(f'{document.name}: no scale "{scale}"; {scales}')
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
