"""Renders a table for a terminal of 100 columns or more.

If the sides do not fit into one table there is one table per compared side, each with the reference.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from loadprint.rendering import layout
from loadprint.rendering.layout import Layout
from loadprint.tables.table import Table

WIDTH = 100
NAME = 24  # characters of a side's name in the head
MAX_WARNINGS = 2  # of the first screen
GAPS = (2, 1)  # blanks between columns: two if they fit
STYLES = {"better": "green", "worse": "red", "~": "dim", "*": "bold"}


def render(table: Table, width: int = WIDTH, *, colour: bool = False, reasons: bool = False) -> str:
    """Return the table as text, with terminal colours if `colour` is set.

    `reasons` are the facts behind the line of trust, the warnings, the values of the findings and the method.
    """
    laid_out = Layout(table)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
    )
    _head(console, table, reasons=reasons)
    console.print()
    if reasons:
        _facts(console, table)
        console.print()
    for sentence in layout.sentences(table) if reasons else layout.findings(table):
        _hanging(console, " ", sentence, "bold")
    if table.sentences:
        console.print()
    for place, shown in enumerate(_parts(laid_out, width)):
        if place:
            console.print()
        for line in _grid(laid_out, shown, width):
            console.print(line, soft_wrap=True)
    if any(group.section for group in table.groups):
        console.print()
    for number, text in laid_out.numbered_footnotes():
        _hanging(console, number, text)
    method = table.method if reasons else ()
    for text in (*layout.summary(table), *method, layout.ending(table, reasons=reasons)):
        console.print(Text(text, style="dim"))
    if table.page:
        console.print(Text(f"page: {table.page}", style="dim"), soft_wrap=True)
    output = console.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def _parts(laid_out: Layout, width: int) -> list[list[int]]:
    """Which sides share a table: all if they fit, else the reference with one other at a time."""
    if _gap(_widths(laid_out, laid_out.sides), width):
        return [list(laid_out.sides)]
    base = laid_out.table.base
    return [sorted((base, place)) for place in laid_out.sides if place != base]


def _gap(widths: Sequence[int], width: int) -> int:
    """Blanks between columns with which they fit; 0 if they do not."""
    used = [width for width in widths if width]
    return next((gap for gap in GAPS if sum(used) + gap * (len(used) - 1) <= width), 0)


def _widths(laid_out: Layout, shown: Sequence[int]) -> list[int]:
    """Width of every column; 0 if it is empty in all rows."""
    lines = [line for row in laid_out.table.rows for line in laid_out.lines(row, shown)]
    widths = []
    for place, head in enumerate(laid_out.heads(shown)):
        widest = max((cell_len(line[place].text) for line in lines), default=0)
        widths.append(max(widest, cell_len(head)) if widest else 0)
    return widths


def _grid(laid_out: Layout, shown: Sequence[int], width: int) -> Iterator[Text]:
    widths = _widths(laid_out, shown)
    gap = _gap(widths, width) or GAPS[-1]
    yield _line([layout.Text(head) for head in laid_out.heads(shown)], widths, gap, "bold")
    section = ""
    for group in laid_out.table.groups:
        if group.section:
            yield Text("")
        if group.section != section:
            section = group.section
            yield Text(section, style="bold")
        yield Text(f" {group.title}" if section else group.title, style="bold")
        for row in group.rows:
            yield from (_line(line, widths, gap) for line in laid_out.lines(row, shown))


def _line(cells: Sequence[layout.Text], widths: Sequence[int], gap: int, style: str = "") -> Text:
    """Label and unit left-aligned, all others right-aligned, without empty columns."""
    line = Text()
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if width == 0:
            continue
        blank = " " * (width - cell_len(cell.text))
        padded = cell.text + blank if place < 2 else blank + cell.text
        line.append(padded + " " * gap, style=style or STYLES.get(cell.mark, ""))
    return line


def _head(console: Console, table: Table, *, reasons: bool) -> None:
    """What was compared, and whether to trust it; the warnings, unless they are among the reasons."""
    console.print(Text(table.title, style="bold"))
    names = [side.name if len(side.name) <= NAME else f"{side.name[: NAME - 1]}…" for side in table.sides]
    width = max(map(len, [*names, "trust"]))
    for name, side in zip(names, table.sides, strict=True):
        _hanging(console, f"  {name:<{width}}", side.description)
    if not reasons and (ended := dict(table.facts).get("ended")):
        _hanging(console, f"{'ended':<{width + 2}}", ended)
    answers = [
        Text(f"{verdict.key} {verdict.short or verdict.answer}", style="" if verdict.is_sound else "yellow")
        for verdict in table.verdicts
    ]
    _hanging(console, f"{'trust':<{width + 2}}", Text(" · ").join(answers))
    if table.remedies and not reasons:
        more = len(table.remedies) - MAX_WARNINGS
        texts = list(table.remedies[:MAX_WARNINGS])
        texts += [f"{more} more warning{'s' if more > 1 else ''}: --verbose"] if more > 0 else []
        _hanging(console, f"{'warning':<{width + 2}}", "\n".join(texts), "yellow")


def _facts(console: Console, table: Table) -> None:
    labels = [verdict.key for verdict in table.verdicts] + [label for label, _ in table.facts]
    width = max(map(len, [*labels, "warning"]))
    for verdict in table.verdicts:
        _hanging(console, f"{verdict.key:<{width}}", verdict.summary())
    for label, text in table.facts:
        _hanging(console, f"{label:<{width}}", text)
    for text in table.warnings:
        _hanging(console, f"{'warning':<{width}}", text, "yellow")


def _hanging(console: Console, label: str, text: str | Text, style: str = "") -> None:
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(Text(label, style="bold"), Text(text, style=style) if isinstance(text, str) else text)
    console.print(grid)
