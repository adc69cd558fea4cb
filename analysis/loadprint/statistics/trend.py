"""Estimates the drift of a series: Theil–Sen slope and difference of thirds, corrected for autocorrelation.

The seconds of one run are autocorrelated, so the usual interval of a slope is far too narrow. The model is
first-order autoregressive noise around a smooth curve: a level, a line and two exponential decays, so that
warm-up is not counted as noise. The lag-one correlation of the residuals underestimates the autocorrelation
(Marriott & Pope 1954, Kendall 1954); the bias is computed exactly for this curve and length, and inverted.
`MARGIN` / samples is added, because an estimate that is too small raises false alarms. The variances of slope
and contrast follow exactly. Student's t has the degrees of freedom of the effective sample size.
tests/analysis/simulations measures the false alarms and the power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps
from loadprint.statistics.stats import t_quantile

Floats = NDArray[np.float64]
LIMIT = 0.05  # drift over the window, as a share of the mean
LEVEL = 0.975  # of each of the two estimates: 95 % for both together (Bonferroni)
MIN_SAMPLES, MAX_SAMPLES = 10, 119
DECAYS = (0.07, 0.25)  # time constants of the curve's decays, as shares of the window
MARGIN = 2.5
AUTOCORRELATIONS = np.linspace(-0.5, 0.98, 149)


@dataclass(frozen=True)
class Trend:
    """Drift over a whole series as a share of its mean: two estimates with their intervals.

    `slope` is the Theil–Sen slope × length (Sen 1968). `thirds` is 1.5 × (mean of the last third − mean of
    the first third): equal to `slope` for a line, larger for a warm-up. `autocorrelation` is at lag one, of
    the averaged samples.
    """

    slope: float
    slope_low: float
    slope_high: float
    thirds: float
    thirds_low: float
    thirds_high: float
    autocorrelation: float
    samples: int

    @property
    def drifts(self) -> bool:
        """Whether either estimate is 5 % of the mean or more and significant."""
        return _beyond(*self.worst)

    @property
    def worst(self) -> tuple[float, float, float]:
        """Drift and interval of the estimate that finds a drift, else of the slope."""
        slope = (self.slope, self.slope_low, self.slope_high)
        thirds = (self.thirds, self.thirds_low, self.thirds_high)
        return thirds if _beyond(*thirds) and not _beyond(*slope) else slope


def _beyond(drift: float, low: float, high: float) -> bool:
    return abs(drift) >= LIMIT and low * high > 0


def trend(series: Floats) -> Trend | None:
    """Trend of an evenly spaced series (samples,), or of repeats (repeats, samples) together.

    None below ten samples, with too many gaps, or where a mean is not positive. The drift is that of the mean
    of the repeats, each divided by its own mean; noise and autocorrelation come from the residuals of all
    repeats. Longer series are averaged to at most 119 samples: more do not show a drift better.
    """
    complete = [filled[0] for repeat in np.atleast_2d(series) if (filled := gaps.filled(repeat))]
    if len(complete) < len(np.atleast_2d(series)) or len(complete[0]) < MIN_SAMPLES:
        return None
    shares = gaps.averaged(np.array(complete), MAX_SAMPLES)
    if not (shares.mean(axis=1) > 0).all():
        return None
    shares = shares / shares.mean(axis=1, keepdims=True) - 1
    repeats, n = shares.shape
    model = _model(n)
    residuals = shares - (shares @ model.curve) @ model.curve.T
    power, autocorrelation = float((residuals**2).sum()), 0.0
    if power > 1e-24:  # else there is no noise at all
        seen = float((residuals[:, 1:] * residuals[:, :-1]).sum()) / power
        seen = float(np.interp(seen, model.seen, AUTOCORRELATIONS)) + MARGIN / n / repeats
        autocorrelation = min(max(seen, 0.0), float(AUTOCORRELATIONS[-1]))
    expected, of_slope, of_thirds = (
        float(np.interp(autocorrelation, AUTOCORRELATIONS, table))
        for table in (model.power, model.slope, model.thirds)
    )
    # of the repeats' mean: from the noise of each, or from what is common to all, such as checkpoint cycles
    # that start with the window
    common = float((residuals.mean(axis=0) ** 2).sum())
    variance = max(power / repeats**2, common) / expected
    effective = n * (1 - autocorrelation) / (1 + autocorrelation) - model.curve.shape[1]
    quantile = t_quantile(0.5 + LEVEL / 2, round(repeats * max(effective, 1.5), 1))
    together = shares.mean(axis=0)
    slope, slope_half = theil_sen(together) * n, quantile * math.sqrt(variance * of_slope)
    thirds, half = float(together @ model.contrast), quantile * math.sqrt(variance * of_thirds)
    return Trend(
        slope,
        slope - slope_half,
        slope + slope_half,
        thirds,
        thirds - half,
        thirds + half,
        autocorrelation,
        len(complete[0]),
    )


def theil_sen(series: Floats) -> float:
    """Median of the slopes between all pairs of samples (Sen 1968), per sample."""
    i, j = np.triu_indices(len(series), k=1)
    return float(np.median((series[j] - series[i]) / (j - i)))


def mser5(series: Floats) -> int | None:
    """Samples that MSER-5 truncates at the start (White 1997); None below 200 samples or with many gaps."""
    filled = gaps.filled(series)
    if filled is None or len(series) < 200:
        return None
    series = filled[0]
    batches = series[: len(series) // 5 * 5].reshape(-1, 5).mean(axis=1)
    half = len(batches) // 2
    scores = [float(batches[cut:].var() / (len(batches) - cut)) for cut in range(half)]
    return int(np.argmin(scores)) * 5


@dataclass(frozen=True)
class _Model:
    """The model of one series length: orthonormal columns of the curve, weights of the contrast, and tables.

    The tables are by autocorrelation (as AUTOCORRELATIONS), for noise of variance 1. `seen`: lag-one
    correlation of the residuals; `power`: their expected sum of squares; `slope`, `thirds`: variance of the
    estimate.
    """

    curve: Floats
    contrast: Floats
    seen: Floats
    power: Floats
    slope: Floats
    thirds: Floats


@lru_cache(maxsize=128)
def _model(n: int) -> _Model:
    time = (np.arange(n) + 0.5) / n
    columns = [np.ones(n), time, *(np.exp(-time / decay) for decay in DECAYS)]
    curve = np.linalg.qr(np.array(columns).T)[0]
    rest = np.eye(n) - curve @ curve.T
    neighbours = (np.eye(n, k=1) + np.eye(n, k=-1)) / 2
    centred = time - time.mean()
    line = centred / (centred @ centred)
    place = np.arange(n) * 3 // n
    contrast = 1.5 * ((place == 2) / (place == 2).sum() - (place == 0) / (place == 0).sum())
    powers = AUTOCORRELATIONS[:, None] ** np.arange(n)

    def expected(form: Floats) -> Floats:
        """Expectation of a quadratic form of autoregressive noise, for every autocorrelation."""
        sums = [float(np.trace(form, k) + (np.trace(form, -k) if k else 0)) for k in range(n)]
        return np.asarray(powers @ np.array(sums))

    power = expected(rest)
    # np.interp needs a rising scale
    seen = np.maximum.accumulate(expected(rest @ neighbours @ rest) / power)
    return _Model(
        curve, contrast, seen, power, expected(np.outer(line, line)), expected(np.outer(contrast, contrast))
    )
