"""Bootstraps the interval of one run's mean from its own seconds. For planning only, never for a verdict.

Stationary bootstrap (Politis & Romano 1994): blocks of geometric length keep neighbouring seconds together.
The mean block length is chosen from the series (Politis & White 2004, corrected by Patton, Politis & White
2009). NumPy only, because `arch` imports pandas; the tests compare both.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps

Floats = NDArray[np.float64]
DRAWS = 1000
MAX_SAMPLES = 600  # longer series are averaged to this length: the same noise of the mean, far less time
MIN_SAMPLES = 10
LEVEL = 0.95


def bootstrap_noise(series: Floats, *, draws: int = DRAWS) -> float | None:
    """Half of the 95 % interval of a run's mean from its own seconds, as a share of that mean.

    Of an evenly spaced series (samples,); None below ten finite values or for a mean of zero. The values on
    both sides of a gap count as neighbours. The interval excludes the differences between runs.
    """
    series = gaps.known(series)
    if len(series) < MIN_SAMPLES or not float(series.mean()):
        return None
    series = gaps.averaged(series, MAX_SAMPLES)
    means = stationary_means(series, block_length(series), draws, np.random.default_rng(1))
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) / float(series.mean())
    return abs(float(high) - float(low)) / 2


def stationary_means(series: Floats, block: float, draws: int, random: np.random.Generator) -> Floats:
    """Means of `draws` resamples (draws,) of a series, in blocks of geometric length with mean `block`.

    A block's sum is a difference of prefix sums of the doubled series, so the time grows with the number of
    blocks, not of samples.
    """
    n = len(series)
    prefix = np.concatenate(([0.0], np.cumsum(np.concatenate((series, series)))))
    expected = n / block
    at_once = int(expected + 4 * math.sqrt(expected) + 4)
    totals, taken = np.zeros(draws), np.zeros(draws, dtype=np.int64)
    while (taken < n).any():
        lengths = random.geometric(min(1.0, 1 / block), size=(draws, at_once))
        ends = np.minimum(taken[:, None] + np.cumsum(lengths, axis=1), n)
        lengths = np.diff(ends, axis=1, prepend=taken[:, None])
        starts = random.integers(0, n, size=(draws, at_once))
        totals += (prefix[starts + lengths] - prefix[starts]).sum(axis=1)
        taken = ends[:, -1]
    return totals / n


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
