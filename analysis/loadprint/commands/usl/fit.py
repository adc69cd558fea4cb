"""Fits one column of throughputs by concurrency with every curve, and how far the fits can be believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from loadprint.commands.usl.curves import CURVES, Floats
from loadprint.commands.usl.models import Model, failed, fit_curve, half_interval
from loadprint.errors import InputError

LEAST_LEVELS = 3  # two parameters and one degree of freedom
LEAST_FOR_THREE = 5
LEAST_FREEDOM = 3  # of the fit that an N is compared with
OUTLIER = 2.0  # standard errors between one N and the fit of the others
OFF = 0.10
LARGEST = 1e100  # squares of it are finite
FAR = 1000.0  # the concurrency that publications extrapolate to
TOO_FEW = (
    "refused: {} different N are too few for three parameters; measure at two or more further N, "
    "preferably beyond the largest"
)


@dataclass(frozen=True)
class FitVerdict:
    """One sentence. `key` is its subject; a `warning` is printed first."""

    key: str
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Point:
    """A measured point and the headline fit.

    `residual` is predicted / measured − 1. `deleted_t` is the deviation of the point's N from the fit of the
    others, in standard errors; `reached_at` is the N at which that fit has this throughput.
    """

    n: float
    x: float
    predicted: float | None = None
    residual: float | None = None
    deleted_t: float | None = None
    reached_at: float | None = None
    outlier: bool = False


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out: peaks and predictions of the headline fit without each N in turn."""

    n: tuple[float, ...]
    peaks: tuple[float, ...]
    predictions: tuple[tuple[float, ...], ...]  # per left-out N, in the order of the model's predictions

    def peak_range(self) -> tuple[float, float]:
        """Least and largest N_max; may be infinite."""
        return min(self.peaks), max(self.peaks)

    def range_at(self, place: int) -> tuple[float, float]:
        """Least and largest prediction at one N."""
        values = [prediction[place] for prediction in self.predictions]
        return min(values), max(values)


@dataclass(frozen=True)
class LackOfFit:
    """F test of the residuals against the spread of repeats (Draper & Smith, chapter 2)."""

    f: float
    p: float
    spread: float  # standard deviation of repeats at one N, in the data's unit


@dataclass(frozen=True)
class Hindcast:
    """Prediction of the largest N by the fit of the N up to half of it: predicted / measured − 1."""

    up_to: float
    at: float
    error: float


@dataclass(frozen=True)
class Fit:
    """One column: its points, every fit, and the conclusions.

    `preferred` is the key of the model with the least AICc, None where fewer than two have one. `optimum` is
    N_max where the data support it. `terms` are the supported terms: contention (σ), coherency (κ).
    """

    points: tuple[Point, ...]
    models: tuple[Model, ...]
    left_out: LeftOut | None
    lack_of_fit: LackOfFit | None
    hindcast: Hindcast | None
    preferred: str | None
    optimum: float | None = None
    terms: tuple[str, ...] = ()
    verdicts: tuple[FitVerdict, ...] = ()

    @cached_property
    def levels(self) -> dict[float, list[Point]]:
        """The points of each N, in rising order of N."""
        levels: dict[float, list[Point]] = {}
        for point in self.points:
            levels.setdefault(point.n, []).append(point)
        return levels

    @property
    def largest(self) -> float:
        """The largest N measured."""
        return max(self.levels)

    @property
    def headline(self) -> Model:
        """USL; it may have `failed`."""
        return self.models[0]

    def model(self, key: str) -> Model:
        """A fit by key. Raises StopIteration where there is no such fit."""
        return next(model for model in self.models if model.key == key)


def fit(
    n: Sequence[float], x: Sequence[float], *, bounded: bool = True, predict: Sequence[float] = ()
) -> Fit:
    """Fit throughputs `x` (any unit, > 0) at concurrencies `n` (> 0); repeats are points with equal n.

    `bounded` keeps σ and κ at or above 0. `predict`: the concurrencies of the predictions, by default 2, 4
    and 8 times the largest, and 1000. The result has no conclusions. Raises InputError where no model can be
    fitted to the points.
    """
    _require(n, x)
    order = np.argsort(n, kind="stable")
    at, value = np.asarray(n, dtype=float)[order], np.asarray(x, dtype=float)[order]
    levels, predicted_at = len(np.unique(at)), tuple(predict) or _default_predictions(float(at[-1]))
    models = []
    for key in CURVES:
        if key == "usl" and levels < LEAST_FOR_THREE:
            models.append(failed(key, TOO_FEW.format(levels)))
            continue
        model = fit_curve(key, at, value, bounded=bounded)
        models.append(model if model.failed else replace(model, predictions=model.predict(predicted_at)))
    scored = [(model.aicc, model.key) for model in models if model.aicc is not None]
    left_out, points = _leave_one_out(at, value, models[0], predicted_at, bounded=bounded)
    return Fit(
        points,
        tuple(models),
        left_out,
        _lack_of_fit(at, value, models[0]),
        _hindcast(at, value, bounded=bounded),
        min(scored)[1] if len(scored) > 1 else None,
    )


