"""Least squares: non-linear by MINPACK with several starts, intervals from the covariance at the solution."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from loadprint.commands.usl.curves import Floats
from loadprint.statistics import student

LEVEL = 0.95
WORST_CONDITION = 1e8  # of the Jacobian with unit columns: beyond it the parameters are not separable

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Solution:
    """Parameters, the sum of squared residuals, and (JᵀJ)⁻¹ or None where it is singular."""

    parameters: Floats
    rss: float
    inverse: Floats | None


def least_squares(residuals: Function, jacobian: Function, starts: Iterable[Floats]) -> Solution | None:
    """Best of the solutions from several starts (Levenberg–Marquardt); None where none converged."""
    from scipy.optimize import least_squares as minimise  # noqa: PLC0415  half a second to import

    best: Solution | None = None
    with np.errstate(all="ignore"):  # a start may be at a pole of the curve
        for start in starts:
            try:
                solution = minimise(
                    residuals,
                    start,
                    jac=jacobian,
                    method="lm",
                    x_scale="jac",
                    ftol=1e-14,
                    xtol=1e-12,
                    gtol=1e-14,
                )
            except (ValueError, FloatingPointError, np.linalg.LinAlgError):
                continue  # residuals are not finite at this start
            rss = float(solution.fun @ solution.fun)
            if solution.status > 0 and np.isfinite(rss) and (best is None or rss < best.rss):
                best = Solution(np.asarray(solution.x, dtype=float), rss, inverse(jacobian(solution.x)))
    return best


def inverse(jacobian: Floats) -> Floats | None:
    """(JᵀJ)⁻¹, None where columns of J are not separable."""
    if not np.isfinite(jacobian).all():
        return None
    length = np.sqrt((jacobian**2).sum(axis=0))
    if not (length > 0).all():
        return None
    _, sizes, turned = np.linalg.svd(jacobian / length, full_matrices=False)
    if len(jacobian) < len(length) or sizes[0] > WORST_CONDITION * sizes[-1]:
        return None
    spread = turned.T / sizes
    return np.asarray((spread @ spread.T) / np.outer(length, length))


def t_quantile(freedom: int) -> float:
    """Half width of a 95 % interval in standard errors: Student's t, as R's confint for nls."""
    return student.t_quantile(0.5 + LEVEL / 2, freedom)
