"""Reads stacks.json, the call tree of the samples in table `profile` (docs/recording-format.md)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.reading.bounds import COPY_AGAIN, MIB, STACK_DEPTH, STACK_TEXT, STACKS, SYMBOL
from loadprint.reading.documents import JsonObject, Listed, Natural, read

KERNEL, NO_MODULE = "[kernel]", "[unknown]"
CYCLES = "cycles"  # the sampled event whose samples have weights
NO_NODE = -1


class StackModule(JsonObject):
    """A file with code."""

    path: str = ""


class StacksDocument(JsonObject):
    """stacks.json; the reader checks frames and nodes."""

    event: str = "cpu-clock"
    frequency_hz: Natural = 0
    lost: Natural = 0
    modules: Listed[StackModule] = ()
    frames: tuple[Any, ...] = ()
    nodes: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Frame:
    """A function and the file that contains it: `module` is a path, `[kernel]`, `[vdso]` or `[unknown]`."""

    module: str
    symbol: str | None

    @property
    def in_kernel(self) -> bool:
        """Whether it is a function of the kernel."""
        return self.module == KERNEL

    @property
    def file(self) -> str:
        """Name of the module without its directory."""
        return self.module.rpartition("/")[2]

    def __str__(self) -> str:
        """The symbol; without one the module in brackets."""
        return self.symbol or f"[{self.file.strip('[]')}]"


@dataclass(frozen=True)
class CallTree:
    """Stacks as nodes: `parents` has the caller's node (−1: outermost), `places` the node's frame."""

    event: str
    frequency_hz: float
    lost: int
    frames: tuple[Frame, ...]
    parents: NDArray[np.int64]
    places: NDArray[np.int64]

    @cached_property
    def depths(self) -> list[int]:
        """Number of frames of each node's stack."""
        depths: list[int] = []
        for parent in self.parents.tolist():
            depths.append(1 if parent == NO_NODE else depths[parent] + 1)
        return depths

    @cached_property
    def _callers(self) -> list[tuple[int, int]]:
        return list(zip(self.parents.tolist(), self.places.tolist(), strict=True))

    def stack(self, node: int) -> list[int]:
        """Places in `frames` of a node's stack, outermost first."""
        places = []
        while node != NO_NODE:
            node, place = self._callers[node]
            places.append(place)
        return places[::-1]

    def folded(self, path: Path, nodes: Collection[int], kernel_suffix: str = "") -> dict[int, str]:
        """The stacks of some nodes as text: functions, outermost first, separated by semicolons.

        Raises InputError with the `path` of the run if the texts have more than STACK_TEXT characters.
        """
        names = [
            str(frame).replace(";", ":") + (kernel_suffix if frame.in_kernel else "") for frame in self.frames
        ]
        lengths: list[int] = []
        for parent, place in self._callers:
            lengths.append(len(names[place]) + (0 if parent == NO_NODE else lengths[parent] + 1))
        require_text(path, sum(lengths[node] for node in nodes))
        return {node: ";".join([names[place] for place in self.stack(node)]) for node in nodes}


def require_text(path: Path, characters: int) -> None:
    """Raise InputError if the names in an output have more than STACK_TEXT characters."""
    if characters > STACK_TEXT:
        size, limit = (f"{size // MIB:,} MiB" for size in (characters, STACK_TEXT))
        what = f"the names in its stacks have {size}, more than the limit of {limit}"
        raise InputError(
            path, what, "record for less time, or use `stacks --format pprof`, which stores each name once"
        )


def read_call_tree(path: Path) -> CallTree:
    """Read stacks.json. Raises InputError with the first mistake."""
    document = read(path, StacksDocument, STACKS)
    modules = [(module.path or NO_MODULE)[:SYMBOL] for module in document.modules]
    frames = tuple(_frame(path, place, frame, modules) for place, frame in enumerate(document.frames))
    nodes = _nodes(path, document.nodes)
    parents, places = nodes[:, 0], nodes[:, 1]
    order = np.arange(len(nodes))
    for wrong, what in (
        ((parents < NO_NODE) | (parents >= order), "its parent is not an earlier node"),
        ((places < 0) | (places >= len(frames)), "its frame is not in `frames`"),
    ):
        if wrong.any():
            raise InputError(path, f"`nodes[{int(np.argmax(wrong))}]`: {what}", COPY_AGAIN)
    tree = CallTree(
        document.event,
        float(document.frequency_hz),
        int(document.lost),
        frames,
        parents,
        places,
    )
    if not tree.frequency_hz:
        raise InputError(path, "`frequency_hz` is missing or 0", COPY_AGAIN)
    if (deepest := max(tree.depths, default=0)) > STACK_DEPTH:
        what = f"a stack of {deepest:,} frames, more than the limit of {STACK_DEPTH}"
        raise InputError(path, what, "record again with this version")
    return tree


def _frame(path: Path, place: int, given: Any, modules: list[str]) -> Frame:
    is_pair = isinstance(given, list) and len(given) == 2 and type(given[0]) is int
    if not is_pair or not (given[1] is None or isinstance(given[1], str)):
        raise InputError(path, f"`frames[{place}]` is not a module and a symbol", COPY_AGAIN)
    module, symbol = given
    if not 0 <= module < len(modules):
        raise InputError(path, f"`frames[{place}]`: its module is not in `modules`", COPY_AGAIN)
    return Frame(modules[module], symbol[:SYMBOL] if symbol else None)


def _nodes(path: Path, given: tuple[Any, ...]) -> NDArray[np.int64]:
    """Nodes as an array of (parent, frame)."""
    try:
        nodes = np.array(given or np.empty((0, 2), np.int64))
    except ValueError:  # rows of different lengths
        nodes = np.empty(0)
    if nodes.ndim != 2 or nodes.shape[1] != 2 or nodes.dtype.kind != "i":
        raise InputError(path, "`nodes` is not a list of pairs of integers", COPY_AGAIN)
    return nodes.astype(np.int64)