def _default_predictions(largest: float) -> tuple[float, ...]:
    multiples = [factor * largest for factor in (2, 4, 8)]
    return (*(n for n in multiples if n < FAR), FAR) if largest < FAR else tuple(multiples[:2])


def _require(n: Sequence[float], x: Sequence[float]) -> None:
    fix = "leave the point out, or measure it again"
    for at, value in zip(n, x, strict=True):
        if not 0 < at < LARGEST:
            raise InputError(f"N = {at:g}", "is not a concurrency", fix)
        if not 1 / LARGEST < value < LARGEST:
            what = "is not above 0" if value <= 0 else "is out of range"
            raise InputError(f"N = {at:g}", f"throughput {value:g} {what}", fix)
    levels = len(set(n))
    if levels < LEAST_LEVELS:
        raise InputError(
            "throughput by concurrency",
            f"{levels} different N {'is' if levels == 1 else 'are'} not a curve",
            "measure at six or more, the largest well beyond the number of CPUs",
        )


def _leave_one_out(
    n: Floats, x: Floats, headline: Model, predicted_at: Sequence[float], *, bounded: bool
) -> tuple[LeftOut | None, tuple[Point, ...]]:
    """Fit without each N in turn: the ranges, and each point compared with the fit of the others."""
    if headline.failed:
        return None, tuple(map(Point, n.tolist(), x.tolist()))
    measured = {level: x[n == level] for level in np.unique(n).tolist()}
    fits = {level: fit_curve("usl", n[n != level], x[n != level], bounded=bounded) for level in measured}
    models = {level: model for level, model in fits.items() if not model.failed}
    deviations = {level: _deviation(model, level, measured[level]) for level, model in models.items()}
    reached = {level: _reached(model, float(measured[level].mean())) for level, model in models.items()}
    worst = max(deviations, key=lambda level: abs(deviations[level]), default=None)
    if worst is not None:
        others = models[worst]
        share = abs(float(measured[worst].mean()) / float(others.at([worst])[0]) - 1)
        if abs(deviations[worst]) <= OUTLIER or share <= OFF or others.freedom < LEAST_FREEDOM:
            worst = None
    points = tuple(
        Point(at, value, fitted, fitted / value - 1, deviations.get(at), reached.get(at), at == worst)
        for at, value, fitted in zip(n.tolist(), x.tolist(), headline.at(n).tolist(), strict=True)
    )
    if not models:
        return None, points
    peaks = tuple(float(model.peak or math.nan) for model in models.values())
    predictions = tuple(tuple(model.at(predicted_at).tolist()) for model in models.values())
    return LeftOut(tuple(models), peaks, predictions), points


def _deviation(without: Model, level: float, measured: Floats) -> float:
    """Deviation of an N from the fit of the others, in standard errors."""
    mean = float(measured.mean())
    half = without.half_width([level])
    if half is None or without.rse is None:
        return 0.0
    of_curve = float(half[0]) / half_interval(without.freedom)
    error = math.hypot(of_curve, without.rse / math.sqrt(len(measured)))
    rounding = 1e-9 * mean  # all that an exact fit differs by
    return (mean - float(without.at([level])[0])) / error if error > rounding else 0.0


def _reached(model: Model, x: float) -> float | None:
    """Smallest N at which a curve has throughput x, from λN = x (1 + σ(N−1) + κN(N−1)); None without one."""
    rate, sigma, kappa = model.values
    a, b, c = kappa * x, (sigma - kappa) * x - rate, (1 - sigma) * x
    under = b * b - 4 * a * c
    return 2 * c / (-b + math.sqrt(under)) if under >= 0 and b < 0 < c else None


def _hindcast(n: Floats, x: Floats, *, bounded: bool) -> Hindcast | None:
    """None where too few N are below half of the largest."""
    near, last = n <= n.max() / 2, n == n.max()
    if len(np.unique(n[near])) < LEAST_FOR_THREE:
        return None
    early = fit_curve("usl", n[near], x[near], bounded=bounded)
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
