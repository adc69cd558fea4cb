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

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from loadprint.statistics import gaps
from loadprint.statistics.student import t_quantile

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
        return bool(_beyond(self.slope, self.slope_low, self.slope_high)) or bool(
            _beyond(self.thirds, self.thirds_low, self.thirds_high)
        )

    @property
    def worst(self) -> tuple[float, float, float]:
        """Drift and interval of the estimate that finds a drift, else of the slope."""
        slope = (self.slope, self.slope_low, self.slope_high)
        return (
            slope if _beyond(*slope) or not self.drifts else (self.thirds, self.thirds_low, self.thirds_high)
        )


@dataclass(frozen=True)
class TrendEstimates:
    """Results of `trend_estimates`: arrays (series,)."""

    slope: Floats
    slope_half: Floats
    thirds: Floats
    thirds_half: Floats
    autocorrelation: Floats

    @property
    def drifts(self) -> NDArray[np.bool_]:
        """As `Trend.drifts`, for each series."""
        slope = _beyond(self.slope, self.slope - self.slope_half, self.slope + self.slope_half)
        thirds = _beyond(self.thirds, self.thirds - self.thirds_half, self.thirds + self.thirds_half)
        return np.asarray(slope | thirds)


def trend(series: Floats) -> Trend | None:
    """Trend of an evenly spaced series (samples,), or of repeats (repeats, samples) together.

    None below ten samples, with too many gaps, or where a mean is not positive.
    """
    repeats = [gaps.filled(each) for each in np.atleast_2d(series)]
    complete = [filled[0] for filled in repeats if filled]
    if len(complete) < len(repeats) or len(complete[0]) < MIN_SAMPLES:
        return None
    series = np.array(complete)
    if not (series.mean(axis=1) > 0).all():
        return None
    estimates = trend_estimates(series[None])
    slope, slope_half, thirds, half, autocorrelation = (
        float(values[0])
        for values in (
            estimates.slope,
            estimates.slope_half,
            estimates.thirds,
            estimates.thirds_half,
            estimates.autocorrelation,
        )
    )
    return Trend(
        slope=slope,
        slope_low=slope - slope_half,
        slope_high=slope + slope_half,
        thirds=thirds,
        thirds_low=thirds - half,
        thirds_high=thirds + half,
        autocorrelation=autocorrelation,
        samples=series.shape[1],
    )


def trend_estimates(series: Floats) -> TrendEstimates:
    """Both estimates for each of (sides, repeats, samples): ten samples or more, positive means.

    The drift is that of the mean of the repeats, each divided by its own mean; noise and autocorrelation come
    from the residuals of all repeats. Longer series are averaged to at most 119 samples: more do not show a
    drift better.
    """
    shares = averaged(series)
    shares = shares / shares.mean(axis=2, keepdims=True) - 1
    repeats, n = shares.shape[1:]
    model = _model(n)
    residuals = shares - (shares @ model.curve) @ model.curve.T
    power = (residuals**2).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = (residuals[..., 1:] * residuals[..., :-1]).sum(axis=(1, 2)) / power
    flat = power <= 1e-24  # no noise at all
    autocorrelation = (
        np.interp(np.where(flat, 0.0, seen), model.seen, AUTOCORRELATIONS) + MARGIN / n / repeats
    )
    autocorrelation = np.where(flat, 0.0, np.clip(autocorrelation, 0.0, AUTOCORRELATIONS[-1]))
    # of the repeats' mean: from the noise of each, or from what is common to all, such as checkpoint cycles
    # that start with the window
    common = (residuals.mean(axis=1) ** 2).sum(axis=1)
    variance = np.maximum(power / repeats**2, common) / np.interp(
        autocorrelation, AUTOCORRELATIONS, model.power
    )
    freedom = repeats * np.maximum(
        n * (1 - autocorrelation) / (1 + autocorrelation) - model.curve.shape[1], 1.5
    )
    quantile = np.array([t_quantile(0.5 + LEVEL / 2, round(float(each), 1)) for each in freedom])
    together = shares.mean(axis=1)
    return TrendEstimates(
        slope=theil_sen(together) * n,
        slope_half=quantile * np.sqrt(variance * np.interp(autocorrelation, AUTOCORRELATIONS, model.slope)),
        thirds=together @ model.contrast,
        thirds_half=quantile * np.sqrt(variance * np.interp(autocorrelation, AUTOCORRELATIONS, model.thirds)),
        autocorrelation=autocorrelation,
    )


def averaged(series: Floats) -> Floats:
    """Samples, the last axis, averaged over equal blocks until there are 119 or fewer."""
    n = series.shape[-1]
    width = -(-n // MAX_SAMPLES)
    return np.asarray(series[..., : n // width * width].reshape(*series.shape[:-1], -1, width).mean(axis=-1))


def theil_sen(series: Floats) -> Floats:
    """Median of the slopes between all pairs of samples (Sen 1968), per sample, for each row."""
    i, j = np.triu_indices(series.shape[1], k=1)
    medians = np.empty(len(series))
    for begin in range(0, len(series), 100):  # 100 rows of pairs at a time, to limit memory
        part = series[begin : begin + 100]
        medians[begin : begin + 100] = np.median((part[:, j] - part[:, i]) / (j - i), axis=1)
    return medians


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


def _beyond(drift: Floats | float, low: Floats | float, high: Floats | float) -> NDArray[np.bool_]:
    return np.asarray((np.abs(drift) >= LIMIT) & (np.asarray(low) * np.asarray(high) > 0))
