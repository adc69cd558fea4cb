"""Renders a table as GitHub-flavoured Markdown."""

from __future__ import annotations

from loadprint.rendering import escape, layout
from loadprint.rendering.layout import Layout
from loadprint.rendering.printout import pipes
from loadprint.tables.table import Table


def render(table: Table) -> str:
    """Return one Markdown table per group, with facts above and footnotes below."""
    laid_out = Layout(table)
    lines = ["# " + " compared with ".join(escape.markdown(side.name) for side in table.sides), ""]
    lines += [f"- **{verdict.key}** {escape.markdown(verdict.summary())}" for verdict in table.verdicts]
    lines += [
        f"- **{label}** {escape.markdown(text)}" if label else f"  {escape.markdown(text)}"
        for label, text in table.facts
    ]
    lines += [f"- **warning** {escape.markdown(text)}" for text in table.warnings]
    heads = [head or " " for head in laid_out.heads(laid_out.sides)]
    section = ""
    for group in table.groups:
        if group.section != section:
            section = group.section
            lines += ["", f"## {escape.markdown(section)}"]
        cells = (line for row in group.rows for line in laid_out.lines(row, laid_out.sides))
        texts = ([cell.text.strip() for cell in line] for line in cells)
        lines += ["", f"### {escape.markdown(group.title)}", "", *pipes(heads, texts, left=1)]
    lines += ["", *(f"- {escape.markdown(sentence)}" for sentence in layout.sentences(table)), ""]
    lines += [f"{number} {escape.markdown(text)}  " for number, text in laid_out.numbered_footnotes()]
    lines += ["", *(escape.markdown(text) + "  " for text in table.method)]
    return "\n".join(lines) + "\n"
