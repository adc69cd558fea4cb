"""Fits as text, Markdown, CSV (long form) or JSON."""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from loadprint.commands.usl.models import Model
from loadprint.commands.usl.usl_cells import Block, blocks, heading
from loadprint.commands.usl.usl_summary import ColumnSummary, Summary
from loadprint.rendering import escape
from loadprint.rendering.grid import grid

WIDTH = 100
HEAD = ("column", "fit", "quantity", "n", "value", "error", "low", "high", "note")
Line = tuple[Any, ...]


def text(summary: Summary) -> str:
    """The report for a terminal, in at most 100 columns."""
    lines = [f"Throughput by {summary.concurrency}: {summary.title}", ""]
    for label, fact in (*summary.facts, *(("warning", warning) for warning in summary.warnings)):
        lines += textwrap.wrap(f"{label:<10}{fact}", WIDTH, subsequent_indent=" " * 10)
    for column in summary.columns:
        title = heading(column, summary.concurrency)
        lines += ["", title, "=" * len(title)]
        lines += [
            line
            for text in _conclusions(column)
            for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ")
        ]
        for block in blocks(column, summary.concurrency):
            lines += ["", f"{block.title}", *_table(block)]
            for note in block.notes:
                lines += textwrap.wrap(note, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _conclusions(column: ColumnSummary) -> list[str]:
    """Conclusions on a column, warnings first."""
    if column.fit is None:
        return [f"! no fit: {column.refused}", *(f"! {note}" for note in column.notes)]
    verdicts = sorted(column.fit.verdicts, key=lambda verdict: not verdict.warning)
    return [
        *(f"! {note}" for note in column.notes),
        *(f"{'!' if verdict.warning else '-'} {verdict.text}" for verdict in verdicts),
    ]


def _table(block: Block) -> list[str]:
    return [f"  {line}" for line in grid((block.heads, *block.rows), left=1)]


def markdown(summary: Summary) -> str:
    """One Markdown table for each block."""
    lines = [f"# Throughput by {escape.markdown(summary.concurrency)}: {escape.markdown(summary.title)}", ""]
    lines += [f"- **{label}** {escape.markdown(fact)}" for label, fact in summary.facts]
    lines += [f"- **warning** {escape.markdown(warning)}" for warning in summary.warnings]
    for column in summary.columns:
        lines += ["", f"## {escape.markdown(heading(column, summary.concurrency))}", ""]
        lines += [f"- {escape.markdown(text)}" for text in _conclusions(column)]
        for block in blocks(column, summary.concurrency):
            lines += ["", f"### {block.title}", "", f"| {' | '.join(map(escape.markdown, block.heads))} |"]
            lines.append("|:--|" + "--:|" * (len(block.heads) - 1))
            lines += [f"| {' | '.join(map(escape.markdown, row))} |" for row in block.rows]
            lines += ["", *(f"{escape.markdown(note)}  " for note in block.notes)] if block.notes else []
    return "\n".join(lines) + "\n"


def as_csv(summary: Summary) -> str:
    """One line for each figure, raw numbers; an infinite or absent value is empty."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(HEAD)
    for column in summary.columns:
        for line in _lines(column):
            writer.writerow([column.name, *(_plain(cell) for cell in line)])
    return out.getvalue()


def _lines(column: ColumnSummary) -> Iterator[Line]:
    if column.fit is None:
        yield ("", "refused", None, None, None, None, None, column.refused)
        return
    for point in column.fit.points:
        note = "outlier" if point.outlier else ""
        yield ("measured", "throughput", point.n, point.x, None, None, None, note)
    for model in column.fit.models:
        yield from _of_model(model)
    if column.fit.left_out is not None:
        yield ("usl", "N_max left out", None, None, None, *column.fit.left_out.peak_range(), "")
        for place, each in enumerate(column.fit.headline.predictions):
            yield ("usl", "prediction left out", each.n, None, None, *column.fit.left_out.range_at(place), "")
    for verdict in column.fit.verdicts:
        yield ("", f"verdict: {verdict.key}", None, None, None, None, None, verdict.text)
    for figure in column.growth.figures if column.growth else ():
        for n, value in zip(column.growth.n if column.growth else (), figure.values, strict=True):
            yield ("", f"{figure.label} {figure.unit}".strip(), n, value, None, None, None, figure.reason)


def _of_model(model: Model) -> Iterator[Line]:
    if model.failed:
        yield (model.key, "failed", None, None, None, None, None, model.failed)
        return
    for each in model.parameters:
        bound = "at its bound" if each.at_bound else ""
        yield (model.key, each.name, None, each.value, each.error, each.low, each.high, bound)
    figures = (("r2", model.r2), ("aicc", model.aicc), ("rse", model.rse), ("N_max", model.peak))
    for name, value in (*figures, ("X_max", model.x_peak), ("limit", model.limit)):
        yield (model.key, name, None, value, None, None, None, "")
    for at in model.predictions:
        low, high = (None, None) if at.half is None else (at.value - at.half, at.value + at.half)
        yield (model.key, "prediction", at.n, at.value, None, low, high, "")


def as_json(summary: Summary) -> str:
    """One JSON object; a value that is infinite (N_max without κ) or not a number is null."""
    value = {"format_version": 1, **_finite(asdict(summary))}
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


RENDERERS = {"text": text, "markdown": markdown, "csv": as_csv, "json": as_json}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return _plain(value, None)


def _plain(value: Any, nothing: Any = "") -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return nothing
    return value
