"""Fits as tables of text cells, for the text and Markdown output."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadprint import numbers
from loadprint.commands.usl import curves
from loadprint.commands.usl.conclusions import f_test
from loadprint.commands.usl.fitted import Fit, Point
from loadprint.commands.usl.growth import Growth
from loadprint.commands.usl.models import Model, Parameter
from loadprint.commands.usl.usl_summary import ColumnSummary

ABSENT = "\u2013"
SIGNS = {"lambda": "λ", "sigma": "σ", "kappa": "κ"}


@dataclass(frozen=True)
class Block:
    """A table: the first column is text, the others are numbers; notes are printed below it."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def significant(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits, whole from 1000 on: 16,020, 0.05062, 0.0002003."""
    if value is None or math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) < 1e-6:
        return f"{value:.{digits - 1}e}"
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded number: 999.98 is 1,000
    return f"{value:,.{max(0, digits - 1 - size) if size < 3 else 0}f}"


def blocks(column: ColumnSummary, concurrency: str) -> tuple[Block, ...]:
    """All tables of a column that could be fitted."""
    if column.fit is None:
        return ()
    fit = column.fit
    out = [] if fit.headline.failed else [_headline(fit)]
    out += [_models(fit), _predictions(fit, concurrency), _measured(fit, concurrency)]
    return (*out, *([_growth(column.growth, concurrency)] if column.growth else []))


def heading(column: ColumnSummary, concurrency: str) -> str:
    """Name of the column, its unit, and how many points it has."""
    unit = f", {column.unit}" if column.unit else ""
    if column.fit is None:
        return f"{column.name}{unit}"
    levels = sorted({point.n for point in column.fit.points})
    points = len(column.fit.points)
    repeats = f", {points} points" if points > len(levels) else ""
    return f"{column.name}{unit}: {len(levels)} {concurrency} from {levels[0]:g} to {levels[-1]:g}{repeats}"


def _interval(low: float | None, high: float | None, digits: int = 3) -> str:
    if low is None or high is None:
        return ""
    return f"[{significant(low, digits)}, {significant(high, digits)}]".replace("-", "\u2212")


def _headline(fit: Fit) -> Block:
    usl = fit.headline
    rows = [
        (
            f"{SIGNS[each.name]} ({each.name})",
            significant(each.value),
            "at its bound" if each.at_bound else significant(each.error, 3),
            _interval(each.low, each.high),
        )
        for each in usl.parameters
    ]
    sigma, kappa = usl.parameter("sigma").value, usl.parameter("kappa").value
    ranges = ""
    if fit.left_out is not None:
        ranges = f", leave-one-out {_interval(*fit.left_out.peak_range())}"
    notes = [
        f"N_max {significant(usl.peak)}{ranges}; X_max {significant(usl.x_peak)}; asymptote λ/σ "
        f"{significant(usl.limit)}; 1/σ {significant(1 / sigma if sigma > 0 else math.inf, 3)}; "
        f"knee {significant(curves.knee(sigma, kappa), 3)}"
    ]
    error = f"residual standard error {significant(usl.rse)} on {usl.freedom} degrees of freedom"
    if fit.lack_of_fit is not None:
        lack = fit.lack_of_fit
        error += f"; spread of repeats {significant(lack.spread)}, lack of fit {f_test(lack)}"
    return Block(
        "USL, by non-linear least squares",
        ("", "estimate", "std. error", "95 % interval"),
        tuple(rows),
        (*notes, error),
    )


def _models(fit: Fit) -> Block:
    far = next((model.predictions[-1].n for model in fit.models if model.predictions), None)
    heads = (
        "",
        "λ or a",
        "σ or b",
        "κ",
        "R²",
        "AICc",
        "N_max",
        "X_max",
        "X(far)" if far is None else f"X({far:g})",
    )
    rows, notes = [], []
    for model in fit.models:
        if model.failed:
            rows.append((model.label, *[ABSENT] * 8))
            notes.append(f"{model.label}: {model.failed}")
            continue
        rows.append((model.label, *_parameters(model), *_quality(model), *_limits(model)))
    return Block("Models", heads, tuple(rows), tuple(dict.fromkeys(notes)))


def _parameters(model: Model) -> tuple[str, ...]:
    written = [_written(parameter) for parameter in model.parameters]
    return (*written, *[ABSENT] * (3 - len(written)))


def _written(parameter: Parameter) -> str:
    return significant(parameter.value).replace("-", "\u2212")


def _quality(model: Model) -> tuple[str, str]:
    r2 = ABSENT if model.r2 is None else f"{model.r2:.5f}"
    aicc = ABSENT if model.aicc is None else f"{model.aicc:.1f}"
    return r2.replace("-", "\u2212"), aicc.replace("-", "\u2212")


def _limits(model: Model) -> tuple[str, str, str]:
    peak = "∞" if model.peak is None or math.isinf(model.peak) else f"{model.peak:,.2f}"
    far = significant(model.predictions[-1].value) if model.predictions else ABSENT
    return peak, significant(model.x_peak), far


def _predictions(fit: Fit, concurrency: str) -> Block:
    models = [fit.headline, fit.model("saturating")]
    models = [model for model in models if not model.failed] or [
        model for model in fit.models if not model.failed
    ]
    heads = [concurrency, "beyond"]
    for model in models:
        heads += [model.label, "± 95 %"]
    heads += ["leave-one-out"] if fit.left_out else []
    rows = []
    for place, each in enumerate(models[0].predictions) if models else []:
        row = [f"{each.n:g}", f"{significant(each.n / fit.largest, 3)} ×"]
        for model in models:
            prediction = model.predictions[place]
            row += [significant(prediction.value), significant(prediction.half, 3)]
        if fit.left_out:
            row.append(_interval(*fit.left_out.range_at(place), 4))
        rows.append(tuple(row))
    note = "±: interval of the curve if its model is true (delta method); leave-one-out: of USL"
    return Block("Predictions", tuple(heads), tuple(rows), (note,))


def _measured(fit: Fit, concurrency: str) -> Block:
    """A line per N: the mean of its repeats, their number and range."""
    levels: dict[float, list[Point]] = {}
    for point in fit.points:
        levels.setdefault(point.n, []).append(point)
    repeated = len(fit.points) > len(levels)
    rows = []
    for n, points in levels.items():
        x = [point.x for point in points]
        mean, fitted = math.fsum(x) / len(x), points[0].predicted
        off = ABSENT if fitted is None else numbers.points(100 * (fitted / mean - 1))
        mark = "  outlier" if points[0].outlier else ""
        spread = [str(len(x)), _interval(min(x), max(x), 4)] if repeated else []
        rows.append((f"{n:g}", significant(mean), *spread, significant(fitted), off + mark))
    heads = (concurrency, "measured", *(("repeats", "least, most") if repeated else ()), "USL", "USL, % off")
    return Block("Measured", heads, tuple(rows))


def _growth(growth: Growth, concurrency: str) -> Block:
    rows = [
        (
            f"{n:g}",
            *(
                "n/a" if each.values[place] is None else significant(each.values[place], 3)
                for each in growth.figures
            ),
        )
        for place, n in enumerate(growth.n)
    ]
    heads = (concurrency, *(each.head for each in growth.figures))
    meaning = "; ".join(f"{each.head}: {each.label}" for each in growth.figures)
    absent = [f"{each.head} n/a: {each.reason}" for each in growth.figures if each.reason]
    return Block("What the kernel saw", heads, tuple(rows), (*growth.sentences, *absent, meaning))
