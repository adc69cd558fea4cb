"""Reads what the probes declare: the tables and columns that docs/metrics.md lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

METRICS = Path(__file__).parents[2] / "docs" / "metrics.md"
HEAD = re.compile(r"Shape `(\w+)`, entity (`\w+`(?:, `\w+`)*); ")


@dataclass(frozen=True)
class Declared:
    """The table of one probe: shape, entity columns, kinds of the value columns; units and kinds of all."""

    name: str
    shape: str
    entities: tuple[str, ...]
    columns: dict[str, str]
    units: dict[str, str]
    kinds: dict[str, str]


@cache
def declared() -> tuple[Declared, ...]:
    """All probes."""
    found = []
    for section in METRICS.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, match = section.partition("\n")[0], HEAD.search(section)
        if match is None:
            continue
        rows = re.findall(r"^\| `([\w.]+)` \| (\w*) ?\| (\w+)(?:, \d+ bits)? \|", section, re.MULTILINE)
        kinds = {column: kind for column, _, kind in rows}
        units = {column: unit or "1" for column, unit, _ in rows}
        columns = {} if match[1] == "metrics" else kinds
        found.append(Declared(name, match[1], tuple(re.findall(r"`(\w+)`", match[2])), columns, units, kinds))
    return tuple(found)
