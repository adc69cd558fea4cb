"""Renders a table as JSON: the dataclasses of table.py, numbers in base units, absent ones null."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from loadprint.catalogue.metric import Screens
from loadprint.rendering.footnotes import Footnotes
from loadprint.rendering.printout import as_json
from loadprint.tables.table import Cell, Table
from loadprint.tables.tally import tallies


def render(table: Table) -> str:
    """Return one JSON object; notes are numbers of `footnotes`, from 1."""
    footnotes = Footnotes(table)
    document: dict[str, Any] = {}
    for key, value in vars(table).items():
        document[key] = _plain(value, footnotes)
        if key == "groups":
            document["footnotes"] = footnotes.texts
    return as_json(document | {"tallies": tallies(table)}, format_version=1)


def _plain(value: Any, footnotes: Footnotes) -> Any:
    if isinstance(value, tuple):
        return [_plain(inner, footnotes) for inner in value]
    if not is_dataclass(value):
        return value
    # on which screens a row is shown is not a result
    fields = {key: inner for key, inner in vars(value).items() if not isinstance(inner, Screens)}
    plain = {key: _plain(inner, footnotes) for key, inner in fields.items()}
    if "notes" in plain:
        plain["notes"] = footnotes.numbers(plain["notes"])
    if isinstance(value, Cell):
        del plain["ceiling"]
        plain |= {"of_ceiling": value.of_ceiling, "of_claimed": value.of_claimed}
    return plain
