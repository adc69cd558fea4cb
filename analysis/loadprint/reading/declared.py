"""Reads what the probes of this version declare: shape, entity and columns of each table.

`probes.json` has the content of docs/metrics.md, which is printed from the probes; a test compares the two. A
recorded table is read by its own footer. These declarations are for data without a footer: imports, the
server's status, and formulas that are checked before a recording is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class DeclaredTable(NamedTuple):
    """The table of one probe; `columns`: unit and kind of its value columns, or of its declared metrics."""

    shape: str
    entity: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]

    def of_kind(self, kind: str, *units: str) -> tuple[str, ...]:
        """Its columns of a kind in one of some units."""
        return tuple(name for name, (unit, of) in self.columns.items() if of == kind and unit in units)


_TEXT = (Path(__file__).parent / "probes.json").read_text(encoding="utf-8")
DECLARED: Mapping[str, DeclaredTable] = {
    table: DeclaredTable(
        declaration["shape"],
        tuple(declaration["entity"]),
        {name: tuple(meaning.split()) for name, meaning in declaration["columns"].items()},
    )
    for table, declaration in json.loads(_TEXT).items()
}


def unit_of(table: str, name: str) -> str | None:
    """The declared unit of a column or metric; None if there is none."""
    return DECLARED[table].columns.get(name, (None,))[0] if table in DECLARED else None
