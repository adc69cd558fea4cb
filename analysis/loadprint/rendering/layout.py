"""Cells as text, for renderers that people read: the columns, and how a value, ratio or mark is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadprint import numbers
from loadprint.tables.table import Cell, Row, Table, Versus

SUPERSCRIPTS = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")
VALUES_APART = 2  # up to so many repeats are printed one by one


@dataclass(frozen=True)
class Text:
    """A written cell and the mark that may colour it."""

    text: str
    mark: str = ""


def superscript(notes: Sequence[int]) -> str:
    """Footnote numbers, raised."""
    return ",".join(map(str, notes)).translate(SUPERSCRIPTS)


def everyone(table: Table) -> list[int]:
    """Positions of all sides."""
    return list(range(len(table.sides)))


def sentences(table: Table) -> list[str]:
    """The sentences that are shown, and where the others are."""
    said = [sentence.text for sentence in table.sentences if sentence.shown]
    more = len(table.sentences) - len(said)
    return [*said, f"{more} more with --format json."] if more else said


def lifted(table: Table) -> Table:
    """What is noted at every value of a side is noted once, at its head."""
    sides, groups = list(table.sides), table.groups
    for place, side in enumerate(table.sides):
        cells = [row.cells[place] for group in groups for row in group.rows]
        noted = [set(cell.notes) for cell in cells if cell.value is not None]
        common = set.intersection(*noted) if noted else set()
        if common:
            sides[place] = replace(side, notes=tuple(sorted({*side.notes, *common})))
            groups = tuple(
                replace(group, rows=tuple(_without(row, place, common) for row in group.rows))
                for group in groups
            )
    return replace(table, sides=tuple(sides), groups=groups)


def _without(row: Row, place: int, notes: set[int]) -> Row:
    cells = list(row.cells)
    kept = tuple(note for note in cells[place].notes if note not in notes)
    cells[place] = replace(cells[place], notes=kept)
    return replace(row, cells=tuple(cells))


def columns(table: Table, shown: Sequence[int]) -> list[str]:
    """Column heads for the sides at positions `shown`: label, unit, values, then what compares each side."""
    heads = ["", "", *(_named(table, place) for place in shown)]
    compared = [place for place in shown if table.sides[place].name != table.reference]
    for place in compared:
        ratio = "ratio" if len(compared) == 1 else f"{table.sides[place].name}/{table.reference}"
        heads += [ratio, "95 % interval", "", "points"]
    return heads


def _named(table: Table, place: int) -> str:
    side = table.sides[place]
    return f"{side.name}{superscript(side.notes)}"


def row(table: Table, row: Row, shown: Sequence[int]) -> list[Text]:
    """All cells of a row, in the order of `columns`."""
    places = decimals(row)
    cells = [Text(f"  {row.label}{superscript(row.notes)}"), Text(row.shown)]
    cells += [Text(value(row, row.cells[place], places)) for place in shown]
    for place in shown:
        if table.sides[place].name != table.reference:
            cells += versus_cells(row, row.versus[place], places)
    return cells


def lines(table: Table, told: Row, shown: Sequence[int]) -> list[list[Text]]:
    """A row and, below it, the sides' shares of its ceilings, where some were measured."""
    found = [row(table, told, shown)]
    for label, shares in (
        ("    of its ceiling", [cell.of_ceiling for cell in told.cells]),
        ("    of the vendor's limit", [cell.of_claimed for cell in told.cells]),
    ):
        if any(shares[place] is not None for place in shown):
            below = [Text(label), Text("%"), *(Text(_percent(shares[place])) for place in shown)]
            found.append(below + [Text("")] * (len(found[0]) - len(below)))
    return found


def _percent(share: float | None) -> str:
    return "" if share is None else numbers.percent(share)


def decimals(row: Row) -> int:
    """Decimals of all values of a row."""
    return numbers.decimals(
        known * row.factor for cell in row.cells for known in cell.repeats if known is not None
    )


def value(row: Row, cell: Cell, places: int) -> str:
    """A side's value: the mean, or each repeat where there are too few for an interval."""
    if cell.value is None:
        return f"n/a{superscript(cell.notes)}"
    told = [cell.value] if len(cell.repeats) > VALUES_APART else list(cell.repeats)
    texts = ["n/a" if each is None else numbers.number(each * row.factor, places) for each in told]
    return f"{' / '.join(texts)}{superscript(cell.notes)}"


def versus_cells(row: Row, versus: Versus | None, places: int) -> list[Text]:
    """Ratio, interval, mark and difference in points of one compared side."""
    if versus is None or versus.kind == "none":
        return [Text(f"\u2013{superscript(versus.notes)}" if versus else ""), Text(""), Text(""), Text("")]
    note, mark = superscript(versus.notes), versus.mark
    points = Text("" if versus.points is None else numbers.points(versus.points), mark)
    if versus.kind in ("inf", "?"):
        return [Text(versus.kind + note), Text(""), Text(mark, mark), points]
    if versus.kind == "difference":
        centre = numbers.signed(versus.centre or 0.0, row.factor, places)
        bounds = [numbers.signed(b, row.factor, places) for b in (versus.low, versus.high) if b is not None]
    else:
        centre = numbers.ratio(versus.centre or 0.0)
        bounds = [numbers.ratio(b) for b in (versus.low, versus.high) if b is not None]
    interval = f"[{bounds[0]}, {bounds[1]}]" if len(bounds) == 2 else ""
    return [Text(centre + note, mark), Text(interval, mark), Text(mark, mark), points]
