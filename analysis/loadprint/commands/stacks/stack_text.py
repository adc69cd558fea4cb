"""Writes stacks as folded lines and as JSON for speedscope."""

from __future__ import annotations

import json

from loadprint.commands.stacks.role_stacks import RoleStacks
from loadprint.reading.call_tree import require_text

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
KERNEL_SUFFIX = "_[k]"  # flamegraph.pl colours such frames as the kernel's


def folded(stacks: RoleStacks) -> str:
    """A line for each stack: frames from the outermost, separated by semicolons, and samples or cycles."""
    lines: dict[str, int] = {}
    texts = stacks.tree.folded(stacks.path, stacks.samples.keys(), KERNEL_SUFFIX)
    for node, count in (stacks.cycles or stacks.samples).items():
        lines[texts[node]] = lines.get(texts[node], 0) + count
    return "".join(f"{line} {count}\n" for line, count in sorted(lines.items()))


def speedscope(stacks: RoleStacks) -> str:
    """A sampled profile; weights are cycles, or CPU seconds by the samples and their frequency."""
    tree = stacks.tree
    require_text(stacks.path, sum(len(str(frame)) + len(frame.module) for frame in tree.frames))
    weights = [count / tree.frequency_hz for count in stacks.samples.values()]
    if stacks.cycles is not None:
        weights = list(map(float, stacks.cycles.values()))
    samples = [tree.stack(node) for node in stacks.samples]
    document = {
        "$schema": SCHEMA,
        "exporter": "loadprint",
        "name": stacks.title,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": str(frame), "file": frame.module} for frame in tree.frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": stacks.title,
                "unit": "seconds" if stacks.cycles is None else "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"
