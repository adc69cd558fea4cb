"""Renders a report as text of 100 columns, Markdown, CSV and JSON."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from json import dumps

from loadprint.commands.qualify import qualify_cells
from loadprint.commands.qualify.qualify_report import CellReport, Report
from loadprint.rendering import escape

WIDTH = 100
GAP = 2
LEFT = 2  # label and unit; numbers are to the right
CSV_HEADS = (
    "cell",
    "threads",
    "load",
    "row",
    "unit",
    "better",
    "tolerance",
    "baseline",
    "candidate",
    "ratio",
    "low",
    "high",
    "limit",
    "verdict",
    "more",
    "reason",
)


def text(report: Report) -> str:
    """Return the report for a terminal; its last line is the verdict with its reason."""
    lines: list[str] = []
    for label, fact in qualify_cells.facts(report):
        lines += _wrapped(fact, f"{label:<11}")
    widths = _widths(report)
    for cell in report.cells:
        lines += ["", cell.title, *_table(cell, widths)]
        for void in qualify_cells.voids(cell):
            lines += _wrapped(void, "  inconclusive: ")
        for line in qualify_cells.below(cell):
            lines += _wrapped(line, "  ")
    lines.append("")
    for sentence in report.method:
        lines += _wrapped(sentence, "")
    lines.append("")
    last = qualify_cells.last(report)
    if len(report.reasons) > 1 or len(last) > WIDTH:
        for reason in report.reasons:
            lines += _wrapped(reason, "- ")
    lines.append(textwrap.shorten(last, WIDTH, placeholder=" …", break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    lines = [f"- **{label}** {escape.markdown(fact)}" for label, fact in qualify_cells.facts(report)]
    for cell in report.cells:
        lines += [
            "",
            f"### {escape.markdown(cell.title)}",
            "",
            _pipes([*qualify_cells.HEADS, "why"]),
            _pipes(["---"] * 9),
        ]
        lines += [_pipes([*texts, why]) for texts, why in qualify_cells.rows(cell)]
        lines += ["", *(f"- inconclusive: {escape.markdown(void)}" for void in qualify_cells.voids(cell))]
        lines += [f"- {escape.markdown(line)}" for line in qualify_cells.below(cell)]
    lines += ["", *(f"{escape.markdown(sentence)}  " for sentence in report.method), ""]
    lines += [f"- {escape.markdown(reason)}" for reason in report.reasons]
    return "\n".join([*lines, "", f"**{report.verdict}**"]) + "\n"


def comma_separated(report: Report) -> str:
    """Return one line for each row and cell, in base units."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(CSV_HEADS)
    for cell in report.cells:
        for line in cell.lines:
            writer.writerow(
                [
                    cell.name,
                    cell.threads,
                    cell.load,
                    line.key,
                    line.unit,
                    line.better,
                    line.tolerance,
                    line.baseline.value,
                    line.candidate.value,
                    line.ratio,
                    line.low,
                    line.high,
                    line.limit,
                    line.verdict,
                    line.more,
                    line.reason or "; ".join(qualify_cells.voids(cell)),
                ]
            )
    return out.getvalue()


def as_json(report: Report) -> str:
    """Return the whole report, with its exit status."""
    plain = {"format_version": 1, "status": report.status, **asdict(report)}
    return dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


RENDERERS: dict[str, Callable[[Report], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": comma_separated,
    "json": as_json,
}


def _wrapped(text: str, head: str) -> list[str]:
    lines = textwrap.wrap(
        text.replace(" %", "\N{NO-BREAK SPACE}%"),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _widths(report: Report) -> list[int]:
    """Return the width of every column, over all cells."""
    texts = [
        list(qualify_cells.HEADS),
        *(row for cell in report.cells for row, _ in qualify_cells.rows(cell)),
    ]
    return [max(len(row[place]) for row in texts) for place in range(len(qualify_cells.HEADS))]


def _table(cell: CellReport, widths: list[int]) -> Iterator[str]:
    yield _line(list(qualify_cells.HEADS), widths)
    for row, reason in qualify_cells.rows(cell):
        yield _line(row, widths)
        if reason:
            yield from _wrapped(reason, " " * 6)


def _line(row: list[str], widths: list[int]) -> str:
    last = len(row) - 1
    cells = [
        each.ljust(width) if place < LEFT or place == last else each.rjust(width)
        for place, (each, width) in enumerate(zip(row, widths, strict=True))
    ]
    gap = " " * (GAP if sum(widths) + GAP * last <= WIDTH else 1)
    return gap.join(cells).rstrip()


def _pipes(cells: list[str]) -> str:
    return f"| {' | '.join(map(escape.markdown, cells))} |"
