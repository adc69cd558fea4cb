"""The six fits. Each takes concurrencies and throughputs, repeats as points of their own, and gives a Model.

With bounds a negative σ or κ is fixed at 0 and the rest fitted again, which is where a bounded search as that
of the R package usl (`nls(algorithm = "port")`, its default) ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from loadprint.commands.usl import curves
from loadprint.commands.usl.curves import Floats
from loadprint.commands.usl.models import LABELS, Found, Model, model
from loadprint.commands.usl.solve import Solution, inverse, least_squares

NO_ONE = "no point at N = 1, of which it takes λ"
NO_SOLUTION = "the search for its parameters did not converge"
UNTOLD = "its parameters cannot be told apart in these points"
FLAT = 20.0  # e^-20 is nothing
NOTHING = 1e-9  # a share of the time at the largest N that no measurement shows
Free = tuple[bool, ...]


@dataclass(frozen=True)
class Task:
    """Which of λ, σ, κ are sought, what the others are, how many of them the data gave, and of what scale."""

    free: Free = (True, True, True)
    fixed: tuple[float, float, float] = (0.0, 0.0, 0.0)
    counted: int = 3
    logarithmic: bool = False


def three_parameters(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """λ, σ, κ by non-linear least squares on throughput, as the R package usl and usl4j fit them."""
    return _usl("usl", n, x, Task(), bounded=bounded)


def first_point(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """σ and κ alone, λ the mean throughput measured at N = 1."""
    if not (n == 1).any():
        return failed("usl_x1", NO_ONE)
    start = (float(x[n == 1].mean()), 0.0, 0.0)
    return _usl("usl_x1", n, x, Task((False, True, True), start), bounded=bounded)


def amdahl(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """λ and σ with κ = 0: Amdahl's law."""
    return _usl("amdahl", n, x, Task((True, True, False), counted=2), bounded=bounded)


