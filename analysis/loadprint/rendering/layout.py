"""Writes the cells of a table as text, for renderers that people read: columns, values, ratios, footnotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadprint import numbers
from loadprint.rendering.footnotes import Footnotes
from loadprint.tables.table import Cell, Row, Table, Versus
from loadprint.tables.tally import tallies

SUPERSCRIPTS = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")
MAX_SEPARATE = 2  # up to this many repeats are printed one by one


@dataclass(frozen=True)
class Text:
    """The text of a cell and the mark that may colour it."""

    text: str
    mark: str = ""


class Layout:
    """A table as lines of cells.

    A footnote on every value of a side is printed once, at the head of its column.
    """

    def __init__(self, table: Table) -> None:
        self.footnotes = Footnotes(table)
        self.table = with_common_notes_at_heads(table)
        self.sides = range(len(table.sides))

    def heads(self, shown: Sequence[int]) -> list[str]:
        """Column heads for the sides at positions `shown`: label, unit, values, then the comparisons."""
        heads = [
            "",
            "",
            *(self.table.sides[place].name + self._raised(self.table.sides[place].notes) for place in shown),
        ]
        compared = [place for place in shown if place != self.table.base]
        for place in compared:
            ratio = f"{self.table.sides[place].name}/{self.table.reference}"
            heads += ["ratio" if len(compared) == 1 else ratio, "95 % interval", "", "points"]
        return heads

    def lines(self, row: Row, shown: Sequence[int]) -> list[list[Text]]:
        """A row in the order of `heads` and, below it, the sides' shares of ceilings that were measured."""
        lines = [self._row(row, shown)]
        for label, shares in (
            ("    of its ceiling", [cell.of_ceiling for cell in row.cells]),
            ("    of the vendor's limit", [cell.of_claimed for cell in row.cells]),
        ):
            if any(shares[place] is not None for place in shown):
                own = (shares[place] for place in shown)
                texts = ["" if share is None else numbers.percent(share) for share in own]
                below = [Text(label), Text("%"), *map(Text, texts)]
                lines.append(below + [Text("")] * (len(lines[0]) - len(below)))
        return lines

    def numbered_footnotes(self) -> list[tuple[str, str]]:
        """Each footnote with its raised number."""
        return [(raised([number]), text) for number, text in enumerate(self.footnotes.texts, start=1)]

    def _row(self, row: Row, shown: Sequence[int]) -> list[Text]:
        places = decimals(row)
        indent = "    " if row.part else "  "
        cells = [Text(f"{indent}{row.label}{self._raised(row.notes)}"), Text(row.shown)]
        cells += [
            Text(value(row, row.cells[place], places) + self._raised(row.cells[place].notes))
            for place in shown
        ]
        for place in shown:
            if place != self.table.base:
                versus = row.versus[place]
                centre, *others = versus_cells(row, versus)
                note = self._raised(versus.notes) if versus else ""
                cells += [replace(centre, text=centre.text + note), *others]
        return cells

    def _raised(self, notes: Sequence[str]) -> str:
        return raised(self.footnotes.numbers(notes))


def raised(footnotes: Sequence[int]) -> str:
    """Footnote numbers, raised."""
    return ",".join(map(str, footnotes)).translate(SUPERSCRIPTS)


def sentences(table: Table) -> list[str]:
    """The sentences that are shown, and how to get the others."""
    texts = [sentence.text for sentence in table.sentences if sentence.shown]
    more = len(table.sentences) - len(texts)
    return [*texts, f"{more} more with --format json or in the report."] if more else texts


def findings(table: Table) -> list[str]:
    """The sentences that are shown without their values, a line each."""
    return [sentence.brief for sentence in table.sentences if sentence.shown]


def summary(table: Table) -> list[str]:
    """What the rows show: a line for each compared side that has intervals."""
    named = len(table.sides) > 2
    return [f"{tally.side}: {tally.text}" if named else tally.text for tally in tallies(table)]


def ending(table: Table, *, reasons: bool) -> str:
    """The line below a table: the marks, and where the rest is."""
    kinds = {versus.kind for row in table.rows for versus in row.versus if versus}
    parts = (
        table.legend + ("  inf the reference is 0" * ("inf" in kinds)) + ("  ? both are 0" * ("?" in kinds)),
        f"{table.hidden} more row{'s' if table.hidden > 1 else ''}: --all" if table.hidden else "",
        "" if reasons else "reasons: --verbose",
    )
    return ". ".join(part[0].upper() + part[1:] for part in parts if part) + "."


def with_common_notes_at_heads(table: Table) -> Table:
    """Move notes that are on every value of a side to its head."""
    common = []
    for place in range(len(table.sides)):
        noted = [set(cell.notes) for row in table.rows if (cell := row.cells[place]).value is not None]
        common.append(set.intersection(*noted) if noted else set())
    if not any(common):
        return table
    return replace(
        table,
        sides=tuple(
            replace(side, notes=(*side.notes, *notes))
            for side, notes in zip(table.sides, common, strict=True)
        ),
        groups=tuple(
            replace(group, rows=tuple(_without(row, common) for row in group.rows)) for group in table.groups
        ),
    )


def _without(row: Row, common: Sequence[set[str]]) -> Row:
    cells = tuple(
        replace(cell, notes=tuple(note for note in cell.notes if note not in notes))
        for cell, notes in zip(row.cells, common, strict=True)
    )
    return replace(row, cells=cells)


def decimals(row: Row) -> int:
    """Decimals of all values of a row."""
    return numbers.decimals(value * row.factor for cell in row.cells for value in cell.measured)


def value(row: Row, cell: Cell, places: int) -> str:
    """A side's value: the mean, or each repeat if there are too few for an interval."""
    if cell.value is None:
        return "n/a"
    values = [cell.value] if len(cell.repeats) > MAX_SEPARATE else list(cell.repeats)
    return " / ".join(
        "n/a" if value is None else numbers.number(value * row.factor, places) for value in values
    )


def versus_cells(row: Row, versus: Versus | None) -> list[Text]:
    """Ratio, interval, mark and difference in points of one compared side, without footnotes."""
    if versus is None or versus.kind == "none":
        return [Text("\u2013" if versus else ""), Text(""), Text(""), Text("")]
    mark = versus.mark
    points = Text("" if versus.points is None else numbers.points(versus.points), mark)
    if versus.kind in ("inf", "?"):
        return [Text(versus.kind), Text(""), Text(mark, mark), points]
    if versus.kind == "difference":
        given = [value for value in (versus.centre, versus.low, versus.high) if value is not None]
        # not those of the row, one of whose values may be far smaller
        places = numbers.decimals(value * row.factor for value in given)
        centre, *bounds = (numbers.signed(value, row.factor, places) for value in given)
    else:
        centre = numbers.ratio(versus.centre or 0.0)
        bounds = [numbers.ratio(b) for b in (versus.low, versus.high) if b is not None]
    interval = f"[{bounds[0]}, {bounds[1]}]" if len(bounds) == 2 else ""
    return [Text(centre, mark), Text(interval, mark), Text(mark, mark), points]
