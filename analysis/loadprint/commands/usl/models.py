"""The fits of one column side by side: parameters with intervals, how well they fit, what they predict."""

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
    "usl_x1": "USL, λ = X(1)",
    "linear": "USL, linear regression",
    "log": "USL, log residuals",
    "amdahl": "Amdahl (κ = 0)",
    "saturating": "saturation",
}
RIVALS = ("usl", "amdahl", "saturating")  # fitted by one criterion, so that AICc may choose


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
    """Throughput at a concurrency, in the data's unit; `half` is that of its 95 % interval (delta method)."""

    n: float
    value: float
    half: float | None = None


@dataclass(frozen=True)
class Model:
    """One fit. Where it `failed` there is nothing but the reason.

    `covariance` is that of `parameters` in their order, zero for what was not estimated. `aicc` and `rse` are
    over throughput residuals whatever was minimised; `r2` of `linear` is that of its own regression.
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
        """The estimates alone."""
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
class Found:
    """What a fit found: its parameters, (JᵀJ)⁻¹ of the estimated ones, and the variance that scales it.

    `counted`: how many parameters came from the data, estimated or taken.
    """

    parameters: Floats
    inverse: Floats | None
    variance: float
    estimated: tuple[bool, ...]
    counted: int


def model(key: str, found: Found, n: Floats, x: Floats) -> Model:
    """Lay out a fit of throughputs `x` at concurrencies `n`."""
    usl = key != "saturating"
    parameters = found.parameters
    curve = curves.usl if usl else curves.saturating
    rss = float(((x - curve(n, parameters)) ** 2).sum())
    chosen = np.array(found.estimated, dtype=bool)
    freedom = len(n) - int(chosen.sum())
    full = None
    if found.inverse is not None and freedom > 0:
        full = np.zeros((len(chosen), len(chosen)))
        full[np.ix_(chosen, chosen)] = found.inverse * found.variance
    sigma, kappa = (float(parameters[1]), float(parameters[2])) if usl else (0.0, 0.0)
    peak = curves.peak(sigma, kappa) if usl else math.inf
    limit = float(parameters[0]) if not usl else float(parameters[0]) / sigma if sigma > 0 else math.inf
    return Model(
        key,
        LABELS[key],
        _parameters(NAMES if usl else ("a", "b"), parameters, full, chosen, freedom),
        None if full is None else tuple(tuple(map(float, row)) for row in full),
        freedom,
        rss,
        math.sqrt(rss / freedom) if freedom > 0 else None,
        _r2(x, rss),
        aicc(rss, len(n), found.counted),
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
    """Akaike's criterion for small samples (Hurvich & Tsai 1989), normal errors: their variance counts too.

    None with too few points for so many parameters, or where the fit is exact.
    """
    counted = parameters + 1
    if points - counted - 1 <= 0 or rss <= 0:
        return None
    return (
        points * math.log(rss / points) + 2 * counted + 2 * counted * (counted + 1) / (points - counted - 1)
    )
