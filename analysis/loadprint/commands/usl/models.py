"""The fit of one curve: parameters with intervals, goodness of fit, predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.commands.usl import curves
from loadprint.commands.usl.curves import CURVES, Floats
from loadprint.statistics.stats import LEVEL, t_quantile


@dataclass(frozen=True)
class Parameter:
    """An estimate with standard error and 95 % interval; None where it is fixed or at its bound 0."""

    name: str
    value: float
    error: float | None = None
    low: float | None = None
    high: float | None = None
    at_bound: bool = False


@dataclass(frozen=True)
class Prediction:
    """Throughput at a concurrency, in the data's unit; `half`: half of its 95 % interval (delta method)."""

    n: float
    value: float
    half: float | None = None


@dataclass(frozen=True)
class Model:
    """One fit. A fit that `failed` has a reason and nothing else.

    `covariance` is that of `parameters` in their order, zero where a parameter was not estimated.
    `peak` (N_max) may be infinite; `limit` is λ/σ or a.
    """

    key: str
    label: str
    parameters: tuple[Parameter, ...] = ()
    covariance: tuple[tuple[float, ...], ...] | None = None
    freedom: int = 0
    rss: float = math.nan
    rse: float | None = None
    r2: float | None = None
    aicc: float | None = None
    peak: float | None = None
    x_peak: float | None = None
    limit: float | None = None
    predictions: tuple[Prediction, ...] = ()
    failed: str = ""

    @property
    def values(self) -> tuple[float, ...]:
        """The estimates."""
        return tuple(parameter.value for parameter in self.parameters)

    def parameter(self, name: str) -> Parameter:
        """One parameter by name. Raises KeyError."""
        return {parameter.name: parameter for parameter in self.parameters}[name]

    def at(self, n: Sequence[float] | Floats) -> Floats:
        """Fitted throughput at concurrencies."""
        return CURVES[self.key].value(np.asarray(n, dtype=float), self.values)

    def half_width(self, n: Sequence[float] | Floats) -> Floats | None:
        """Half of the 95 % interval of the curve at concurrencies (delta method); None without covariance."""
        if self.covariance is None:
            return None
        slopes = CURVES[self.key].gradient(np.asarray(n, dtype=float), self.values)
        variance = np.einsum("ij,jk,ik->i", slopes, np.array(self.covariance), slopes)
        return np.asarray(half_interval(self.freedom) * np.sqrt(np.maximum(0, variance)))

    def predict(self, n: Sequence[float]) -> tuple[Prediction, ...]:
        """Predictions with their intervals."""
        widths = self.half_width(n)
        halves = [None] * len(n) if widths is None else widths.tolist()
        return tuple(
            Prediction(float(at), *interval)
            for at, *interval in zip(n, self.at(n).tolist(), halves, strict=True)
        )


def half_interval(freedom: int) -> float:
    """Half width of a 95 % interval in standard errors: Student's t, as R's confint for nls."""
    return t_quantile(0.5 + LEVEL / 2, freedom)


def failed(key: str, reason: str) -> Model:
    """A fit without a result, with the reason."""
    return Model(key, CURVES[key].label, failed=reason)


def fit_curve(key: str, n: Floats, x: Floats, *, bounded: bool) -> Model:
    """Fit throughputs `x` at concurrencies `n` with a curve of CURVES, without predictions."""
    solution, curve = curves.solve(key, n, x, bounded=bounded), CURVES[key]
    if isinstance(solution, str):
        return failed(key, solution)
    p, free = solution.parameters, np.array(solution.free)
    rss = float(((x - curve.value(n, p)) ** 2).sum())
    spread = float(((x - x.mean()) ** 2).sum())
    freedom = len(n) - int(free.sum())
    covariance = np.zeros((len(p), len(p)))
    if freedom > 0:
        covariance[np.ix_(free, free)] = solution.inverse * rss / freedom
    parameters = []
    for place, (name, value) in enumerate(zip(curve.names, p.tolist(), strict=True)):
        at_bound = curve.free[0][place] and not free[place]
        parameter = Parameter(name, value, at_bound=bool(at_bound))
        if freedom > 0 and free[place]:
            error = math.sqrt(max(0.0, float(covariance[place, place])))
            half = half_interval(freedom) * error
            parameter = Parameter(name, value, error, value - half, value + half)
        parameters.append(parameter)
    if key == "saturating":
        peak, limit = math.inf, float(p[0])
    else:
        peak, limit = curves.peak(float(p[1]), float(p[2])), float(p[0] / p[1]) if p[1] > 0 else math.inf
    return Model(
        key,
        curve.label,
        tuple(parameters),
        tuple(tuple(row) for row in covariance.tolist()) if freedom > 0 else None,
        freedom,
        rss,
        math.sqrt(rss / freedom) if freedom > 0 else None,
        1 - rss / spread if spread > 0 else None,
        _aicc(rss, len(n), sum(curve.free[0])),
        peak,
        float(curve.value(np.array([peak]), p)[0]) if math.isfinite(peak) else limit,
        limit,
    )


def _aicc(rss: float, points: int, parameters: int) -> float | None:
    """Akaike's criterion for small samples (Hurvich & Tsai 1989); the error variance counts as a parameter.

    Parameters at a bound count too. None with too few points for their number, or where the fit is exact.
    """
    counted = parameters + 1
    left = points - counted - 1
    if left <= 0 or rss <= 0:
        return None
    return points * math.log(rss / points) + 2 * counted + 2 * counted * (counted + 1) / left
