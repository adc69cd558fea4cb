"""Fits as tables of text cells, for the text and Markdown output, and as panels of a figure."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np

from loadprint import numbers
from loadprint.commands.usl.conclusions import f_test
from loadprint.commands.usl.curves import Floats, knee
from loadprint.commands.usl.fit import Fit
from loadprint.commands.usl.growth import Growth
from loadprint.commands.usl.models import Model
from loadprint.commands.usl.usl_summary import ColumnSummary
from loadprint.rendering.printout import Block
from loadprint.rendering.report_data import FittedCurve, Panel

ABSENT = "\u2013"
SIGNS = {"lambda": "λ", "sigma": "σ", "kappa": "κ"}
STEPS = 200
DRAWN = ("usl", "saturating", "amdahl")  # the first one is emphasised


def significant(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits, whole from 1000 on: 16,020, 0.05062, 0.0002003."""
    if value is None or math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    exponential = f"{value:.{digits - 1}e}"
    size = int(exponential.partition("e")[2])  # of the rounded number: 999.98 is 1,000
    return exponential if abs(value) < 1e-6 else f"{value:,.{max(0, digits - 1 - size)}f}"


def _interval(low: float | None, high: float | None, digits: int = 3) -> str:
    if low is None or high is None:
        return ""
    return numbers.minus(f"[{significant(low, digits)}, {significant(high, digits)}]")


def heading(column: ColumnSummary, concurrency: str) -> str:
    """Name of the column, its unit, and how many points it has."""
    title = f"{column.name}, {column.unit}" if column.unit else column.name
    if column.fit is None:
        return title
    levels, points = list(column.fit.levels), len(column.fit.points)
    repeats = f", {points} points" if points > len(levels) else ""
    return f"{title}: {len(levels)} {concurrency} from {levels[0]:g} to {levels[-1]:g}{repeats}"


def blocks(column: ColumnSummary, concurrency: str) -> tuple[Block, ...]:
    """All tables of a column that could be fitted."""
    fit = column.fit
    if fit is None:
        return ()
    out = [_models(fit), _predictions(fit, concurrency), _measured(fit, concurrency)]
    out = out if fit.headline.failed else [_headline(fit), *out]
    return (*out, _growth(column.growth, concurrency)) if column.growth else tuple(out)


def _headline(fit: Fit) -> Block:
    usl = fit.headline
    rows = tuple(
        (
            f"{SIGNS[parameter.name]} ({parameter.name})",
            significant(parameter.value),
            "at its bound" if parameter.at_bound else significant(parameter.error, 3),
            _interval(parameter.low, parameter.high),
        )
        for parameter in usl.parameters
    )
    _, sigma, kappa = usl.values
    ranges = f", leave-one-out {_interval(*fit.left_out.peak_range())}" if fit.left_out else ""
    note = (
        f"N_max {significant(usl.peak)}{ranges}; X_max {significant(usl.x_peak)}; asymptote λ/σ "
        f"{significant(usl.limit)}; 1/σ {significant(1 / sigma if sigma > 0 else math.inf, 3)}; "
        f"knee {significant(knee(sigma, kappa), 3)}"
    )
    error = f"residual standard error {significant(usl.rse)} on {usl.freedom} degrees of freedom"
    if lack := fit.lack_of_fit:
        error += f"; spread of repeats {significant(lack.spread)}, lack of fit {f_test(lack)}"
    heads = ("", "estimate", "std. error", "95 % interval")
    return Block("USL, by non-linear least squares", heads, rows, (note, error))


def _models(fit: Fit) -> Block:
    far = next((f"{model.predictions[-1].n:g}" for model in fit.models if model.predictions), "far")
    heads = ("", "λ or a", "σ or b", "κ", "R²", "AICc", "N_max", "X_max", f"X({far})")
    rows = tuple((model.label, *_model(model)) for model in fit.models)
    notes = (f"{model.label}: {model.failed}" for model in fit.models if model.failed)
    return Block("Models", heads, rows, tuple(notes))


