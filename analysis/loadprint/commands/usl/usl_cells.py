"""The told fits as tables of written cells, for the renderers that people read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadprint import numbers
from loadprint.commands.usl import curves
from loadprint.commands.usl.fitted import Fit, Point
from loadprint.commands.usl.growth import Growth
from loadprint.commands.usl.models import Model, Parameter
from loadprint.commands.usl.usl_summary import ColumnTold

NOTHING = "\u2013"
SIGNS = {"lambda": "λ", "sigma": "σ", "kappa": "κ"}


@dataclass(frozen=True)
class Block:
    """A table: the first column is text, the others are numbers; notes stand below it."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def significant(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits, whole from 1000 on: 16,020, 0.05062, 0.0002003."""
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) < 1e-6:
        return f"{value:.{digits - 1}e}"
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded number: 999.98 is 1,000
    return f"{value:,.{max(0, digits - 1 - size) if size < 3 else 0}f}"


def blocks(column: ColumnTold, concurrency: str) -> tuple[Block, ...]:
    """All tables of a column that could be fitted."""
    if column.fit is None:
        return ()
    found = column.fit
    out = [] if found.headline.failed else [_headline(found)]
    out += [_side_by_side(found), _predictions(found, concurrency), _measured(found, concurrency)]
    return (*out, *([_grown(column.growth, concurrency)] if column.growth else []))


def heading(column: ColumnTold, concurrency: str) -> str:
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


def _headline(found: Fit) -> Block:
    usl = found.headline
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
    if found.left_out is not None:
        ranges = f", leave-one-out {_interval(*found.left_out.peak_range())}"
    notes = [
        f"N_max {significant(usl.peak)}{ranges}; X_max {significant(usl.x_peak)}; asymptote λ/σ "
        f"{significant(usl.limit)}; 1/σ {significant(1 / sigma if sigma > 0 else math.inf, 3)}; "
        f"knee {significant(curves.knee(sigma, kappa), 3)}"
    ]
    error = f"residual standard error {significant(usl.rse)} on {usl.freedom} degrees of freedom"
    if found.lack_of_fit is not None:
        fit = found.lack_of_fit
        error += f"; repeats spread by {significant(fit.spread)}, lack of fit F {fit.f:.3g}, p {fit.p:.2g}"
    return Block(
        "Three parameters by non-linear least squares",
        ("", "estimate", "std. error", "95 % interval"),
        tuple(rows),
        (*notes, error),
    )


def _side_by_side(found: Fit) -> Block:
    far = next((model.predictions[-1].n for model in found.models if model.predictions), None)
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
    for model in found.models:
        if model.failed:
            rows.append((model.label, *[NOTHING] * 8))
            notes.append(f"{model.label}: {model.failed}")
            continue
        rows.append((model.label, *_parameters(model), *_quality(model), *_reach(model)))
    return Block("Fits side by side", heads, tuple(rows), tuple(dict.fromkeys(notes)))


def _parameters(model: Model) -> tuple[str, ...]:
    written = [_written(parameter) for parameter in model.parameters]
    return (*written, *[NOTHING] * (3 - len(written)))


def _written(parameter: Parameter) -> str:
    return significant(parameter.value).replace("-", "\u2212")


def _quality(model: Model) -> tuple[str, str]:
    r2 = NOTHING if model.r2 is None else f"{model.r2:.5f}"
    aicc = NOTHING if model.aicc is None else f"{model.aicc:.1f}"
    return r2.replace("-", "\u2212"), aicc.replace("-", "\u2212")


def _reach(model: Model) -> tuple[str, str, str]:
    peak = "∞" if model.peak is None or math.isinf(model.peak) else f"{model.peak:,.2f}"
    far = significant(model.predictions[-1].value) if model.predictions else NOTHING
    return peak, significant(model.x_peak), far


def _predictions(found: Fit, concurrency: str) -> Block:
    rivals = [found.headline, found.model("saturating")]
    rivals = [model for model in rivals if not model.failed] or [
        model for model in found.models if not model.failed
    ]
    heads = [concurrency, "beyond"]
    for model in rivals:
        heads += [model.label, "± 95 %"]
    heads += ["leave-one-out"] if found.left_out else []
    rows = []
    for place, each in enumerate(rivals[0].predictions) if rivals else []:
        row = [f"{each.n:g}", f"{significant(each.n / found.largest, 3)} ×"]
        for model in rivals:
            told = model.predictions[place]
            row += [significant(told.value), significant(told.half, 3)]
        if found.left_out:
            row.append(_interval(*found.left_out.range_at(place), 4))
        rows.append(tuple(row))
    note = "± is the interval of the curve, true to its model (delta method); leave-one-out is of USL"
    return Block("Predictions", tuple(heads), tuple(rows), (note,))


def _measured(found: Fit, concurrency: str) -> Block:
    """A line per N: the mean of its repeats, how many there are and how far they lie apart."""
    levels: dict[float, list[Point]] = {}
    for point in found.points:
        levels.setdefault(point.n, []).append(point)
    repeated = len(found.points) > len(levels)
    rows = []
    for n, points in levels.items():
        x = [point.x for point in points]
        mean, fitted = math.fsum(x) / len(x), points[0].predicted
        off = NOTHING if fitted is None else numbers.points(100 * (fitted / mean - 1))
        mark = "  stands out" if points[0].stands_out else ""
        spread = [str(len(x)), _interval(min(x), max(x), 4)] if repeated else []
        rows.append((f"{n:g}", significant(mean), *spread, significant(fitted), off + mark))
    heads = (concurrency, "measured", *(("repeats", "least, most") if repeated else ()), "USL", "USL, % off")
    return Block("Measured", heads, tuple(rows))


def _grown(told: Growth, concurrency: str) -> Block:
    rows = [
        (
            f"{n:g}",
            *(
                "n/a" if each.values[place] is None else significant(each.values[place], 3)
                for each in told.figures
            ),
        )
        for place, n in enumerate(told.n)
    ]
    heads = (concurrency, *(each.head for each in told.figures))
    meaning = "; ".join(f"{each.head}: {each.label}" for each in told.figures)
    absent = [f"{each.head} n/a: {each.reason}" for each in told.figures if each.reason]
    return Block("What the kernel saw", heads, tuple(rows), (*told.sentences, *absent, meaning))
