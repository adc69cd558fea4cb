"""Removes or fills gaps in a series (values that are not finite are missing), and shortens it.

Values are scaled to about 1 first, so that sums of squares neither overflow nor underflow.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_MISSING = 0.1  # share of a series that may be missing where its order in time matters


def scaled(series: Floats) -> tuple[Floats, float]:
    """Values divided by the power of two below the largest, missing ones NaN, and that unit; any shape."""
    values = np.asarray(series, dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two: division is exact
    return values / unit, unit


def measured(series: Floats) -> Floats:
    """The finite values, in their order, `scaled`."""
    values, _ = scaled(series)
    return values[np.isfinite(values)]


def filled(series: Floats) -> tuple[Floats, float] | None:
    """A series (samples,) `scaled`, its gaps interpolated; None where more than a tenth is missing."""
    values, unit = scaled(series)
    finite = np.isfinite(values)
    if not finite.any() or np.mean(~finite) > MAX_MISSING:
        return None
    places = np.arange(len(values))
    return np.interp(places, places[finite], values[finite]), unit


def averaged(series: Floats, most: int) -> Floats:
    """Samples, the last axis, averaged over equal blocks until there are `most` or fewer."""
    n = series.shape[-1]
    width = -(-n // most)
    return np.asarray(series[..., : n // width * width].reshape(*series.shape[:-1], -1, width).mean(axis=-1))
