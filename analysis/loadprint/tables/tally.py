"""Counts what the rows of a table show of each side, and plans the repeats that its undecided rows need."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadprint import numbers
from loadprint.statistics.stats import APART, MOST_MORE, more_repeats
from loadprint.tables.table import EQUIVALENT, UNDECIDED, SideHead, Table, Versus


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
        each = f" in {self.decided}" if self.decided < self.undecided else ""
        wanted = f"a {numbers.brief(100 * APART, 3)} % difference{each}"
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
    planned = [more for versus in open_rows if (more := _more(versus, repeats, side.paired)) is not None]
    return Tally(
        side.name,
        side.replicate,
        sum(versus.differs for versus in marked),
        sum(versus.mark == EQUIVALENT for versus in marked),
        len(open_rows),
        max(planned, default=0),
        len(planned),
    )


def _more(versus: Versus, repeats: int, paired: bool) -> int | None:
    """Further repeats after which half the width of its interval is `APART`; None if that is not a plan."""
    if versus.kind != "ratio" or not versus.low or not versus.high:
        return None
    half = math.log(versus.high / versus.low) / 2
    more = more_repeats(half, repeats, math.log1p(APART), paired=paired)
    return more if more is not None and more <= MOST_MORE else None