def linear(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """Gunther's regression of N/C−1 on a(N−1)² + b(N−1), C = X/X(1): κ = a, σ = b − a. It has no bounds."""
    del bounded
    if not (n == 1).any():
        return failed("linear", NO_ONE)
    one = float(x[n == 1].mean())
    beyond = n > 1
    less, deviation = n[beyond] - 1, n[beyond] * one / x[beyond] - 1
    design = np.stack([less**2, less], axis=1)
    if len(np.unique(less)) < 2 or inverse(design) is None:
        return failed("linear", UNTOLD)
    (a, b), *_ = np.linalg.lstsq(design, deviation, rcond=None)
    left = deviation - design @ np.array([a, b])
    spread = float(((deviation - deviation.mean()) ** 2).sum())
    r2 = 1 - float(left @ left) / spread if spread > 0 else None
    estimates = np.array([one, b - a, a])
    out = model("linear", Found(estimates, None, 0.0, (False, True, True), 3), n, x)
    return _sound(replace(out, r2=r2), n)


def log_residuals(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """λ, σ, κ by least squares on the logarithm of throughput: every point counts by its percentage."""
    return _usl("log", n, x, Task(logarithmic=True), bounded=bounded)


def saturation(n: Floats, x: Floats, *, bounded: bool) -> Model:
    """The curve that rises to a ceiling and stays there; it needs no bounds."""
    del bounded
    scales = [float(np.quantile(n, share)) for share in (0.25, 0.5, 0.9)]
    found = least_squares(
        lambda p: curves.saturating(n, p) - x,
        lambda p: curves.saturating_gradient(n, p),
        [np.array([x.max(), scale]) for scale in scales],
    )
    if found is None:
        return failed("saturating", NO_SOLUTION)
    if not (found.parameters > 0).all() or found.inverse is None or found.parameters[1] > 100 * n.max():
        return failed("saturating", "no ceiling can be seen in these points")
    if found.parameters[1] < n.min() / FLAT:
        return failed("saturating", "every point lies on its ceiling: no rise was measured")
    variance = found.rss / max(1, len(n) - 2)
    return model("saturating", Found(found.parameters, found.inverse, variance, (True, True), 2), n, x)


def failed(key: str, reason: str) -> Model:
    """A fit that is not there, and why."""
    return Model(key, LABELS[key], failed=reason)


def _usl(key: str, n: Floats, x: Floats, task: Task, *, bounded: bool) -> Model:
    best: tuple[Solution, Free] | None = None
    for chosen in _subsets(task.free) if bounded else [task.free]:
        found = _search(n, x, replace(task, free=chosen))
        if found is None or (bounded and (found.parameters[1:] < 0).any()):
            continue
        if best is None or found.rss < best[0].rss:
            best = found, chosen
        if chosen == task.free:  # the least of all lies within the bounds
            break
    if best is None:
        return failed(key, NO_SOLUTION)
    solution, chosen = best
    if solution.inverse is None and any(chosen):
        return failed(key, UNTOLD)
    variance = solution.rss / max(1, len(n) - sum(chosen))
    out = model(key, Found(solution.parameters, solution.inverse, variance, chosen, task.counted), n, x)
    held = [was and not now for was, now in zip(task.free, chosen, strict=True)]
    parameters = tuple(replace(each, at_bound=at) for each, at in zip(out.parameters, held, strict=True))
    return _sound(replace(out, parameters=parameters), n)


def _subsets(free: Free) -> Iterator[Free]:
    """The free parameters, then with σ, κ or both fixed."""
    for sigma, kappa in product((True, False), repeat=2):
        subset = (free[0], free[1] and sigma, free[2] and kappa)
        if (sigma or free[1]) and (kappa or free[2]):
            yield subset


def _search(n: Floats, x: Floats, task: Task) -> Solution | None:
    chosen, base, logarithmic = np.array(task.free), np.array(task.fixed), task.logarithmic
    target = np.log(x) if logarithmic else x

    def whole(p: Floats) -> Floats:
        full = base.copy()
        full[chosen] = p
        return full

    def residuals(p: Floats) -> Floats:
        value = curves.usl(n, whole(p))
        return (np.log(value) if logarithmic else value) - target

    def jacobian(p: Floats) -> Floats:
        full = whole(p)
        slopes = curves.usl_gradient(n, full)[:, chosen]
        return slopes / curves.usl(n, full)[:, None] if logarithmic else slopes

    if not chosen.any():
        rss = float((residuals(np.empty(0)) ** 2).sum())
        return Solution(base.copy(), rss, None)
    found = least_squares(residuals, jacobian, [start[chosen] for start in _starts(n, x)])
    if found is None:
        return None
    full = whole(found.parameters)
    full[1:][np.abs(full[1:]) * np.array([n.max(), n.max() ** 2]) < NOTHING] = 0.0
    return Solution(full, found.rss, found.inverse)


def _starts(n: Floats, x: Floats) -> list[Floats]:
    """Where to search from: the exact solution of N/X = (1 + σ(N−1) + κN(N−1))/λ, weighted; then usl4j's."""
    weight = x**2 / n
    design = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    (first, second, third), *_ = np.linalg.lstsq(design * weight[:, None], n / x * weight, rcond=None)
    steepest = float((x / n).max())
    starts = [np.array([steepest, 0.1, 0.01]), np.array([steepest, 0.05, 1 / float(n.max()) ** 2])]
    if first > 0:
        starts.insert(0, np.array([1 / first, second / first, third / first]))
    return starts


def _sound(found: Model, n: Floats) -> Model:
    """Refuse a curve with a pole where it was measured."""
    rate, sigma, kappa = found.values
    between = np.linspace(n.min(), n.max(), 200)
    if rate <= 0 or (1 + sigma * (between - 1) + kappa * between * (between - 1) <= 0).any():
        return failed(found.key, "its curve has no finite throughput within the measured range")
    return found


FITTERS: dict[str, Callable[..., Model]] = {
    "usl": three_parameters,
    "usl_x1": first_point,
    "linear": linear,
    "log": log_residuals,
    "amdahl": amdahl,
    "saturating": saturation,
}
