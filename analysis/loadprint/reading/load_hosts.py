"""Names the load hosts of a run: roles `load`, `load-2`, `load-3`, … and finds those that are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIRST = "load"
ROLE = re.compile(r"load(?:-([2-9]|[1-9][0-9]{1,3}))?")
WRITTEN = ("result.json", "phases.jsonl", "throughput.parquet", "ticks.parquet")


def order(role: str) -> tuple[int, str]:
    """Sort key of a role: load-2 before load-10."""
    match = ROLE.fullmatch(role)
    return (int(match[1] or 1), "") if match else (0, role)


def is_load(role: str) -> bool:
    """Whether a role is a load host's."""
    return ROLE.fullmatch(role) is not None


def roles(path: Path, meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Load hosts that run.json names or that have a directory; the first one always."""
    names = {FIRST, *filter(ROLE.fullmatch, meta.get("roles") or {})}
    names |= {
        folder.name
        for folder in path.glob(f"{FIRST}-*")
        if ROLE.fullmatch(folder.name) and any((folder / name).is_file() for name in WRITTEN)
    }
    return tuple(sorted(names, key=order))


def lacking(results: Mapping[str, Mapping[str, Any] | None]) -> tuple[str, ...]:
    """One line for each load host of the run without a result: `load-2/result.json is missing: …`."""
    counts = [((result or {}).get("part") or {}).get("of") for result in results.values()]
    expected = max((int(count) for count in counts if count), default=1)
    # a part of a run on one host that has no result at all is a run that failed before its window
    known = [role for role, result in results.items() if result is not None]
    everyone = {*results, *(role_of(number) for number in range(1, expected + 1))}
    if len(everyone) == 1 or not known:
        return ()
    named = f"the run has {len(everyone)} load hosts"
    absent = sorted(everyone - set(known), key=order)
    return tuple(f"{role}/result.json is missing: {named}" for role in absent)


def role_of(number: int) -> str:
    """Role of a load host by its number from 1."""
    return FIRST if number == 1 else f"{FIRST}-{number}"
