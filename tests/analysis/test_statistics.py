"""Statistics against SciPy and arch, of any series in every unit, and what the rows of a table show."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from arch.bootstrap import optimal_block_length
from loadprint.commands.qualify.levels import BurstLevels, levels
from loadprint.reading.time_series import Series
from loadprint.rendering import render_json, render_text
from loadprint.series import spikes
from loadprint.statistics import gaps, stats
from loadprint.statistics.block_length import block_length
from loadprint.statistics.trend import mser5, trend
from loadprint.tables.table import DIFFERENT, Table
from loadprint.tables.tally import tallies
from loadprint.tables.views import first
from reads import compared, known
from recordings import Host
from simulations.series import Floats, stationary

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
    assert known(alike.p) > 0.05
    apart = stats.ratio([86.0] * 3, [38.9] * 3, paired=True, rounding=0.0625)
    assert known(apart.low) > 1
    assert 0 < known(apart.p) < 0.05
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
    inside = np.mean(
        [estimate.low is not None and estimate.low <= 0 <= (estimate.high or 0.0) for estimate in estimates]
    )
    assert 0.95 <= inside < 0.99
    rejected = np.mean([estimate.p is not None and estimate.p < 0.05 for estimate in estimates])
    assert rejected == pytest.approx(1 - inside)


def test_benjamini_hochberg_is_scipys() -> None:
    p = np.random.default_rng(3).beta(0.4, 2.0, 60)
    expected = scipy.stats.false_discovery_control(p) <= 0.05
    assert stats.benjamini_hochberg(p.tolist()) == expected.tolist()
    assert 0 < sum(expected) < 60
    assert stats.benjamini_hochberg([]) == []


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
    result, line = known(trend(series)), scipy.stats.linregress(np.arange(119), series)
    plain = 2.3 * line.stderr * 119 / series.mean()
    assert plain < (result.slope_high - result.slope_low) / 2 < 1.5 * plain


def test_long_series_are_averaged_first() -> None:
    series = 1000 + 0.05 * np.arange(3600) + np.random.default_rng(5).normal(0, 100, 3600)
    result = known(trend(series))
    assert result.samples == 3600
    assert result.slope == pytest.approx(180 / series.mean(), rel=0.15)


def test_a_series_without_noise_drifts_or_does_not() -> None:
    flat, line = known(trend(np.full(60, 250.0))), known(trend(np.linspace(90, 110, 60)))
    assert (flat.slope, flat.slope_low, flat.slope_high, flat.drifts) == (0.0, 0.0, 0.0, False)
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


LENGTHS = (0, 1, 2, 9, 10, 11, 31, 60, 250, 700)


def odd(random: np.random.Generator, n: int) -> Iterator[Floats]:
    """Series of `n` samples with every kind of value."""
    base = random.normal(1000, 100, n)
    yield from (np.full(n, value) for value in (0.0, 1.0, 0.1, 1e308, 5e-324, np.nan, np.inf, -np.inf))
    yield from (base * unit for unit in (1.0, 1e-90, 1e-300, 1e305))
    yield 500 + base * 1e-13
    for share in (0.02, 0.3, 0.9):
        yield np.where(random.random(n) < share, np.nan, base)
        yield np.where(random.random(n) < share, np.inf, base)
        yield np.where(random.random(n) < share, 1e308, base)
        yield np.where(random.random(n) < share, 0.0, base * 1e-90)


def results(series: Floats) -> list[object]:
    """All that is worked out of one series."""
    middle, n = np.arange(0.5, len(series), dtype=np.float64), len(series)
    burst = np.where((middle > 10) & (middle < 16), 5000.0, 100.0)
    keys = {
        spikes.FLUSHED: Series(middle, burst, 0.0, middle),
        spikes.AGE: Series(middle, np.full(n, 9.0), 0.0, middle),
        spikes.CAPACITY: Series(middle, np.full(n, 10.0), 0.0, middle),
        spikes.EVENTS: Series(middle, series, np.full(n, 0.5), middle),
    }
    return [
        trend(series),
        trend(np.array([series, series])),
        mser5(series),
        levels(series, 30),
        levels(series, 30, step_s=10.0),
        *spikes.find(keys),
    ]


def numbers(result: list[object]) -> list[float]:
    """Every number of some results."""
    flat: list[float] = []
    for row in result:
        if isinstance(row, int | float):
            flat.append(float(row))
        elif isinstance(row, tuple | list):
            flat += numbers(list(row))
        elif row is not None and not isinstance(row, str):
            flat += numbers(list(astuple(row)))  # type: ignore[call-overload]
    return flat


@pytest.mark.parametrize("n", LENGTHS)
def test_nothing_in_a_series_is_an_error(n: int) -> None:
    random = np.random.default_rng(41)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for series in odd(random, n):
            result = numbers(results(series))
            assert all(math.isfinite(value) for value in result), (series[:5], result)


@pytest.mark.parametrize("unit", [1e-300, 1e-90, 1e3, 1e300])
def test_the_unit_changes_nothing_but_levels(unit: float) -> None:
    series = np.random.default_rng(42).normal(1000, 100, 300) * np.where(np.arange(300) < 150, 1.0, 0.6)
    series[[7, 40]] = np.nan
    for one, two in zip(results(series), results(series * unit), strict=True):
        if isinstance(one, BurstLevels):
            assert isinstance(two, BurstLevels)
            assert [two.burst, two.sustained] == pytest.approx([one.burst * unit, one.sustained * unit])
            assert [step.after for step in two.steps] == pytest.approx(
                [step.after * unit for step in one.steps]
            )
            assert two.sustained_from == one.sustained_from
        else:
            assert numbers([two]) == pytest.approx(numbers([one]), rel=1e-6, abs=1e-9)


def test_a_few_gaps_change_little() -> None:
    random = np.random.default_rng(43)
    series = 1000 + 2.0 * np.arange(200) + random.normal(0, 20, 200)
    holed = series.copy()
    holed[random.choice(200, 12, replace=False)] = np.nan
    whole, some = known(trend(series)), known(trend(holed))
    assert some.slope == pytest.approx(whole.slope, abs=0.01)
    assert some.drifts


def test_a_series_that_is_mostly_gaps_has_no_order_in_time() -> None:
    series = np.where(np.arange(300) % 5 == 0, np.nan, 1000.0)
    assert gaps.filled(series) is None
    assert trend(series) is None
    assert mser5(series) is None
    assert levels(series, 30) is None


def test_levels_of_reports_every_ten_seconds_are_in_seconds() -> None:
    series = np.concatenate((np.full(40, 900.0), np.full(60, 500.0)))
    series[3] = np.nan
    result = known(levels(series, 30, step_s=10.0))
    assert (result.burst, result.burst_s) == (900.0, 30)
    assert (result.sustained, result.sustained_from) == (500.0, 400)
    assert [step.second for step in result.steps] == [400]


NEAR = [11.9, 12.6, 12.5, 12.8]


@pytest.mark.parametrize("autocorrelation", [0.0, 0.5, 0.8, -0.4])
@pytest.mark.parametrize("samples", [15, 60, 200, 600])
def test_the_block_length_is_archs(samples: int, autocorrelation: float) -> None:
    (series,) = 100 * stationary(np.random.default_rng(samples), 1, samples, 0.01, autocorrelation)
    expected = max(1.0, float(optimal_block_length(series)["stationary"].iloc[0]))
    assert block_length(series) == pytest.approx(expected)
    assert block_length(np.full(samples, 5.0)) == 1.0


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize("paired", [True, False])
def test_the_planned_repeats_decide(paired: bool, level: float) -> None:
    """As many runs more, of the same mean and spread, make the interval exclude 1; one less does not."""
    more = known(stats.repeats_to_decide(X, NEAR, paired=paired, level=level))
    assert more > 0
    centre = float(np.mean(np.log(X)) - np.mean(np.log(NEAR)))
    spread = np.var(np.log(X) - np.log(NEAR), ddof=1)
    variance = spread if paired else np.var(np.log(X), ddof=1) + np.var(np.log(NEAR), ddof=1)
    for repeats, output in ((len(X) + more, True), (len(X) + more - 1, False)):
        freedom = repeats - 1 if paired else 2 * repeats - 2
        half = scipy.stats.t.ppf(0.5 + level / 2, freedom) * math.sqrt(variance / repeats)
        assert (half < centre) == output


def test_a_decided_comparison_needs_none_and_an_equal_one_never_ends() -> None:
    assert stats.repeats_to_decide(X, [x / 2 for x in X], paired=True) == 0
    assert stats.repeats_to_decide([1.0, 1.1, 0.9], [1.0, 1.1, 0.9], paired=False) is None
    assert stats.repeats_to_decide([1.0], [2.0], paired=False) is None
    assert stats.repeats_to_decide([1.0, 0.0], [2.0, 1.0], paired=False) is None


def reaching(path: Path, a: list[int], b: list[int]) -> Table:
    """Two sides whose repeats reach the given operations a second."""
    return compared(path, a=[Host(events=count) for count in a], b=[Host(events=count) for count in b])


def test_what_the_rows_show_is_counted_with_the_repeats_that_would_decide(tmp_path: Path) -> None:
    table = first(reaching(tmp_path / "x", [100, 104, 97], [103, 101, 106]))
    (tally,) = tallies(table)
    rows = [versus for row in table.rows if (versus := row.versus[1]) and versus.mark]
    assert (tally.differ, tally.equivalent, tally.undecided) == tuple(
        sum(versus.mark in marks for versus in rows) for marks in (DIFFERENT, "=", "~")
    )
    # of the throughput the interval of the logs is that of the same spread with more repeats
    x, y = np.log([103, 101, 106]), np.log([100, 104, 97])
    halves = [
        scipy.stats.t.ppf(0.975, 3 + more - 1) * np.std(x - y, ddof=1) / math.sqrt(3 + more)
        for more in range(20)
    ]
    assert tally.more == next(more for more, half in enumerate(halves) if half <= math.log(1.05)) > 0
    assert f"≈ {tally.more} more repeats would show a 5 % difference" in tally.text
    assert tally.text in render_text.render(table)
    assert json.loads(render_json.render(table))["tallies"][0]["more"] == tally.more


def test_rows_without_an_interval_are_not_counted(tmp_path: Path) -> None:
    assert tallies(first(reaching(tmp_path / "x", [100], [103]))) == ()


def test_a_difference_that_would_show_is_reported(tmp_path: Path) -> None:
    """Undecided within 2 %, and known to be below 5 %."""
    (tally,) = tallies(first(reaching(tmp_path / "x", [1000, 1002, 998], [1015, 1017, 1012])))
    assert tally.text.endswith("undecided") or "(a 5 % difference would show)" in tally.text
    assert tally.more == 0


def test_a_series_too_short_has_no_drift(tmp_path: Path) -> None:
    short = [Host(seconds=5, events=100 + k) for k in (0, 1, 2)]
    table = compared(tmp_path / "x", a=short, b=short)
    assert [head.drift for head in table.sides] == [None] * 2
    assert "drift" not in dict(table.facts)
