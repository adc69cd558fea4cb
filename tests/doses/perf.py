"""Reads the stacks that perf sampled, in the groups of the CPU ledger."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
from loadprint.metrics.cpu_groups import group_nodes
from loadprint.reading.call_tree import KERNEL, NO_MODULE, NO_NODE, CallTree, Frame

FRAME = re.compile(r"\s+[0-9a-f]+ (?P<symbol>.*) \((?P<module>.*)\)$")


def groups(recording: Path, pid: int) -> Counter[str]:
    """Samples of a process by group in a recording of `perf record -g`."""
    words = ["perf", "script", "-i", str(recording), "--pid", str(pid), "-F", "ip,sym,dso"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    counts: Counter[str] = Counter()
    tree = Tree()
    nodes = Counter(tree.node(block.splitlines()) for block in printed.split("\n\n") if block.strip())
    keys = group_nodes(tree.call_tree()).keys
    for node, count in nodes.items():
        counts[keys[node]] += count
    return counts


class Tree:
    """A call tree that grows by stacks as perf prints them, the innermost frame first."""

    def __init__(self) -> None:
        self.frames: dict[Frame, int] = {}
        self.nodes: dict[tuple[int, int], int] = {}

    def node(self, lines: list[str]) -> int:
        """The node of a stack, which is added if it is new."""
        node = NO_NODE
        for line in reversed(lines):
            if matched := FRAME.match(line):
                place = self.frames.setdefault(_frame(matched), len(self.frames))
                node = self.nodes.setdefault((node, place), len(self.nodes))
        assert node != NO_NODE, lines
        return node

    def call_tree(self) -> CallTree:
        """The tree so far."""
        pairs = np.array(list(self.nodes), dtype=np.int64).reshape(-1, 2)
        return CallTree("cpu-clock", 99.0, 0, tuple(self.frames), pairs[:, 0], pairs[:, 1])


def _frame(matched: re.Match[str]) -> Frame:
    symbol = None if matched["symbol"] == "[unknown]" else matched["symbol"]
    if matched["module"].startswith("[kernel"):
        return Frame(KERNEL, symbol)
    return Frame(NO_MODULE if matched["module"] == "[unknown]" else matched["module"], symbol)
