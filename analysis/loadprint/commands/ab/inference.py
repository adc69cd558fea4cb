"""Tests over blocks and windows: exact sign flips, drift, carry-over. Pure functions over arrays.

The block is the unit: seconds within a window are autocorrelated, and windows of a block share its hour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics.stats import LEVEL

ENUMERATED = 20  # 2^20 sign patterns are a second's work
DRAWS = 1 << 17
Floats = NDArray[np.float64]


def smallest_p(blocks: int) -> float:
    """Smallest two-sided p that so many blocks can reach: two of 2^n sign patterns are all alike."""
    return min(1.0, 2.0 ** (1 - blocks))


def sign_flip(differences: Sequence[float]) -> float | None:
    """Two-sided p of "no effect" by flipping the sign of each block's difference (Fisher 1935, §21).

    All 2^n patterns up to twenty blocks, beyond them 131,072 drawn with a fixed seed. None without blocks.
    """
    d = np.asarray(differences, dtype=float)
    n = len(d)
    if n == 0:
        return None
    # a tie must not be lost to rounding
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
    """Slope of ln y over the window's number beside the variant's effect; None where it cannot be told."""
    columns = [np.ones(len(logs)), np.asarray(treated, dtype=float), np.asarray(numbers, dtype=float)]
    return _coefficient(np.asarray(logs, dtype=float), columns, 2)


def carry_over(
    logs: Sequence[float], treated: Sequence[bool], after: Sequence[bool], blocks: Sequence[int]
) -> Slope | None:
    """How much ln y is shifted in windows that follow a treatment window, whatever their own variant.

    The first-order carry-over term of crossover trials (Jones & Kenward, Design and Analysis of Cross-Over
    Trials, ch. 5): regression on variant, place within the block, block, and variant before. None where the
    schedule does not separate these, as `TB`, in which every baseline window follows a treatment window.
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
    """Ordinary least squares; None where the column depends on the others or no freedom is left."""
    x = np.stack(columns, axis=1)
    rank = int(np.linalg.matrix_rank(x))
    freedom = len(y) - rank
    # the coefficient is told from the others only if the rank falls without its column
    if freedom < 1 or int(np.linalg.matrix_rank(np.delete(x, which, axis=1))) == rank:
        return None
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    residual = y - x @ beta
    variance = float(residual @ residual) / freedom
    error = math.sqrt(max(0.0, variance * float(np.linalg.pinv(x.T @ x)[which, which])))
    value = float(beta[which])
    if error <= 1e-12:
        return Slope(value, value, value, 0.0 if abs(value) > 1e-12 else 1.0)
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415  slow to import; a table of two columns needs none

    half = float(stdtrit(freedom, 0.5 + LEVEL / 2)) * error
    return Slope(value, value - half, value + half, 2 * float(stdtr(freedom, -abs(value) / error)))
