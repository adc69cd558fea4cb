"""The curves that are fitted to throughput by concurrency, and their non-linear least squares.

USL: X(N) = λN / (1 + σ(N−1) + κN(N−1)) (Gunther, Guerrilla Capacity Planning, 2007; the R package usl calls
the three gamma, alpha, beta). Saturation: X(N) = a (1 − exp(−N/b)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Parameters = Sequence[float] | Floats
Free = tuple[bool, ...]
WORST_CONDITION = 1e8  # of the Jacobian with unit columns: beyond it the parameters are not separable
NEGLIGIBLE = 1e-9  # a share of the time at the largest N that no measurement shows
FLAT = 20.0  # e^-20 is negligible


def usl(n: Floats, p: Parameters) -> Floats:
    """Throughput at concurrencies `n` for p = (λ, σ, κ)."""
    return np.asarray(p[0] * n / _below(n, p))


def usl_gradient(n: Floats, p: Parameters) -> Floats:
    """Derivatives of `usl` by λ, σ and κ, shape (len(n), 3)."""
    below = _below(n, p)
    by_below = -p[0] * n / below**2
    return np.stack([n / below, by_below * (n - 1), by_below * n * (n - 1)], axis=1)


def _below(n: Floats, p: Parameters) -> Floats:
    return np.asarray(1 + p[1] * (n - 1) + p[2] * n * (n - 1))


def saturating(n: Floats, p: Parameters) -> Floats:
    """Throughput at concurrencies `n` for p = (a, b)."""
    return np.asarray(p[0] * -np.expm1(-n / p[1]))


def saturating_gradient(n: Floats, p: Parameters) -> Floats:
    """Derivatives of `saturating` by a and b, shape (len(n), 2)."""
    left = np.exp(-n / p[1])
    return np.stack([1 - left, -p[0] * left * n / p[1] ** 2], axis=1)


def peak(sigma: float, kappa: float) -> float:
    """Concurrency of the largest throughput: infinite without κ, 1 where it declines from N = 1 on."""
    if sigma >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - sigma) / kappa)) if kappa > 0 else math.inf


def knee(sigma: float, kappa: float) -> float:
    """Concurrency at which the curve has left its straight line: 1/σ, where λN meets λ/σ, or an earlier peak.

    The R package usl calls 1/σ optimal.scalability. Only points beyond it separate σ from κ.
    """
    return min(1 / sigma if sigma > 0 else math.inf, peak(sigma, kappa))


def _starts_of_usl(n: Floats, x: Floats) -> list[Floats]:
    """The weighted linear solution of N/X = (1 + σ(N−1) + κN(N−1))/λ, then usl4j's starts."""
    weight = x**2 / n
    design = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    (first, second, third), *_ = np.linalg.lstsq(design * weight[:, None], n / x * weight, rcond=None)
    steepest = float((x / n).max())
    starts = [np.array([steepest, 0.1, 0.01]), np.array([steepest, 0.05, 1 / float(n.max()) ** 2])]
    return [np.array([1 / first, second / first, third / first]), *starts] if first > 0 else starts


def _starts_of_saturation(n: Floats, x: Floats) -> list[Floats]:
    return [np.array([x.max(), scale]) for scale in np.quantile(n, (0.25, 0.5, 0.9))]


@dataclass(frozen=True)
class UslCurve:
    """A curve with its gradient. `free` are the estimated parameters, and with bounds the fewer ones to try.

    A parameter that is not free is 0. A negative σ or κ is fixed at 0 and the others are fitted again, with
    the same result as a bounded search such as that of the R package usl (`nls(algorithm = "port")`).
    """

    label: str
    names: tuple[str, ...]
    free: tuple[Free, ...]
    value: Callable[[Floats, Parameters], Floats] = usl
    gradient: Callable[[Floats, Parameters], Floats] = usl_gradient
    starts: Callable[[Floats, Floats], list[Floats]] = _starts_of_usl


