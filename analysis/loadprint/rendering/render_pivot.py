"""Renders a report of pivot tables as text, Markdown, CSV (long form, raw numbers) or JSON."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from loadprint import numbers
from loadprint.rendering import escape
from loadprint.rendering.grid import grid
from loadprint.rendering.pivot import Pivot, PivotReport

WIDTH = 100
NOTHING = "\u2013"


def text(report: PivotReport) -> str:
    """Return the report for a terminal, in at most 100 columns if the heads of the tables allow it."""
    lines = [report.title, ""]
    for label, fact in (*report.facts, *(("warning", warning) for warning in report.warnings)):
        lines += textwrap.wrap(f"{label:<10}{fact}", WIDTH, subsequent_indent=" " * 10)
    for pivot in report.pivots:
        lines += ["", heading(pivot)]
        heads, body = written(pivot)
        lines += [f"  {line}" for line in grid((heads, *body), left=0)]
        lines += textwrap.wrap(pivot.note, WIDTH - 2, initial_indent="  ", subsequent_indent="  ")
    if report.sentences:
        lines.append("")
    for sentence in report.sentences:
        lines += textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def markdown(report: PivotReport) -> str:
    """Return one Markdown table per pivot."""
    lines = [f"# {escape.markdown(report.title)}", ""]
    lines += [f"- **{label}** {escape.markdown(fact)}" for label, fact in report.facts]
    lines += [f"- **warning** {escape.markdown(warning)}" for warning in report.warnings]
    for pivot in report.pivots:
        heads, body = written(pivot)
        lines += [
            "",
            f"## {escape.markdown(heading(pivot))}",
            "",
            f"| {' | '.join(map(escape.markdown, heads))} |",
        ]
        lines.append("|" + "--:|" * len(heads))
        lines += [f"| {' | '.join(map(escape.markdown, row))} |" for row in body]
        lines += ["", escape.markdown(pivot.note)] if pivot.note else []
    lines += ["", *(f"{escape.markdown(sentence)}  " for sentence in report.sentences)]
    return "\n".join(lines) + "\n"


def as_csv(report: PivotReport) -> str:
    """Return one line per cell; the value may be empty."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(("pivot", "unit", "row", "column", "value"))
    for pivot in report.pivots:
        for row, cells in zip(pivot.rows, pivot.cells, strict=True):
            for column, value in zip(pivot.columns, cells, strict=True):
                writer.writerow((pivot.key, pivot.unit, row, column, "" if value is None else repr(value)))
    return out.getvalue()


def as_json(report: PivotReport) -> str:
    """Return one JSON object."""
    value = {"format_version": 1, **asdict(report)}
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


RENDERERS = {"text": text, "markdown": markdown, "csv": as_csv, "json": as_json}


def heading(pivot: Pivot) -> str:
    """Title and unit."""
    return f"{pivot.title} ({pivot.unit})" if pivot.unit else pivot.title


def written(pivot: Pivot) -> tuple[list[str], list[list[str]]]:
    """Heads, and rows of texts."""
    columns = list(zip(*pivot.cells, strict=True))
    values = [value for row in pivot.cells for value in row]
    places = [_places(column if pivot.columns_differ else values) for column in columns]
    body = []
    for name, row in zip(pivot.rows, pivot.cells, strict=True):
        own = [_places(row)] * len(row) if pivot.rows_differ else places
        cells = zip(row, own, strict=True)
        body.append([name, *(NOTHING if each is None else numbers.number(each, at) for each, at in cells)])
    return [pivot.corner, *pivot.columns], body


def _places(values: Sequence[float | None]) -> int:
    """Decimals that values share; whole numbers have none."""
    known = [value for value in values if value is not None]
    return 0 if all(value == round(value) for value in known) else numbers.decimals(known)
