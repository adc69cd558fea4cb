"""Counts what the rows of a table show of each side, and plans the repeats that its undecided rows need."""

from __future__ import annotations

from dataclasses import dataclass

from loadprint import numbers
from loadprint.statistics.stats import APART, repeats_to_show
from loadprint.tables.table import EQUIVALENT, UNDECIDED, SideHead, Table


@dataclass(frozen=True)
class Tally:
    """Numbers of rows by what their intervals show.

    With `more` repeats of each side a difference of `APART` would show in `decided` of the undecided rows.
    """

    side: str
    replicate: str
    differ: int
    equivalent: int
    undecided: int
    more: int = 0
    decided: int = 0

    @property
    def text(self) -> str:
        """The tally in a line, without the side."""
        rows = self.differ + self.equivalent + self.undecided
        text = f"{rows} row{'s' * (rows != 1)}: {self.differ} differ, {self.equivalent} equivalent, "
        text += f"{self.undecided} undecided"
        if not self.decided:
            return text
        of_rows = f" in {self.decided}" if self.decided < self.undecided else ""
        wanted = f"a {numbers.brief(100 * APART, 3)} % difference{of_rows}"
        if not self.more:
            return f"{text} ({wanted} would show)"
        return f"{text} (≈ {self.more} more {self.replicate}{'s' * (self.more > 1)} would show {wanted})"


def tallies(table: Table) -> tuple[Tally, ...]:
    """One for each compared side that has intervals."""
    return tuple(
        tally
        for place, side in enumerate(table.sides)
        if place != table.base and (tally := _tally(table, place, side)) is not None
    )


def _tally(table: Table, place: int, side: SideHead) -> Tally | None:
    marked = [versus for row in table.rows if (versus := row.versus[place]) and versus.mark]
    if not marked:
        return None
    repeats = min(len(side.repeats), len(table.sides[table.base].repeats))
    open_rows = [versus for versus in marked if versus.mark == UNDECIDED]
    needed = [
        repeats_to_show(versus.low, versus.high, repeats, paired=side.paired)
        for versus in open_rows
        if versus.kind == "ratio" and versus.low and versus.high
    ]
    planned = [more for more in needed if more is not None]
    return Tally(
        side.name,
        side.replicate,
        sum(versus.differs for versus in marked),
        sum(versus.mark == EQUIVALENT for versus in marked),
        len(open_rows),
        max(planned, default=0),
        len(planned),
    )
