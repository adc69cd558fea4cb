"""Groups stacks by what the code was doing, with the symbol patterns of cpu_groups.toml.

The first frame from the leaf that matches decides: of a sample in the kernel among its kernel frames, of
another among its user frames. Code without a match belongs to its library; in a server it is unknown, or its
stack was truncated before a frame that could decide.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.call_tree import NO_MODULE, NO_NODE, CallTree, Frame

PATTERNS = Path(__file__).with_name("cpu_groups.toml")
OTHER_KERNEL, MODULE = "other_kernel", "in_"
UNKNOWN, TRUNCATED = "unknown", "truncated"
UNDECIDED = {UNKNOWN: "unknown code", TRUNCATED: "truncated stacks"}
SUFFIX = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv)\b.*")
START_LIBRARIES = (
    "libstdc++.so*",
    "libc.so*",
    "libc-*.so",
    "libpthread*",
    "ld-*.so*",
    "ld-linux*",
    "libc.musl*",
)


@dataclass(frozen=True)
class Patterns:
    """The compiled groups: labels by key in the order of the table, and one expression for each space."""

    labels: Mapping[str, str]
    families: Mapping[str, Sequence[str]]
    modules: Sequence[tuple[str, str]]
    symbols: Mapping[str, re.Pattern[str]]
    starts: re.Pattern[str]

    def family(self, file: str) -> str | None:
        """Server family of an executable."""
        return next(
            (name for name, files in self.families.items() if any(fnmatchcase(file, glob) for glob in files)),
            None,
        )


@dataclass(frozen=True)
class Grouped:
    """For each node of a call tree: its group's key, and whether the stack lacks its outermost frames."""

    keys: tuple[str, ...]
    truncated: NDArray[np.bool_]


@cache
def patterns() -> Patterns:
    """The groups of cpu_groups.toml."""
    document = tomllib.loads(PATTERNS.read_text(encoding="utf-8"))
    groups: list[dict[str, Any]] = document["group"]
    families: dict[str, list[str]] = document["families"]
    spaces = {"kernel": ("kernel",), "library": ("library",)} | {name: ("server", name) for name in families}
    return Patterns(
        {
            **{group["key"]: group["label"] for group in groups if "kernel" in group},
            OTHER_KERNEL: "other kernel code",
            **{group["key"]: group["label"] for group in groups if "kernel" not in group},
        },
        families,
        [(file, group["key"]) for group in groups for file in group.get("modules", ())],
        {
            space: _compiled(
                {group["key"]: [p for key in keys for p in group.get(key, ())] for group in groups}
            )
            for space, keys in spaces.items()
        },
        re.compile("|".join(map(translate, document["starts"]))),
    )


def label(key: str) -> str:
    """Label of a group; a library's is its file name."""
    if key.startswith(MODULE):
        return key.removeprefix(MODULE)
    return UNDECIDED.get(key) or patterns().labels[key]


def ordered(keys: Iterable[str]) -> list[str]:
    """Keys in the order of the file, then libraries by name, then what no pattern decides."""
    places = {key: place for place, key in enumerate((*patterns().labels, MODULE, *UNDECIDED))}
    return sorted(keys, key=lambda key: (places.get(key, places[MODULE]), key))


def group_nodes(tree: CallTree) -> Grouped:
    """Group every node of a call tree."""
    rules = patterns()
    own = list(map(_group, tree.frames))
    starts = list(map(_is_start, tree.frames))
    libraries = [_is_start_library(frame) for frame in tree.frames]
    matched: list[str | None] = []
    whole: list[bool] = []
    for parent, place in zip(tree.parents.tolist(), tree.places.tolist(), strict=True):
        frame, key = tree.frames[place], own[place]
        if key is None and parent != NO_NODE:
            caller = tree.frames[tree.places[parent]]
            key = matched[parent] if caller.in_kernel == frame.in_kernel else None
        matched.append(key)
        if parent == NO_NODE:
            whole.append(starts[place])
        else:
            # an unnamed function of libc that calls another is the start of a thread
            is_root = tree.parents[parent] == NO_NODE
            whole.append(whole[parent] or bool(is_root and libraries[tree.places[parent]]))
    frames = (tree.frames[place] for place in tree.places.tolist())
    keys = tuple(
        key or _unmatched(rules, frame, is_whole)
        for key, frame, is_whole in zip(matched, frames, whole, strict=True)
    )
    return Grouped(keys, ~np.array(whole, dtype=bool))


def _unmatched(rules: Patterns, frame: Frame, is_whole: bool) -> str:
    if frame.in_kernel:
        return OTHER_KERNEL
    if not rules.family(frame.file) and frame.module != NO_MODULE:
        return f"{MODULE}{frame.file}"
    return UNKNOWN if is_whole else TRUNCATED


@cache  # the runs of a server have the same frames
def _group(frame: Frame) -> str | None:
    """Key of the group that a frame belongs to by itself."""
    rules, name = patterns(), function_name(frame.symbol or "")
    if frame.in_kernel:
        return _first(rules.symbols["kernel"], name)
    if family := rules.family(frame.file):
        return _first(rules.symbols[family], name)
    whole = next((key for file, key in rules.modules if fnmatchcase(frame.file, file)), None)
    return whole or _first(rules.symbols["library"], name)


@cache
def _is_start(frame: Frame) -> bool:
    return patterns().starts.fullmatch(function_name(frame.symbol or "")) is not None


def _is_start_library(frame: Frame) -> bool:
    return frame.symbol is None and any(fnmatchcase(frame.file, file) for file in START_LIBRARIES)


def _compiled(groups: Mapping[str, Sequence[str]]) -> re.Pattern[str]:
    """One expression whose first matching alternative has the name of the group."""
    alternatives = (
        f"(?P<{key}>{'|'.join(map(translate, patterns))})" for key, patterns in groups.items() if patterns
    )
    return re.compile("|".join(alternatives))


def _first(expression: re.Pattern[str], name: str) -> str | None:
    match = expression.match(name) if name else None
    return match.lastgroup if match else None


@cache
def function_name(symbol: str) -> str:
    """A demangled symbol without return type, template arguments, parameters and compiler's suffixes."""
    symbol = SUFFIX.sub("", symbol.replace("(anonymous namespace)", "{anonymous}"))
    out: list[str] = []
    depth = place = 0
    while place < len(symbol):
        if depth == 0 and symbol.startswith("operator", place):
            step = _operator(symbol, place)
            out.append(symbol[place:step])
            place = step
            continue
        sign = symbol[place]
        if sign == "<":
            depth += 1
        elif sign == ">":
            depth -= 1
        elif depth == 0 and sign == "(":
            break
        elif depth == 0:
            out.append(sign)
        place += 1
    name = "".join(out)
    head, operator, rest = name.partition("operator")
    return head.rpartition(" ")[2] + operator + rest if operator else name.rpartition(" ")[2]


def _operator(symbol: str, place: int) -> int:
    """End of the name of an operator, whose signs are not brackets."""
    match = re.compile(
        r"operator(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?| (?:new|delete)(?:\[\])?|[^\w\s(]{0,3})"
    ).match(symbol, place)
    return match.end() if match else place + len("operator")
