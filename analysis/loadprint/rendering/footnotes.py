"""Numbers the footnotes of a table, in the order in which a reader meets them: the only place that does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loadprint.tables.table import Table


class Footnotes:
    """The footnotes of a table; equal texts share a number."""

    def __init__(self, table: Table) -> None:
        self.texts = tuple(dict.fromkeys(_notes(table)))
        self._numbers = {text: number for number, text in enumerate(self.texts, start=1)}

    def numbers(self, notes: Iterable[str]) -> tuple[int, ...]:
        """Numbers of some notes, ascending."""
        return tuple(sorted({self._numbers[note] for note in notes}))


def _notes(table: Table) -> Iterator[str]:
    for side in table.sides:
        yield from side.notes
    for row in table.rows:
        yield from row.all_notes
