"""The statistics against SciPy's, and the digits of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from loadprint import numbers
from loadprint.statistics import stats

X, Y = [12.1, 12.9, 12.4, 13.3], [10.0, 10.9, 10.2, 10.4]


def test_the_interval_of_a_mean_is_scipys() -> None:
    result = stats.t_interval(X)
    interval = scipy.stats.t.interval(0.95, 3, np.mean(X), scipy.stats.sem(X))
    assert (result.centre, result.low, result.high) == pytest.approx((np.mean(X), *interval))
    assert stats.t_interval(X[:2]).low is None


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_a_ratio_is_scipys(paired: bool) -> None:
    """Student's t of the differences, or Welch's."""
    x, y = np.log(X), np.log(Y if paired else Y[:3])
    expected = scipy.stats.ttest_rel(x, y) if paired else scipy.stats.ttest_ind(x, y, equal_var=False)
    result = stats.ratio(np.exp(x).tolist(), np.exp(y).tolist(), paired=paired)
    assert result.p == pytest.approx(expected.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(np.exp(expected.confidence_interval(0.95))))


def test_two_repeats_give_no_interval() -> None:
    result = stats.ratio(X[:2], Y[:2], paired=True)
    assert result.centre == pytest.approx(math.sqrt(X[0] * X[1] / Y[0] / Y[1]))
    assert (result.low, result.high, result.p) == (None, None, None)


def test_equal_runs_are_equal() -> None:
    assert stats.ratio([2.0] * 3, [2.0] * 3, paired=True) == stats.Estimate(1.0, 1.0, 1.0, 1.0)


def test_no_interval_is_narrower_than_rounding_makes_it() -> None:
    """Three runs a side in neighbouring buckets of 8 an octave: 38.9 and 43 may be one and the same 41."""
    alike = stats.ratio([43.0] * 3, [38.9] * 3, paired=True, rounding=0.0625)
    worst = (1 / (1 - 0.0625)) ** 2
    assert alike.low == pytest.approx(43 / 38.9 / worst)
    assert alike.high == pytest.approx(43 / 38.9 * worst)
    assert alike.p is not None
    assert alike.p > 0.05
    apart = stats.ratio([86.0] * 3, [38.9] * 3, paired=True, rounding=0.0625)
    assert apart.low is not None
    assert apart.low > 1
    assert apart.p is not None
    assert 0 < apart.p < 0.05
    assert stats.ratio(X, Y, paired=True, rounding=1e-6) == stats.ratio(X, Y, paired=True)


def test_the_sampling_error_is_a_floor_because_the_spread_of_runs_contains_it() -> None:
    alone = stats.ratio(X, Y, paired=True)
    assert stats.ratio(X, Y, paired=True, sampling=1e-3) == alone
    equal = stats.ratio([2.2] * 3, [2.0] * 3, paired=True, sampling=0.1)
    low, high = np.exp(math.log(1.1) + 0.1 * scipy.stats.norm.ppf([0.025, 0.975]))
    assert (equal.low, equal.high) == pytest.approx((low, high))
    assert equal.p == pytest.approx(2 * scipy.stats.norm.sf(math.log(1.1) / 0.1))
    same = stats.difference([2.0] * 3, [2.0] * 3, paired=True, sampling=0.1)
    assert (same.low, same.high, same.p) == pytest.approx((-0.196, 0.196, 1.0), abs=1e-4)


@pytest.mark.parametrize("of_runs", [0.0, 0.05])
def test_intervals_of_sampled_values_contain_the_truth(of_runs: float) -> None:
    """2000 comparisons of two equal sides, 3 runs each, whose spread is sampling, or half of it."""
    sampling = 0.05
    draws = np.random.default_rng(11).normal(0.0, math.hypot(sampling, of_runs), (2000, 2, 3))
    of_means = sampling * math.sqrt(2 / 3)
    estimates = [stats.difference(x, y, paired=False, sampling=of_means) for x, y in draws]
    inside = np.mean([each.low is not None and each.low <= 0 <= (each.high or 0.0) for each in estimates])
    assert 0.95 <= inside < 0.99
    rejected = np.mean([each.p is not None and each.p < 0.05 for each in estimates])
    assert rejected == pytest.approx(1 - inside)


def test_benjamini_hochberg_is_scipys() -> None:
    p = np.random.default_rng(3).beta(0.4, 2.0, 60)
    expected = scipy.stats.false_discovery_control(p) <= 0.05
    assert stats.benjamini_hochberg(p.tolist()) == expected.tolist()
    assert 0 < sum(expected) < 60
    assert stats.benjamini_hochberg([]) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4166, "0.417"),
        (2.789, "2.79"),
        (39.23, "39.2"),
        (835.79, "836"),
        (1234.5, "1,234"),
        (0.00123, "0.00123"),
    ],
)
def test_ratios_have_three_digits(value: float, text: str) -> None:
    assert numbers.ratio(value) == text


@pytest.mark.parametrize(
    ("values", "places"),
    [([66.83, 97.81], 1), ([36.51, 0.04], 3), ([2535380.0, 14289.0], 0), ([0.0], 0), ([1.5, 0.2], 2)],
)
def test_decimals_fit_the_row(values: list[float], places: int) -> None:
    assert numbers.decimals(values) == places
