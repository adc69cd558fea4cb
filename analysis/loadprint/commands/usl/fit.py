"""Fits one column of throughputs by concurrency with every model and draws the conclusions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadprint.commands.usl import conclusions, fits, solve
from loadprint.commands.usl.curves import Floats
from loadprint.commands.usl.fitted import Fit, Hindcast, LackOfFit, LeftOut, Point
from loadprint.commands.usl.models import Model
from loadprint.errors import InputError

LEAST_LEVELS = 3  # two parameters and one degree of freedom
LEAST_FOR_THREE = 5
LEAST_FREEDOM = 3  # of the fit that an N is compared with
LARGEST = 1e100  # squares of it are finite
FAR = 1000.0  # the concurrency that publications extrapolate to
TOO_FEW = (
    "refused: {} different N are too few for three parameters; measure at two or more further N, "
    "preferably beyond the largest"
)


def fit(
    n: Sequence[float], x: Sequence[float], *, bounded: bool = True, predict: Sequence[float] = ()
) -> Fit:
    """Fit throughputs `x` (any unit, > 0) at concurrencies `n` (> 0); repeats are points with equal n.

    `bounded` keeps σ and κ at or above 0. `predict`: the concurrencies of the predictions, else those of
    `default_predictions`. Raises InputError where no model can be fitted to the points.
    """
    at, value = np.asarray(n, dtype=float), np.asarray(x, dtype=float)
    _require(at, value)
    order = np.lexsort((np.arange(len(at)), at))
    at, value = at[order], value[order]
    levels = np.unique(at)
    predicted_at = tuple(predict) or default_predictions(float(levels[-1]))
    models = []
    for key, fitter in fits.FITTERS.items():
        if len(levels) < LEAST_FOR_THREE and key == "usl":
            models.append(fits.failed(key, TOO_FEW.format(len(levels))))
            continue
        model = fitter(at, value, bounded=bounded)
        models.append(model if model.failed else replace(model, predictions=model.predict(predicted_at)))
    headline = models[0]
    left_out, points = _leave_one_out(at, value, headline, predicted_at, bounded=bounded)
    unjudged = Fit(
        points,
        tuple(models),
        left_out,
        _lack_of_fit(at, value, headline),
        _hindcast(at, value, bounded=bounded),
        _preferred(models),
        None,
        (),
        (),
    )
    return conclusions.judged(unjudged)


def default_predictions(largest: float) -> tuple[float, ...]:
    """Concurrencies of the predictions: 2, 4 and 8 times the largest measured, and 1000."""
    multiples = [factor * largest for factor in (2, 4, 8)]
    return (*(each for each in multiples if each < FAR), FAR) if largest < FAR else tuple(multiples[:2])


def _require(n: Floats, x: Floats) -> None:
    fix = "leave the point out, or measure it again"
    for at, value in zip(n.tolist(), x.tolist(), strict=True):
        if not 0 < at < LARGEST:
            raise InputError(f"N = {at:g}", "is not a concurrency", fix)
        if not 1 / LARGEST < value < LARGEST:
            what = "is not above 0" if value <= 0 else "is out of range"
            raise InputError(f"N = {at:g}", f"throughput {value:g} {what}", fix)
    levels = len(np.unique(n))
    if levels < LEAST_LEVELS:
        raise InputError(
            "throughput by concurrency",
            f"{levels} different N {'is' if levels == 1 else 'are'} not a curve",
            "measure at six or more, the largest well beyond the number of CPUs",
        )


def _preferred(models: Sequence[Model]) -> str | None:
    scored = [(model.aicc, model.key) for model in models if model.aicc is not None]
    return min(scored)[1] if len(scored) > 1 else None


def _leave_one_out(
    n: Floats, x: Floats, headline: Model, predicted_at: Sequence[float], *, bounded: bool
) -> tuple[LeftOut | None, tuple[Point, ...]]:
    """Fit without each N in turn: the ranges, and each point compared with the fit of the others."""
    if headline.failed:
        return None, tuple(Point(float(at), float(value), None, None) for at, value in zip(n, x, strict=True))
    predicted = headline.at(n)
    without_level: dict[float, Model] = {}
    deviations: dict[float, tuple[float, float | None]] = {}
    for level in np.unique(n).tolist():
        others = n != level
        without = fits.usl(n[others], x[others], bounded=bounded)
        if not without.failed:
            without_level[level] = without
            deviations[level] = _deviation(without, level, x[~others])
    worst = max(deviations, key=lambda level: abs(deviations[level][0]), default=None)
    if worst is not None and not _is_outlier(
        without_level[worst], worst, x[n == worst], deviations[worst][0]
    ):
        worst = None
    points = []
    for at, value, fitted in zip(n.tolist(), x.tolist(), predicted.tolist(), strict=True):
        deleted, reached = deviations.get(at, (None, None))
        points.append(Point(at, value, fitted, fitted / value - 1, deleted, reached, at == worst))
    if not without_level:
        return None, tuple(points)
    models = without_level.values()
    ranges = LeftOut(
        tuple(without_level),
        tuple(float(model.peak or math.nan) for model in models),
        tuple(tuple(model.at(predicted_at).tolist()) for model in models),
    )
    return ranges, tuple(points)


def _deviation(without: Model, level: float, measured: Floats) -> tuple[float, float | None]:
    """Deviation of an N from the fit of the others in standard errors, and where that fit reaches it."""
    mean = float(measured.mean())
    difference = mean - float(without.at([level])[0])
    half = without.half_width([level])
    error = 0.0
    if half is not None and without.rse is not None:
        of_curve = float(half[0]) / solve.t_quantile(without.freedom)
        error = math.hypot(of_curve, without.rse / math.sqrt(len(measured)))
    rounding = 1e-9 * mean  # all that an exact fit differs by
    return (difference / error if error > rounding else 0.0), _reached(without, mean)


def _is_outlier(without: Model, level: float, measured: Floats, deleted_t: float) -> bool:
    """Whether an N deviates from the fit of the others significantly, and by a tenth."""
    deviation = abs(float(measured.mean()) / float(without.at([level])[0]) - 1)
    return (
        abs(deleted_t) > conclusions.OUTLIER
        and deviation > conclusions.OFF
        and without.freedom >= LEAST_FREEDOM
    )


def _reached(model: Model, x: float) -> float | None:
    """Smallest N at which a curve has throughput x, from λN = x (1 + σ(N−1) + κN(N−1)); None without one."""
    rate, sigma, kappa = model.values
    a, b, c = kappa * x, (sigma - kappa) * x - rate, (1 - sigma) * x
    if a == 0:
        return -c / b if b < 0 and c > 0 else None
    under = b * b - 4 * a * c
    if under < 0 or b >= 0 or c <= 0:
        return None
    return 2 * c / (-b + math.sqrt(under))


def _hindcast(n: Floats, x: Floats, *, bounded: bool) -> Hindcast | None:
    """None where too few N are below half of the largest."""
    near, last = n <= n.max() / 2, n == n.max()
    if len(np.unique(n[near])) < LEAST_FOR_THREE:
        return None
    early = fits.usl(n[near], x[near], bounded=bounded)
    if early.failed:
        return None
    error = float(early.at(n[last])[0] / x[last].mean()) - 1
    return Hindcast(float(n[near].max()), float(n.max()), error)


def _lack_of_fit(n: Floats, x: Floats, headline: Model) -> LackOfFit | None:
    """None without repeats, or where the fit has as many parameters as there are N."""
    levels, place = np.unique(n, return_inverse=True)
    means = np.bincount(place, weights=x) / np.bincount(place)
    pure = float(((x - means[place]) ** 2).sum())
    freedom, lack_freedom = len(x) - len(levels), len(levels) - (len(n) - headline.freedom)
    if headline.failed or freedom < 1 or lack_freedom < 1 or pure <= 0:
        return None
    from scipy.special import fdtrc  # noqa: PLC0415  slow to import

    f = max(0.0, headline.rss - pure) / lack_freedom / (pure / freedom)
    return LackOfFit(f, float(fdtrc(lack_freedom, freedom, f)), math.sqrt(pure / freedom))
