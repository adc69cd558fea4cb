"""A fit as a plain value: parameters with intervals, goodness of fit, predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.commands.usl import curves, solve
from loadprint.commands.usl.curves import Floats

NAMES = ("lambda", "sigma", "kappa")
LABELS = {
    "usl": "USL",
    "amdahl": "Amdahl (κ = 0)",
    "saturating": "saturation",
}


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
        curve = curves.saturating if self.key == "saturating" else curves.usl
        return curve(np.asarray(n, dtype=float), self.values)

    def half_width(self, n: Sequence[float] | Floats) -> Floats | None:
        """Half of the 95 % interval of the curve at concurrencies (delta method); None without covariance."""
        if self.covariance is None or self.freedom < 1:
            return None
        gradient = curves.saturating_gradient if self.key == "saturating" else curves.usl_gradient
        slopes = gradient(np.asarray(n, dtype=float), self.values)
        variance = np.einsum("ij,jk,ik->i", slopes, np.array(self.covariance), slopes)
        return np.asarray(solve.t_quantile(self.freedom) * np.sqrt(np.maximum(0, variance)))

    def predict(self, n: Sequence[float]) -> tuple[Prediction, ...]:
        """Predictions with their intervals."""
        halves = self.half_width(n)
        return tuple(
            Prediction(float(at), float(value), None if halves is None else float(halves[place]))
            for place, (at, value) in enumerate(zip(n, self.at(n), strict=True))
        )


@dataclass(frozen=True)
class Estimate:
    """The solution of a fit: its parameters, and (JᵀJ)⁻¹ of the `estimated` ones.

    `counted`: how many parameters AICc counts, those at a bound among them.
    """

    parameters: Floats
    inverse: Floats
    estimated: tuple[bool, ...]
    counted: int


def model(key: str, estimate: Estimate, n: Floats, x: Floats) -> Model:
    """The fit of throughputs `x` at concurrencies `n` as a Model."""
    usl = key != "saturating"
    parameters = estimate.parameters
    curve = curves.usl if usl else curves.saturating
    rss = float(((x - curve(n, parameters)) ** 2).sum())
    estimated = np.array(estimate.estimated, dtype=bool)
    freedom = len(n) - int(estimated.sum())
    covariance = None
    if freedom > 0:
        covariance = np.zeros((len(estimated), len(estimated)))
        covariance[np.ix_(estimated, estimated)] = estimate.inverse * rss / freedom
    sigma, kappa = (float(parameters[1]), float(parameters[2])) if usl else (0.0, 0.0)
    peak = curves.peak(sigma, kappa) if usl else math.inf
    limit = float(parameters[0]) if not usl else float(parameters[0]) / sigma if sigma > 0 else math.inf
    return Model(
        key,
        LABELS[key],
        _parameters(NAMES if usl else ("a", "b"), parameters, covariance, estimated, freedom),
        None if covariance is None else tuple(tuple(map(float, row)) for row in covariance),
        freedom,
        rss,
        math.sqrt(rss / freedom) if freedom > 0 else None,
        _r2(x, rss),
        aicc(rss, len(n), estimate.counted),
        peak,
        float(curve(np.array([peak]), parameters)[0]) if math.isfinite(peak) else limit,
        limit,
    )


def _parameters(
    names: Sequence[str],
    values: Floats,
    covariance: Floats | None,
    estimated: NDArray[np.bool_],
    freedom: int,
) -> tuple[Parameter, ...]:
    out = []
    for place, (name, value) in enumerate(zip(names, map(float, values), strict=True)):
        if covariance is None or not estimated[place]:
            out.append(Parameter(name, value))
            continue
        error = math.sqrt(max(0.0, float(covariance[place, place])))
        half = solve.t_quantile(freedom) * error
        out.append(Parameter(name, value, error, value - half, value + half))
    return tuple(out)


def _r2(x: Floats, rss: float) -> float | None:
    spread = float(((x - x.mean()) ** 2).sum())
    return 1 - rss / spread if spread > 0 else None


def aicc(rss: float, points: int, parameters: int) -> float | None:
    """Akaike's criterion for small samples (Hurvich & Tsai 1989); the error variance counts as a parameter.

    None with too few points for the number of parameters, or where the fit is exact.
    """
    counted = parameters + 1
    if points - counted - 1 <= 0 or rss <= 0:
        return None
    return (
        points * math.log(rss / points) + 2 * counted + 2 * counted * (counted + 1) / (points - counted - 1)
    )
