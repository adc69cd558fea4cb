"""Renders a table as GitHub-flavoured Markdown."""

from __future__ import annotations

from loadprint.rendering import layout, printout
from loadprint.rendering.layout import Layout
from loadprint.rendering.printout import Block, Printout
from loadprint.tables.table import Table


def render(table: Table) -> str:
    """Return one Markdown table per group, with facts above and footnotes below."""
    laid_out = Layout(table)
    heads = tuple(head or " " for head in laid_out.heads(laid_out.sides))
    blocks = []
    section = ""
    for group in table.groups:
        if group.section != section:
            section = group.section
            blocks.append(Block(section))
        lines = (line for row in group.rows for line in laid_out.lines(row, laid_out.sides))
        blocks.append(
            Block(group.title, heads, tuple(tuple(cell.text.strip() for cell in line) for line in lines))
        )
    blocks.append(Block(notes=tuple(layout.sentences(table))))
    facts = [*((verdict.key, verdict.summary()) for verdict in table.verdicts), *table.facts]
    notes = (f"{number} {text}" for number, text in laid_out.numbered_footnotes())
    title = " compared with ".join(side.name for side in table.sides)
    below = [*notes, "", *layout.summary(table), *table.method]
    return printout.markdown(Printout(title, facts, table.warnings, blocks, below))
