"""The table for a terminal, by rich; reads well in 100 columns. Lays out, decides nothing.

Where the sides do not fit beside each other there is one table per compared side, each beside the reference.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from loadprint.rendering import layout
from loadprint.tables.table import Table

WIDTH = 100
GAPS = (2, 1)  # blanks between columns: two where they fit
STYLES = {"better": "green", "worse": "red", "~": "dim", "*": "bold"}


def render(table: Table, width: int = WIDTH, *, colour: bool = False) -> str:
    """Return the table as text, with terminal colours where asked."""
    table = layout.lifted(table)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
    )
    _facts(console, table)
    for shown in _parts(table, width):
        for line in _grid(table, shown, width):
            console.print(line, soft_wrap=True)
        console.print()
    for sentence in layout.sentences(table):
        console.print(Text(sentence, style="bold"))
    if table.sentences:
        console.print()
    for number, text in enumerate(table.footnotes, start=1):
        _hanging(console, layout.superscript([number]), text)
    for text in table.method:
        console.print(Text(text, style="dim"))
    written = console.file
    assert isinstance(written, io.StringIO)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _parts(table: Table, width: int) -> list[list[int]]:
    """Which sides share a table: all where they fit, else the reference with one other at a time."""
    everyone = layout.everyone(table)
    reference = next(place for place in everyone if table.sides[place].name == table.reference)
    if _gap(_widths(table, everyone), width):
        return [everyone]
    return [sorted((reference, place)) for place in everyone if place != reference]


def _gap(widths: Sequence[int], width: int) -> int:
    """Blanks between columns with which they fit; 0 where they do not."""
    used = [each for each in widths if each]
    return next((gap for gap in GAPS if sum(used) + gap * (len(used) - 1) <= width), 0)


def _widths(table: Table, shown: Sequence[int]) -> list[int]:
    """Width of every column; 0 where no row has anything in it."""
    rows = [line for group in table.groups for row in group.rows for line in layout.lines(table, row, shown)]
    widths = []
    for place, head in enumerate(layout.columns(table, shown)):
        widest = max((cell_len(row[place].text) for row in rows), default=0)
        widths.append(max(widest, cell_len(head)) if widest else 0)
    return widths


def _grid(table: Table, shown: Sequence[int], width: int) -> Iterator[Text]:
    widths = _widths(table, shown)
    gap = _gap(widths, width) or GAPS[-1]
    yield _line([layout.Text(head) for head in layout.columns(table, shown)], widths, gap, "bold")
    section = ""
    for group in table.groups:
        yield Text("")
        if group.section != section:
            section = group.section
            yield Text(section, style="bold")
        yield Text(f" {group.title}", style="bold")
        for row in group.rows:
            yield from (_line(line, widths, gap) for line in layout.lines(table, row, shown))


def _line(cells: Sequence[layout.Text], widths: Sequence[int], gap: int, style: str = "") -> Text:
    """Label and unit to the left, everything else to the right; empty columns are left out."""
    line = Text()
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if width == 0:
            continue
        blank = " " * (width - cell_len(cell.text))
        padded = cell.text + blank if place < 2 else blank + cell.text
        line.append(padded + " " * gap, style=style or STYLES.get(cell.mark, ""))
    return line


def _facts(console: Console, table: Table) -> None:
    labels = [verdict.key for verdict in table.verdicts] + [label for label, _ in table.facts]
    width = max(map(len, [*labels, "warning"]))
    for verdict in table.verdicts:
        _hanging(console, f"{verdict.key:<{width}}", verdict.told())
    for label, text in table.facts:
        _hanging(console, f"{label:<{width}}", text)
    for text in table.warnings:
        _hanging(console, f"{'warning':<{width}}", text, "yellow")
    console.print()


def _hanging(console: Console, label: str, text: str, style: str = "") -> None:
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(Text(label, style="bold"), Text(text, style=style))
    console.print(grid)
