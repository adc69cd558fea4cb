"""Fits as panels of a figure: curves from the least N to the largest prediction."""

from __future__ import annotations

import math

import numpy as np

from loadprint.commands.usl.fitted import Fit
from loadprint.commands.usl.models import Model
from loadprint.commands.usl.usl_summary import Summary
from loadprint.rendering.report_data import FittedCurve, Panel

STEPS = 200
DRAWN = ("usl", "saturating", "amdahl")  # the first one is emphasised


def panels(summary: Summary) -> tuple[Panel, ...]:
    """One panel for each column that could be fitted."""
    return tuple(
        panel(column.fit, column.name, summary.concurrency, column.unit)
        for column in summary.columns
        if column.fit is not None
    )


def panel(fit: Fit, name: str, concurrency: str, unit: str) -> Panel:
    """One column as a panel."""
    n = np.array([point.n for point in fit.points])
    predicted = [each.n for model in fit.models for each in model.predictions]
    right = max([fit.largest, *predicted])
    axis = np.geomspace(float(n.min()), right, STEPS)
    usable = [model for key in DRAWN if not (model := fit.model(key)).failed]
    x = np.array([point.x for point in fit.points])
    return Panel(
        name,
        concurrency,
        f"throughput, {unit}" if unit else "throughput",
        n,
        x,
        tuple(_curve(model, axis, chief=place == 0) for place, model in enumerate(usable)),
        fit.optimum,
    )


def _curve(
    model: Model, axis: np.ndarray[tuple[int, ...], np.dtype[np.float64]], *, chief: bool
) -> FittedCurve:
    values, half = model.at(axis), model.half_width(axis)
    name = model.label.partition(" (")[0]
    label = name if model.aicc is None or not math.isfinite(model.aicc) else f"{name} (AICc {model.aicc:.1f})"
    if half is None or model.key == "amdahl":  # three overlapping bands are not readable
        return FittedCurve(label, axis, values, chief=chief)
    return FittedCurve(label, axis, values, np.maximum(0, values - half), values + half, chief=chief)
