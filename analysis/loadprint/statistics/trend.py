"""Does a series drift? Theil–Sen slope and a comparison of thirds, with intervals that know autocorrelation.

Seconds of one run are alike their neighbours, so that plain intervals of a slope are far too narrow. Here the
noise is a first-order autoregression around a smooth curve (level, line, two decays, so that a warm-up does
not pass for noise). Its memory is found by matching the residuals' lag-one correlation with what a memory
would give after the curve was taken off (the bias of Marriott & Pope 1954 and Kendall 1954, here exactly, for
this curve and length), and is then taken `CAUTION` / samples larger, because an estimate that is too small
raises false alarms. The variance of slope and contrast follows exactly; Student's t has the freedom of the
effective number of samples. All of it is tried on known truth in tests/simulations.
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
LEVEL = 0.975  # of each of the two looks at a series, so that both together have 95 %
LEAST_SAMPLES, MOST_SAMPLES = 10, 119
DECAYS = (0.07, 0.25)  # time constants of the curve's decays, as shares of the window
CAUTION = 2.5
MEMORIES = np.linspace(-0.5, 0.98, 149)


@dataclass(frozen=True)
class Trend:
    """Drift over a whole series as a share of its mean, by two looks, each with its interval.

    `slope` is Theil–Sen slope × length (Sen 1968); `thirds` one and a half times the difference between the
    last third's mean and the first third's, which is the same for a line and larger for a warm-up. `memory`
    is the correlation from one (averaged) sample to the next.
    """

    slope: float
    slope_low: float
    slope_high: float
    thirds: float
    thirds_low: float
    thirds_high: float
    memory: float
    samples: int

    @property
    def drifts(self) -> bool:
        """Whether either look finds 5 % of the mean or more, and can tell it from none."""
        return bool(_beyond(self.slope, self.slope_low, self.slope_high)) or bool(
            _beyond(self.thirds, self.thirds_low, self.thirds_high)
        )

    @property
    def worst(self) -> tuple[float, float, float]:
        """Drift and interval of the look that finds a drift, else of the slope."""
        slope = (self.slope, self.slope_low, self.slope_high)
        return (
            slope if _beyond(*slope) or not self.drifts else (self.thirds, self.thirds_low, self.thirds_high)
        )


@dataclass(frozen=True)
class Looks:
    """What `look` finds: arrays (series,)."""

    slope: Floats
    slope_half: Floats
    thirds: Floats
    thirds_half: Floats
    memory: Floats

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
    known = [found[0] for found in repeats if found]
    if len(known) < len(repeats) or len(known[0]) < LEAST_SAMPLES:
        return None
    series = np.array(known)
    if not (series.mean(axis=1) > 0).all():
        return None
    found = look(series[None])
    slope, slope_half, thirds, half, memory = (
        float(values[0])
        for values in (found.slope, found.slope_half, found.thirds, found.thirds_half, found.memory)
    )
    return Trend(
        slope=slope,
        slope_low=slope - slope_half,
        slope_high=slope + slope_half,
        thirds=thirds,
        thirds_low=thirds - half,
        thirds_high=thirds + half,
        memory=memory,
        samples=series.shape[1],
    )


def look(series: Floats) -> Looks:
    """Both looks at each of (sides, repeats, samples): ten samples or more, positive means.

    The drift is that of the repeats' mean, each taken as a share of its own; noise and memory come from all
    their residuals. Long series are averaged to 119 samples at most: a drift is not seen better in more.
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
    memory = np.interp(np.where(flat, 0.0, seen), model.seen, MEMORIES) + CAUTION / n / repeats
    memory = np.where(flat, 0.0, np.clip(memory, 0.0, MEMORIES[-1]))
    # of the repeats' mean: by their own noise, or by what they have in common, as checkpoint cycles that all
    # begin with the window
    common = (residuals.mean(axis=1) ** 2).sum(axis=1)
    variance = np.maximum(power / repeats**2, common) / np.interp(memory, MEMORIES, model.power)
    freedom = repeats * np.maximum(n * (1 - memory) / (1 + memory) - model.curve.shape[1], 1.5)
    quantile = np.array([t_quantile(0.5 + LEVEL / 2, round(float(each), 1)) for each in freedom])
    together = shares.mean(axis=1)
    return Looks(
        slope=theil_sen(together) * n,
        slope_half=quantile * np.sqrt(variance * np.interp(memory, MEMORIES, model.slope)),
        thirds=together @ model.contrast,
        thirds_half=quantile * np.sqrt(variance * np.interp(memory, MEMORIES, model.thirds)),
        memory=memory,
    )


def averaged(series: Floats) -> Floats:
    """Samples, the last axis, averaged over equal blocks until there are 119 or fewer."""
    n = series.shape[-1]
    width = -(-n // MOST_SAMPLES)
    return np.asarray(series[..., : n // width * width].reshape(*series.shape[:-1], -1, width).mean(axis=-1))


def theil_sen(series: Floats) -> Floats:
    """Median of the slopes between all pairs of samples (Sen 1968), per sample, for each row."""
    i, j = np.triu_indices(series.shape[1], k=1)
    found = np.empty(len(series))
    for begin in range(0, len(series), 100):  # a hundred rows of pairs at a time, to spare memory
        part = series[begin : begin + 100]
        found[begin : begin + 100] = np.median((part[:, j] - part[:, i]) / (j - i), axis=1)
    return found


def mser5(series: Floats) -> int | None:
    """Samples that MSER-5 would cut from the front (White 1997); None below 200 samples or with many gaps."""
    found = gaps.filled(series)
    if found is None or len(series) < 200:
        return None
    series = found[0]
    batches = series[: len(series) // 5 * 5].reshape(-1, 5).mean(axis=1)
    half = len(batches) // 2
    scores = [float(batches[cut:].var() / (len(batches) - cut)) for cut in range(half)]
    return int(np.argmin(scores)) * 5


@dataclass(frozen=True)
class _Model:
    """What a length fixes: the curve's orthonormal columns, and by memory (as MEMORIES) the rest.

    `seen`: lag-one correlation of the residuals; `power`: their expected sum of squares; `slope`, `thirds`:
    variance of the estimate; all for noise of variance 1.
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
    powers = MEMORIES[:, None] ** np.arange(n)

    def expected(form: Floats) -> Floats:
        """Expectation of a quadratic form of autoregressive noise, for every memory."""
        sums = [float(np.trace(form, k) + (np.trace(form, -k) if k else 0)) for k in range(n)]
        return np.asarray(powers @ np.array(sums))

    power = expected(rest)
    # the largest so far: interpolation wants a rising scale
    seen = np.maximum.accumulate(expected(rest @ neighbours @ rest) / power)
    return _Model(
        curve, contrast, seen, power, expected(np.outer(line, line)), expected(np.outer(contrast, contrast))
    )


def _beyond(drift: Floats | float, low: Floats | float, high: Floats | float) -> NDArray[np.bool_]:
    return np.asarray((np.abs(drift) >= LIMIT) & (np.asarray(low) * np.asarray(high) > 0))
