"""Series with gaps: values that are not finite are missing, and statistics see the others.

Everything here is scaled to about 1 first, so that sums of squares neither overflow nor vanish.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST = 0.1  # share of a series that may be missing where its order in time matters


def scaled(series: Floats) -> tuple[Floats, float]:
    """Values in units of the power of two below the largest, missing ones NaN, and the unit; any shape."""
    values = np.asarray(series, dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # by which a division is exact
    return values / unit, unit


def known(series: Floats) -> Floats:
    """Values that are there, in their order, `scaled`."""
    values, _ = scaled(series)
    return values[np.isfinite(values)]


def filled(series: Floats) -> tuple[Floats, float] | None:
    """A series (samples,) `scaled`, its gaps interpolated; None where more than a tenth is missing."""
    values, unit = scaled(series)
    there = np.isfinite(values)
    if not there.any() or np.mean(~there) > MOST:
        return None
    places = np.arange(len(values))
    return np.interp(places, places[there], values[there]), unit
