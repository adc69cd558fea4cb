"""The fits as panels of a figure: curves from the least N to the furthest that was asked for."""

from __future__ import annotations

import math

import numpy as np

from loadprint.commands.usl.fitted import Fit
from loadprint.commands.usl.models import Model
from loadprint.commands.usl.usl_summary import Told
from loadprint.plotting.scaling_plot import Curve, Panel

STEPS = 200
DRAWN = ("usl", "saturating", "amdahl")


def panels(told: Told) -> tuple[Panel, ...]:
    """One panel for each column that could be fitted."""
    return tuple(
        panel(column.fit, column.name, told.concurrency, column.unit)
        for column in told.columns
        if column.fit is not None
    )


def panel(found: Fit, name: str, concurrency: str, unit: str) -> Panel:
    """One column as a panel."""
    n = np.array([point.n for point in found.points])
    asked = [each.n for model in found.models for each in model.predictions]
    right = max([found.largest, *asked])
    axis = np.geomspace(float(n.min()), right, STEPS)
    usable = [model for key in DRAWN if not (model := found.model(key)).failed]
    x = np.array([point.x for point in found.points])
    return Panel(
        name,
        concurrency,
        f"throughput, {unit}" if unit else "throughput",
        n,
        x,
        tuple(_curve(model, axis, chief=place == 0) for place, model in enumerate(usable)),
        found.optimum,
    )


def _curve(model: Model, axis: np.ndarray[tuple[int, ...], np.dtype[np.float64]], *, chief: bool) -> Curve:
    values, half = model.at(axis), model.half_width(axis)
    name = model.label.partition(" (")[0]
    label = name if model.aicc is None or not math.isfinite(model.aicc) else f"{name} (AICc {model.aicc:.1f})"
    if half is None or model.key == "amdahl":  # three bands over each other cannot be read
        return Curve(label, axis, values, chief=chief)
    return Curve(label, axis, values, np.maximum(0, values - half), values + half, chief=chief)
