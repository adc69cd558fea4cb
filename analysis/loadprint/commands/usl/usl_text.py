"""Fits as text, Markdown, CSV (long form) or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from loadprint.commands.usl.models import Model
from loadprint.commands.usl.usl_cells import blocks, heading
from loadprint.commands.usl.usl_summary import ColumnSummary, UslSummary
from loadprint.rendering.printout import Block, Printout, as_json, finite, renderers

HEAD = ("column", "fit", "quantity", "n", "value", "error", "low", "high", "note")


def _printout(summary: UslSummary) -> Printout:
    title = f"Throughput by {summary.concurrency}: {summary.title}"
    shown: list[Block] = []
    for column in summary.columns:
        shown.append(Block(heading(column, summary.concurrency), notes=tuple(_conclusions(column))))
        shown += blocks(column, summary.concurrency)
    return Printout(title, summary.facts, summary.warnings, shown)


def _conclusions(column: ColumnSummary) -> list[str]:
    """Conclusions on a column, warnings first."""
    notes = [f"! {note}" for note in column.notes]
    if column.fit is None:
        return [f"! no fit: {column.refused}", *notes]
    verdicts = sorted(column.fit.verdicts, key=lambda verdict: not verdict.warning)
    return [*notes, *(f"{'!' if verdict.warning else '-'} {verdict.text}" for verdict in verdicts)]


def _lines(summary: UslSummary) -> Iterator[list[Any] | tuple[str, ...]]:
    """One line for each figure, raw numbers; an infinite or absent value is empty."""
    yield HEAD
    for column in summary.columns:
        for line in _figures(column):
            cells = {"column": column.name, **line}
            yield [finite(cells.get(head)) for head in HEAD]


def _figures(column: ColumnSummary) -> Iterator[dict[str, Any]]:
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
        for place, far in enumerate(fit.headline.predictions):
            low, high = fit.left_out.range_at(place)
            yield {"fit": "usl", "quantity": "prediction left out", "n": far.n, "low": low, "high": high}
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
    for term in model.parameters:
        yield {**asdict(term), "quantity": term.name, "note": "at its bound" if term.at_bound else ""}
    figures = {"r2": model.r2, "aicc": model.aicc, "rse": model.rse, "N_max": model.peak}
    for name, value in {**figures, "X_max": model.x_peak, "limit": model.limit}.items():
        yield {"quantity": name, "value": value}
    for at in model.predictions:
        bounds = {} if at.half is None else {"low": at.value - at.half, "high": at.value + at.half}
        yield {"quantity": "prediction", "n": at.n, "value": at.value, **bounds}


RENDERERS = renderers(_printout, _lines, lambda summary: as_json(summary, format_version=1))
