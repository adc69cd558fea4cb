"""The curves that are fitted to throughput by concurrency, and their gradients. Pure functions.

USL: X(N) = λN / (1 + σ(N−1) + κN(N−1)) (Gunther, Guerrilla Capacity Planning, 2007; the R package usl calls
the three gamma, alpha, beta). Saturation: X(N) = a (1 − exp(−N/b)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def usl(n: Floats, p: Sequence[float] | Floats) -> Floats:
    """Throughput at concurrencies `n` for p = (λ, σ, κ)."""
    rate, sigma, kappa = p
    return np.asarray(rate * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)))


def usl_gradient(n: Floats, p: Sequence[float] | Floats) -> Floats:
    """Derivatives of `usl` by λ, σ and κ, shape (len(n), 3)."""
    rate, sigma, kappa = p
    below = 1 + sigma * (n - 1) + kappa * n * (n - 1)
    by_below = -rate * n / below**2
    return np.stack([n / below, by_below * (n - 1), by_below * n * (n - 1)], axis=1)


def saturating(n: Floats, p: Sequence[float] | Floats) -> Floats:
    """Throughput at concurrencies `n` for p = (a, b)."""
    top, scale = p
    return np.asarray(top * -np.expm1(-n / scale))


def saturating_gradient(n: Floats, p: Sequence[float] | Floats) -> Floats:
    """Derivatives of `saturating` by a and b, shape (len(n), 2)."""
    top, scale = p
    left = np.exp(-n / scale)
    return np.stack([1 - left, -top * left * n / scale**2], axis=1)


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
