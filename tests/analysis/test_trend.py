"""The trend compared with SciPy's Theil–Sen, and unusual series."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from loadprint.statistics.trend import mser5, trend
from reads import known


def test_the_slope_is_theil_sens() -> None:
    random = np.random.default_rng(5)
    series = 1000 + 2.0 * np.arange(100) + random.normal(0, 20, 100)
    result = known(trend(series))
    assert result.slope == pytest.approx(scipy.stats.theilslopes(series).slope * 100 / series.mean())
    assert result.slope_low < 0.18 < result.slope_high
    assert result.drifts


def test_without_memory_the_interval_is_about_that_of_least_squares() -> None:
    """Wider by the second look (97.5 %) and the caution, but not by half."""
    series = 1000 + np.random.default_rng(6).normal(0, 20, 119)
    result, line = trend(series), scipy.stats.linregress(np.arange(119), series)
    assert result is not None
    plain = 2.3 * line.stderr * 119 / series.mean()
    assert plain < (result.slope_high - result.slope_low) / 2 < 1.5 * plain


def test_long_series_are_averaged_first() -> None:
    series = 1000 + 0.05 * np.arange(3600) + np.random.default_rng(5).normal(0, 100, 3600)
    result = known(trend(series))
    assert result.samples == 3600
    assert result.slope == pytest.approx(180 / series.mean(), rel=0.15)


def test_a_series_without_noise_drifts_or_does_not() -> None:
    flat, line = trend(np.full(60, 250.0)), trend(np.linspace(90, 110, 60))
    assert flat is not None
    assert (flat.slope, flat.slope_low, flat.slope_high, flat.drifts) == (0.0, 0.0, 0.0, False)
    assert line is not None
    assert line.drifts


def test_a_warm_up_is_detected_by_its_thirds() -> None:
    time = (np.arange(300) + 0.5) / 300
    result = known(trend(1 - 0.5 * np.exp(-time / 0.05) + np.random.default_rng(2).normal(0, 0.02, 300)))
    assert result.drifts
    assert result.worst[0] == result.thirds > 2 * result.slope


def test_too_short_or_empty_series_have_no_trend() -> None:
    assert trend(np.ones(9)) is None
    assert trend(np.zeros(60)) is None
    assert trend(np.empty(0)) is None


def test_mser_cuts_a_warm_up_and_nothing_else() -> None:
    noise = np.random.default_rng(1).normal(0, 1, 400)
    warm = 100 + noise
    warm[:60] -= np.linspace(80, 0, 60)
    assert 40 <= (mser5(warm) or 0) <= 80
    assert mser5(np.ones(100)) is None
