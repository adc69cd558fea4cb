"""Estimates over how many seconds of a series its values are correlated.

The block length of the stationary bootstrap (Politis & White 2004, corrected by Patton, Politis & White
2009). NumPy only, because `arch` imports pandas; the tests compare both.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def block_length(series: Floats) -> float:
    """Mean block length for the mean of a series, 1 or more.

    Autocovariances count up to twice the lag after which `run` consecutive ones are small, in a flat-top
    window (Politis & Romano 1995). A series without autocorrelation gives 1.
    """
    n = len(series)
    centred = series - series.mean()
    run = max(5, int(math.log10(n)))
    max_lag = min(math.ceil(math.sqrt(n)) + run, n - 2)
    small = 2 * math.sqrt(math.log10(n) / n)
    lags = np.arange(max_lag + 1)
    products = np.array([centred[lag:] @ centred[: n - lag] for lag in lags])
    squares = np.cumsum(centred**2)
    overlapping = np.sqrt(np.maximum(0.0, squares[-1] - squares[lags]) * squares[n - lags - 2])
    quiet = np.abs(products) <= small * overlapping  # the correlation of the overlapping parts
    last = next((lag for lag in range(max_lag - run + 1) if quiet[lag : lag + run].all()), None)
    used = max_lag if last is None else min(2 * max(last, 1), max_lag)
    k, covariances = lags[1 : used + 1], products / n
    window = np.where(k / used <= 0.5, 1.0, 2 * (1 - k / used)) * covariances[1 : used + 1]
    spectrum = float(covariances[0] + 2 * window.sum())
    curvature = float(2 * (window * k).sum())
    if spectrum == 0:
        return 1.0
    longest = math.ceil(min(3 * math.sqrt(n), n / 3))
    length = ((curvature / spectrum) ** 2 * n) ** (1 / 3)
    return float(min(max(length, 1.0), longest))
