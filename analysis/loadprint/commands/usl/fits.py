"""The three fits of throughput by concurrency: USL, Amdahl's law (κ = 0) and saturation.

Each minimises the squared residuals of throughput, repeats as separate points, so that AICc may compare them.
With bounds a negative σ or κ is fixed at 0 and the other parameters are fitted again, with the same result
as a bounded search such as that of the R package usl (`nls(algorithm = "port")`, its default).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from loadprint.commands.usl import curves
from loadprint.commands.usl.curves import Floats
from loadprint.commands.usl.models import LABELS, Estimate, Model, model
from loadprint.commands.usl.solve import Solution, least_squares

NO_SOLUTION = "the search for its parameters did not converge"
INSEPARABLE = "these points do not separate its parameters"
FLAT = 20.0  # e^-20 is negligible
NEGLIGIBLE = 1e-9  # a share of the time at the largest N that no measurement shows
Free = tuple[bool, bool, bool]


def usl(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """λ, σ, κ by non-linear least squares on throughput, as the R package usl and usl4j fit them."""
    return _law("usl", n, x, (True, True, True), bounded=bounded)


def amdahl(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """λ and σ with κ = 0: Amdahl's law."""
    return _law("amdahl", n, x, (True, True, False), bounded=bounded)


def saturation(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """The curve that rises to a ceiling; it needs no bounds."""
    del bounded
    scales = [float(np.quantile(n, share)) for share in (0.25, 0.5, 0.9)]
    solution = least_squares(
        lambda p: curves.saturating(n, p) - x,
        lambda p: curves.saturating_gradient(n, p),
        [np.array([x.max(), scale]) for scale in scales],
    )
    if solution is None:
        return failed("saturating", NO_SOLUTION)
    ceiling, scale = solution.parameters
    if ceiling <= 0 or scale <= 0 or solution.inverse is None or scale > 100 * n.max():
        return failed("saturating", "these points show no ceiling")
    if scale < n.min() / FLAT:
        return failed("saturating", "every point is on the ceiling: no rise was measured")
    return model("saturating", Estimate(solution.parameters, solution.inverse, (True, True), 2), n, x)


def failed(key: str, reason: str) -> Model:
    """A fit without a result, with the reason."""
    return Model(key, LABELS[key], failed=reason)


FITTERS: dict[str, Callable[..., Model]] = {"usl": usl, "amdahl": amdahl, "saturating": saturation}


def _law(key: str, n: Floats, x: Floats, free: Free, *, bounded: bool) -> Model:
    best: tuple[Solution, Free] | None = None
    for subset in _subsets(free) if bounded else [free]:
        solution = _search(n, x, subset)
        if solution is None or (bounded and (solution.parameters[1:] < 0).any()):
            continue
        if best is None or solution.rss < best[0].rss:
            best = solution, subset
        if subset == free:  # the unbounded minimum is within the bounds
            break
    if best is None:
        return failed(key, NO_SOLUTION)
    solution, subset = best
    if solution.inverse is None:
        return failed(key, INSEPARABLE)
    fitted = model(key, Estimate(solution.parameters, solution.inverse, subset, sum(free)), n, x)
    at_bound = [wanted and not estimated for wanted, estimated in zip(free, subset, strict=True)]
    parameters = tuple(
        replace(each, at_bound=bound) for each, bound in zip(fitted.parameters, at_bound, strict=True)
    )
    return _without_pole(replace(fitted, parameters=parameters), n)


def _subsets(free: Free) -> Iterator[Free]:
    """The free parameters, then with σ, κ or both fixed at 0."""
    for sigma, kappa in product((True, False), repeat=2):
        if (sigma or free[1]) and (kappa or free[2]):
            yield free[0], free[1] and sigma, free[2] and kappa


def _search(n: Floats, x: Floats, free: Free) -> Solution | None:
    estimated = np.array(free)

    def whole(p: Floats) -> Floats:
        full = np.zeros(3)
        full[estimated] = p
        return full

    solution = least_squares(
        lambda p: curves.usl(n, whole(p)) - x,
        lambda p: curves.usl_gradient(n, whole(p))[:, estimated],
        [start[estimated] for start in _starts(n, x)],
    )
    if solution is None:
        return None
    full = whole(solution.parameters)
    full[1:][np.abs(full[1:]) * np.array([n.max(), n.max() ** 2]) < NEGLIGIBLE] = 0.0
    return Solution(full, solution.rss, solution.inverse)


def _starts(n: Floats, x: Floats) -> list[Floats]:
    """Starting points: the weighted linear solution of N/X = (1 + σ(N−1) + κN(N−1))/λ, then usl4j's."""
    weight = x**2 / n
    design = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    (first, second, third), *_ = np.linalg.lstsq(design * weight[:, None], n / x * weight, rcond=None)
    steepest = float((x / n).max())
    starts = [np.array([steepest, 0.1, 0.01]), np.array([steepest, 0.05, 1 / float(n.max()) ** 2])]
    if first > 0:
        starts.insert(0, np.array([1 / first, second / first, third / first]))
    return starts


def _without_pole(fitted: Model, n: Floats) -> Model:
    """Refuse a curve with a pole within the measured range."""
    rate, sigma, kappa = fitted.values
    between = np.linspace(n.min(), n.max(), 200)
    if rate <= 0 or (1 + sigma * (between - 1) + kappa * between * (between - 1) <= 0).any():
        return failed(fitted.key, "its curve has no finite throughput within the measured range")
    return fitted
