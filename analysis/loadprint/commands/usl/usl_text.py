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
from loadprint.commands.usl.usl_cells import blocks, heading
from loadprint.commands.usl.usl_summary import ColumnSummary, UslSummary
from loadprint.rendering import escape
from loadprint.rendering.grid import grid

WIDTH = 100
HEAD = ("column", "fit", "quantity", "n", "value", "error", "low", "high", "note")


def text(summary: UslSummary) -> str:
    """The report for a terminal, in at most 100 columns."""
    lines = [f"Throughput by {summary.concurrency}: {summary.title}", ""]
    for label, fact in _facts(summary):
        lines += textwrap.wrap(f"{label:<10}{fact}", WIDTH, subsequent_indent=" " * 10)
    for column in summary.columns:
        title = heading(column, summary.concurrency)
        lines += ["", title, "=" * len(title)]
        for conclusion in _conclusions(column):
            lines += textwrap.wrap(conclusion, WIDTH, subsequent_indent="  ")
        for block in blocks(column, summary.concurrency):
            lines += ["", block.title, *(f"  {line}" for line in grid((block.heads, *block.rows), left=1))]
            for note in block.notes:
                lines += textwrap.wrap(note, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def markdown(summary: UslSummary) -> str:
    """One Markdown table for each block."""
    shown = escape.markdown
    lines = [f"# Throughput by {shown(summary.concurrency)}: {shown(summary.title)}", ""]
    lines += [f"- **{label}** {shown(fact)}" for label, fact in _facts(summary)]
    for column in summary.columns:
        lines += ["", f"## {shown(heading(column, summary.concurrency))}", ""]
        lines += [f"- {shown(conclusion)}" for conclusion in _conclusions(column)]
        for block in blocks(column, summary.concurrency):
            lines += ["", f"### {block.title}", "", f"| {' | '.join(map(shown, block.heads))} |"]
            lines.append("|:--|" + "--:|" * (len(block.heads) - 1))
            lines += [f"| {' | '.join(map(shown, row))} |" for row in block.rows]
            lines += ["", *(f"{shown(note)}  " for note in block.notes)] if block.notes else []
    return "\n".join(lines) + "\n"


def _facts(summary: UslSummary) -> list[tuple[str, str]]:
    return [*summary.facts, *(("warning", warning) for warning in summary.warnings)]


def _conclusions(column: ColumnSummary) -> list[str]:
    """Conclusions on a column, warnings first."""
    notes = [f"! {note}" for note in column.notes]
    if column.fit is None:
        return [f"! no fit: {column.refused}", *notes]
    verdicts = sorted(column.fit.verdicts, key=lambda verdict: not verdict.warning)
    return [*notes, *(f"{'!' if verdict.warning else '-'} {verdict.text}" for verdict in verdicts)]


def as_csv(summary: UslSummary) -> str:
    """One line for each figure, raw numbers; an infinite or absent value is empty."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(HEAD)
    for column in summary.columns:
        for line in _lines(column):
            cells = {"column": column.name, **line}
            writer.writerow(["" if (cell := _finite(cells.get(head))) is None else cell for head in HEAD])
    return out.getvalue()


def _lines(column: ColumnSummary) -> Iterator[dict[str, Any]]:
    fit, growth = column.fit, column.growth
    if fit is None:
        yield {"quantity": "refused", "note": column.refused}
        return
    for point in fit.points:
        note = "outlier" if point.outlier else ""
        yield {"fit": "measured", "quantity": "throughput", "n": point.n, "value": point.x, "note": note}
    for model in fit.models:
        for line in _of_model(model):
            yield {"fit": model.key, **line}
    if fit.left_out is not None:
        low, high = fit.left_out.peak_range()
        yield {"fit": "usl", "quantity": "N_max left out", "low": low, "high": high}
        for place, each in enumerate(fit.headline.predictions):
            low, high = fit.left_out.range_at(place)
            yield {"fit": "usl", "quantity": "prediction left out", "n": each.n, "low": low, "high": high}
    for verdict in fit.verdicts:
        yield {"quantity": f"verdict: {verdict.key}", "note": verdict.text}
    for figure in growth.figures if growth else ():
        label = f"{figure.label} {figure.unit}".strip()
        for n, value in zip(growth.n if growth else (), figure.values, strict=True):
            yield {"quantity": label, "n": n, "value": value, "note": figure.reason}


def _of_model(model: Model) -> Iterator[dict[str, Any]]:
    if model.failed:
        yield {"quantity": "failed", "note": model.failed}
        return
    for each in model.parameters:
        yield {**asdict(each), "quantity": each.name, "note": "at its bound" if each.at_bound else ""}
    figures = {"r2": model.r2, "aicc": model.aicc, "rse": model.rse, "N_max": model.peak}
    for name, value in {**figures, "X_max": model.x_peak, "limit": model.limit}.items():
        yield {"quantity": name, "value": value}
    for at in model.predictions:
        bounds = {} if at.half is None else {"low": at.value - at.half, "high": at.value + at.half}
        yield {"quantity": "prediction", "n": at.n, "value": at.value, **bounds}


def as_json(summary: UslSummary) -> str:
    """One JSON object; a value that is infinite (N_max without κ) or not a number is null."""
    value = {"format_version": 1, **_finite(asdict(summary))}
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


RENDERERS = {"text": text, "markdown": markdown, "csv": as_csv, "json": as_json}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
