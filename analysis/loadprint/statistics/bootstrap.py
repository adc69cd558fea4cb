"""Bootstraps the interval of one run's mean from its own seconds. For planning only, never for a verdict.

Stationary bootstrap (Politis & Romano 1994): blocks of geometric length keep neighbouring seconds together.
The mean block length is chosen from the series (Politis & White 2004, corrected by Patton, Politis & White
2009). NumPy only, because `arch` imports pandas; the tests compare both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps

Floats = NDArray[np.float64]
DRAWS = 1000
MAX_SAMPLES = 600  # longer series are averaged to this length: the same noise of the mean, far less time
MIN_SAMPLES = 10
LEVEL = 0.95


@dataclass(frozen=True)
class Noise:
    """95 % interval of a run's mean from its own seconds, as shares of that mean (low < 0 < high).

    `block` is the mean block length in samples. The interval excludes the differences between runs.
    """

    low: float
    high: float
    block: float
    samples: int

    @property
    def share(self) -> float:
        """Half the width of the interval, as a share of the mean."""
        return (self.high - self.low) / 2


def bootstrap_noise(series: Floats, *, draws: int = DRAWS, seed: int = 1) -> Noise | None:
    """Noise of an evenly spaced series (samples,); None below ten finite values or for a mean of zero.

    The values on both sides of a gap count as neighbours.
    """
    series = gaps.known(series)
    if len(series) < MIN_SAMPLES or not float(series.mean()):
        return None
    samples, width = len(series), -(-len(series) // MAX_SAMPLES)
    series = series[: samples // width * width].reshape(-1, width).mean(axis=1)
    mean, block = float(series.mean()), block_length(series)
    means = stationary_means(series, block, draws, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) / mean - 1
    low, high = sorted((float(low), float(high)))
    return Noise(low, high, block * width, samples)


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
    covariances, correlations = _autocovariances(centred, max_lag)
    quiet = np.abs(correlations) < small
    last = next((lag for lag in range(max_lag - run + 1) if quiet[lag : lag + run].all()), None)
    lags = max_lag if last is None else min(2 * max(last, 1), max_lag)
    k = np.arange(1, lags + 1)
    window = np.where(k / lags <= 0.5, 1.0, 2 * (1 - k / lags))
    spectrum = float(covariances[0] + 2 * (window * covariances[1 : lags + 1]).sum())
    curvature = float(2 * (window * k * covariances[1 : lags + 1]).sum())
    if spectrum == 0:
        return 1.0
    longest = math.ceil(min(3 * math.sqrt(n), n / 3))
    length = ((curvature / spectrum) ** 2 * n) ** (1 / 3)
    return float(min(max(length, 1.0), longest))


def _autocovariances(centred: Floats, max_lag: int) -> tuple[Floats, Floats]:
    """Autocovariances of lags 0 to `max_lag` (÷ n), and correlations of the overlapping parts."""
    n = len(centred)
    products = np.array([float(centred[lag:] @ centred[: n - lag]) for lag in range(max_lag + 1)])
    sizes = np.array(
        [
            math.sqrt(
                float(centred[lag + 1 :] @ centred[lag + 1 :])
                * float(centred[: -lag - 1] @ centred[: -lag - 1])
            )
            for lag in range(max_lag + 1)
        ]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = np.where(sizes > 0, products / sizes, 0.0)
    return products / n, correlations
