"""Computes tests over blocks and windows: exact sign flips, drift, carry-over.

The unit is the block: seconds within a window are autocorrelated, and the windows of a block share
its load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics.stats import LEVEL, t_quantile, t_tail

ENUMERATED = 20  # blocks; 2^20 sign patterns take about a second
DRAWS = 1 << 17
Floats = NDArray[np.float64]


def sign_flip(differences: Sequence[float]) -> float | None:
    """Return the two-sided p of "no effect" by flipping signs of blocks' differences; None without blocks.

    Fisher 1935, §21: all 2^n patterns up to twenty blocks, else 131,072 patterns drawn with a fixed
    seed.
    """
    d = np.asarray(differences, dtype=float)
    n = len(d)
    if n == 0:
        return None
    # rounding must not break ties
    reached = abs(float(d.sum())) - 1e-12 * float(np.abs(d).sum())
    if n <= ENUMERATED:
        sums = np.zeros(1)
        for value in d:
            sums = np.concatenate((sums + value, sums - value))
        return float((np.abs(sums) >= reached).mean())
    signs = np.random.default_rng(1).integers(0, 2, size=(DRAWS, n), dtype=np.int8) * 2.0 - 1
    hits = int((np.abs(signs @ d) >= reached).sum())
    return (1 + hits) / (1 + DRAWS)


@dataclass(frozen=True)
class Slope:
    """A coefficient of a regression on logs, its 95 % interval and two-sided p."""

    value: float
    low: float
    high: float
    p: float


def drift(logs: Sequence[float], treated: Sequence[bool], numbers: Sequence[int]) -> Slope | None:
    """Return the slope of ln y over the window's number, adjusted for the variant, or None."""
    columns = [np.ones(len(logs)), np.asarray(treated, dtype=float), np.asarray(numbers, dtype=float)]
    return _coefficient(np.asarray(logs, dtype=float), columns, 2)


def carry_over(
    logs: Sequence[float], treated: Sequence[bool], after: Sequence[bool], blocks: Sequence[int]
) -> Slope | None:
    """Return the shift of ln y in windows that follow a treatment window.

    The first-order carry-over term of crossover trials (Jones & Kenward, Design and Analysis of
    Cross-Over Trials, ch. 5): regression on variant, position within the block, block, and previous
    variant. None if the schedule does not separate these, such as `TB`, where every baseline window
    follows a treatment window.
    """
    ids = np.asarray(blocks)
    places = np.zeros(len(ids))
    for block in np.unique(ids):
        members = np.flatnonzero(ids == block)
        places[members] = np.arange(len(members))
    dummies = [(ids == block).astype(float) for block in np.unique(ids)]
    columns = [*dummies, np.asarray(treated, dtype=float), places, np.asarray(after, dtype=float)]
    return _coefficient(np.asarray(logs, dtype=float), columns, len(columns) - 1)


def _coefficient(y: Floats, columns: Sequence[Floats], which: int) -> Slope | None:
    """Fit by ordinary least squares; None if the column depends on the others or no freedom is left."""
    x = np.stack(columns, axis=1)
    rank = int(np.linalg.matrix_rank(x))
    freedom = len(y) - rank
    # the coefficient is estimable only if the rank falls without its column
    if freedom < 1 or int(np.linalg.matrix_rank(np.delete(x, which, axis=1))) == rank:
        return None
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    residual = y - x @ beta
    variance = float(residual @ residual) / freedom
    error = math.sqrt(max(0.0, variance * float(np.linalg.pinv(x.T @ x)[which, which])))
    value = float(beta[which])
    if error <= 1e-12:
        return Slope(value, value, value, 0.0 if abs(value) > 1e-12 else 1.0)
    half = t_quantile(0.5 + LEVEL / 2, freedom) * error
    return Slope(value, value - half, value + half, 2 * t_tail(abs(value) / error, freedom))