def _model(model: Model) -> tuple[str, ...]:
    if model.failed:
        return (ABSENT,) * 8
    values = [numbers.minus(significant(value)) for value in model.values]
    return (
        *values,
        *[ABSENT] * (3 - len(values)),
        ABSENT if model.r2 is None else numbers.minus(f"{model.r2:.5f}"),
        ABSENT if model.aicc is None else numbers.minus(f"{model.aicc:.1f}"),
        "∞" if model.peak is None or math.isinf(model.peak) else f"{model.peak:,.2f}",
        significant(model.x_peak),
        significant(model.predictions[-1].value),
    )


def _predictions(fit: Fit, concurrency: str) -> Block:
    usable = [model for model in fit.models if not model.failed]
    models = [model for model in usable if model.key != "amdahl"] or usable
    heads = [concurrency, "beyond"]
    for model in models:
        heads += [model.label, "± 95 %"]
    heads += ["leave-one-out"] if fit.left_out else []
    rows = []
    for place, predictions in enumerate(zip(*(model.predictions for model in models), strict=True)):
        n = predictions[0].n
        row = [f"{n:g}", f"{significant(n / fit.largest, 3)} ×"]
        for prediction in predictions:
            row += [significant(prediction.value), significant(prediction.half, 3)]
        rows.append((*row, *([_interval(*fit.left_out.range_at(place), 4)] if fit.left_out else [])))
    note = "±: interval of the curve if its model is true (delta method); leave-one-out: of USL"
    return Block("Predictions", tuple(heads), tuple(rows), (note,))


def _measured(fit: Fit, concurrency: str) -> Block:
    """A line per N: the mean of its repeats, their number and range."""
    repeated = len(fit.points) > len(fit.levels)
    rows = []
    for n, points in fit.levels.items():
        x, fitted = [point.x for point in points], points[0].predicted
        off = ABSENT if fitted is None else numbers.points(100 * (fitted / fmean(x) - 1))
        spread = [str(len(x)), _interval(min(x), max(x), 4)] if repeated else []
        mark = "  outlier" if points[0].outlier else ""
        rows.append((f"{n:g}", significant(fmean(x)), *spread, significant(fitted), off + mark))
    heads = (concurrency, "measured", *(("repeats", "least, most") if repeated else ()), "USL", "USL, % off")
    return Block("Measured", heads, tuple(rows))


def _growth(growth: Growth, concurrency: str) -> Block:
    rows = tuple(
        (f"{n:g}", *("n/a" if value is None else significant(value, 3) for value in values))
        for n, *values in zip(growth.n, *(figure.values for figure in growth.figures), strict=True)
    )
    heads = (concurrency, *(f"{figure.head} {figure.unit}".rstrip() for figure in growth.figures))
    meaning = "; ".join(f"{figure.head} = {figure.label}" for figure in growth.figures)
    absent = [f"{figure.head} n/a: {figure.reason}" for figure in growth.figures if figure.reason]
    return Block("What the kernel saw", heads, rows, (*growth.sentences, *absent, meaning))


def panel(fit: Fit, name: str, concurrency: str, unit: str) -> Panel:
    """One column as a panel: curves from the least N to the largest prediction."""
    n, x = np.array([(point.n, point.x) for point in fit.points]).T
    right = max([fit.largest, *(prediction.n for model in fit.models for prediction in model.predictions)])
    axis = np.geomspace(float(n.min()), right, STEPS)
    drawn = [model for key in DRAWN if not (model := fit.model(key)).failed]
    label = f"throughput, {unit}" if unit else "throughput"
    curves = tuple(_curve(model, axis, chief=model is drawn[0]) for model in drawn)
    return Panel(name, concurrency, label, n, x, curves, fit.optimum)


def _curve(model: Model, axis: Floats, *, chief: bool) -> FittedCurve:
    values, half = model.at(axis), model.half_width(axis)
    label = model.label.partition(" (")[0]
    label += "" if model.aicc is None else f" (AICc {model.aicc:.1f})"
    if half is None or model.key == "amdahl":  # three overlapping bands are not readable
        return FittedCurve(label, axis, values, chief=chief)
    return FittedCurve(label, axis, values, np.maximum(0, values - half), values + half, chief=chief)
