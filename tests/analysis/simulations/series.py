"""Operations a second, (trials, seconds), around a mean of 1: steady in several ways, and not steady."""

from __future__ import annotations

import numpy as np
from loadprint.statistics.trend import trend
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Random = np.random.Generator


def refused(made: Floats) -> float:
    """Share of series (trials, seconds), or of sides (trials, repeats, seconds), that count as unsettled."""
    trends = [trend(run) for run in made]
    return float(np.mean([trend is not None and trend.drifts for trend in trends]))


def noise(random: Random, trials: int, seconds: int, spread: float, autocorrelation: float) -> Floats:
    """First-order autoregression of standard deviation `spread` and this lag-one autocorrelation."""
    values = random.normal(0, 1, (trials, seconds))
    fresh = np.sqrt(1 - autocorrelation**2)
    for second in range(1, seconds):
        values[:, second] = autocorrelation * values[:, second - 1] + fresh * values[:, second]
    return spread * values


def stationary(random: Random, trials: int, seconds: int, spread: float, autocorrelation: float) -> Floats:
    """Steady, with autocorrelation."""
    return 1 + noise(random, trials, seconds, spread, autocorrelation)


def sawtooth(random: Random, trials: int, seconds: int, cycles: float, height: float) -> Floats:
    """Checkpoint cycles: a slow fall and a jump back, begun anywhere, under some noise."""
    begun = random.random((trials, 1))
    place = (np.arange(seconds) / seconds * cycles + begun) % 1.0
    return 1 - height * (place - 0.5) + noise(random, trials, seconds, 0.02, 0.3)


def cycles_in_step(random: Random, repeats: int, seconds: int, cycles: float, height: float) -> Floats:
    """Repeats (300, repeats, seconds) whose checkpoint cycles all begin at the same place of the window."""
    begun = random.random((300, 1, 1))
    place = (np.arange(seconds) / seconds * cycles + begun) % 1.0
    seen = noise(random, 300 * repeats, seconds, 0.02, 0.3).reshape(300, repeats, seconds)
    return np.asarray(1 - height * (place - 0.5) + seen)


def bursty(random: Random, trials: int, seconds: int, depth: float = 0.4, every: float = 12.0) -> Floats:
    """Stalls of three seconds at random times, each taking up to `depth` of the throughput."""
    begun = random.random((trials, seconds + 2)) < 1 / every
    stalled = begun[:, 2:] | begun[:, 1:-1] | begun[:, :-2]
    return (
        1
        + noise(random, trials, seconds, 0.03, 0.3)
        - depth * stalled * random.uniform(0.5, 1, (trials, seconds))
    )


def linear(  # noqa: PLR0917
    random: Random, trials: int, seconds: int, drift: float, spread: float, autocorrelation: float
) -> Floats:
    """A drift over the window, half of the trials up and half down."""
    line = drift * (np.arange(seconds) / seconds - 0.5)
    signs = np.where(np.arange(trials) % 2, 1.0, -1.0)[:, None]
    return 1 + signs * line + noise(random, trials, seconds, spread, autocorrelation)


def ramp(random: Random, trials: int, seconds: int, depth: float, decay: float, spread: float) -> Floats:  # noqa: PLR0917
    """A warm-up: the level is neared exponentially; `decay` is the time constant in windows."""
    missing = depth * np.exp(-(np.arange(seconds) + 0.5) / seconds / decay)
    return 1 - missing + noise(random, trials, seconds, spread, 0.5)
