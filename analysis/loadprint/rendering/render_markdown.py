"""The table as GitHub-flavoured Markdown."""

from __future__ import annotations

from loadprint.rendering import layout
from loadprint.tables.table import Table


def render(table: Table) -> str:
    """Return one Markdown table a group, with facts above and footnotes below."""
    table = layout.lifted(table)
    lines = ["# " + " | ".join(side.name for side in table.sides).replace("|", "beside"), ""]
    lines += [f"- **{verdict.key}** {_safe(verdict.told())}" for verdict in table.verdicts]
    lines += [f"- **{label}** {_safe(text)}" if label else f"  {_safe(text)}" for label, text in table.facts]
    lines += [f"- **warning** {_safe(text)}" for text in table.warnings]
    heads = [_safe(head) or " " for head in layout.columns(table, layout.everyone(table))]
    section = ""
    for group in table.groups:
        if group.section != section:
            section = group.section
            lines += ["", f"## {_safe(section)}"]
        lines += ["", f"### {_safe(group.title)}", "", f"| {' | '.join(heads)} |"]
        lines.append("|" + "|".join([":--"] + ["--:"] * (len(heads) - 1)) + "|")
        lines += [
            "| " + " | ".join(_safe(cell.text.strip()) for cell in line) + " |"
            for row in group.rows
            for line in layout.lines(table, row, layout.everyone(table))
        ]
    lines += ["", *(f"- {_safe(sentence)}" for sentence in layout.sentences(table)), ""]
    lines += [
        f"{layout.superscript([number])} {_safe(text)}  "
        for number, text in enumerate(table.footnotes, start=1)
    ]
    lines += ["", *(_safe(text) + "  " for text in table.method)]
    return "\n".join(lines) + "\n"


def _safe(text: str) -> str:
    for sign in ("|", "*", "~", "_"):
        text = text.replace(sign, f"\\{sign}")
    return text