LAW = ("lambda", "sigma", "kappa")
FREE = ((True, True, True), (True, True, False), (True, False, True), (True, False, False))
CURVES = {
    "usl": UslCurve("USL", LAW, FREE),
    "amdahl": UslCurve("Amdahl (κ = 0)", LAW, FREE[1::2]),
    "saturating": UslCurve(
        "saturation", ("a", "b"), ((True, True),), saturating, saturating_gradient, _starts_of_saturation
    ),
}


@dataclass(frozen=True)
class Solution:
    """Parameters, the sum of squared residuals, and (JᵀJ)⁻¹ of the `free` ones, NaN where it is singular."""

    parameters: Floats
    rss: float
    inverse: Floats
    free: Free


def solve(key: str, n: Floats, x: Floats, *, bounded: bool) -> Solution | str:
    """Least squares on throughput, repeats as separate points; or the reason why there is no solution."""
    curve = CURVES[key]
    bounded = bounded and len(curve.free) > 1
    best: Solution | None = None
    for free in curve.free if bounded else curve.free[:1]:
        solution = _search(curve, n, x, free)
        if solution is None or (bounded and (solution.parameters[1:] < 0).any()):
            continue
        if best is None or solution.rss < best.rss:
            best = solution
        if free == curve.free[0]:  # the unbounded minimum is within the bounds
            break
    if best is None:
        return "the search for its parameters did not converge"
    return (_odd_saturation if key == "saturating" else _odd_usl)(best, n) or best


def _odd_usl(solution: Solution, n: Floats) -> str:
    if np.isnan(solution.inverse).any():
        return "these points do not separate its parameters"
    between = np.linspace(n.min(), n.max(), 200)
    if solution.parameters[0] <= 0 or (_below(between, solution.parameters) <= 0).any():
        return "its curve has no finite throughput within the measured range"
    return ""


def _odd_saturation(solution: Solution, n: Floats) -> str:
    ceiling, scale = solution.parameters
    if ceiling <= 0 or scale <= 0 or np.isnan(solution.inverse).any() or scale > 100 * n.max():
        return "these points show no ceiling"
    return "every point is on the ceiling: no rise was measured" if scale < n.min() / FLAT else ""


def _search(curve: UslCurve, n: Floats, x: Floats, free: Free) -> Solution | None:
    """Best of the solutions from several starts (Levenberg–Marquardt); None where none converged."""
    from scipy.optimize import least_squares  # noqa: PLC0415  half a second to import

    estimated = np.array(free)

    def whole(p: Floats) -> Floats:
        full = np.zeros(len(free))
        full[estimated] = p
        return full

    def residuals(p: Floats) -> Floats:
        return curve.value(n, whole(p)) - x

    def jacobian(p: Floats) -> Floats:
        return curve.gradient(n, whole(p))[:, estimated]

    best = None
    with np.errstate(all="ignore"):  # a start may be at a pole of the curve
        for start in curve.starts(n, x):
            try:
                fitted = least_squares(
                    residuals,
                    start[estimated],
                    jac=jacobian,
                    method="lm",
                    x_scale="jac",
                    ftol=1e-14,
                    xtol=1e-12,
                    gtol=1e-14,
                )
            except ValueError:
                continue  # residuals are not finite at this start
            if fitted.status > 0 and np.isfinite(fitted.cost) and (best is None or fitted.cost < best.cost):
                best = fitted
        if best is None:
            return None
        full = whole(best.x)
        full[1:][np.abs(full[1:]) * n.max() ** np.arange(1, len(full)) < NEGLIGIBLE] = 0.0
        return Solution(full, 2 * float(best.cost), _inverse(jacobian(best.x)), free)


def _inverse(jacobian: Floats) -> Floats:
    """(JᵀJ)⁻¹, NaN where columns of J are not separable."""
    length = np.sqrt((jacobian**2).sum(axis=0))
    none = np.full((len(length), len(length)), np.nan)
    if not np.isfinite(jacobian).all() or not (length > 0).all() or len(jacobian) < len(length):
        return none
    _, sizes, turned = np.linalg.svd(jacobian / length, full_matrices=False)
    if sizes[0] > WORST_CONDITION * sizes[-1]:
        return none
    spread = turned.T / sizes
    return np.asarray((spread @ spread.T) / np.outer(length, length))
