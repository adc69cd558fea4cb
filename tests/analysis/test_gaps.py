"""Statistics of any series: no exception, no warning, and the same result in every unit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import astuple

import numpy as np
import pytest
from loadprint.commands.qualify.levels import Levels, levels
from loadprint.series import spikes
from loadprint.series.series import Series
from loadprint.statistics import gaps
from loadprint.statistics.bootstrap import bootstrap_noise
from loadprint.statistics.trend import mser5, trend
from numpy.typing import NDArray

Floats = NDArray[np.float64]
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
        spikes.FLUSHED: Series("f", "f", "1", middle, burst),
        spikes.AGE: Series("a", "a", "1", middle, np.full(n, 9.0)),
        spikes.CAPACITY: Series("c", "c", "1", middle, np.full(n, 10.0)),
        spikes.EVENTS: Series("e", "e", "1", middle, series, np.full(n, 0.5)),
    }
    return [
        bootstrap_noise(series, draws=50),
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
    for each in result:
        if isinstance(each, int | float):
            flat.append(float(each))
        elif isinstance(each, tuple | list):
            flat += numbers(list(each))
        elif each is not None and not isinstance(each, str):
            flat += numbers(list(astuple(each)))  # type: ignore[call-overload]
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
        if isinstance(one, Levels):
            assert isinstance(two, Levels)
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
    whole, some = trend(series), trend(holed)
    assert whole is not None
    assert some is not None
    assert some.slope == pytest.approx(whole.slope, abs=0.01)
    assert some.drifts
    plain, noise = bootstrap_noise(series), bootstrap_noise(holed)
    assert plain is not None
    assert noise is not None
    assert noise.samples == 188
    assert noise.share == pytest.approx(plain.share, rel=0.3)


def test_a_series_that_is_mostly_gaps_has_no_order_in_time() -> None:
    series = np.where(np.arange(300) % 5 == 0, np.nan, 1000.0)
    assert gaps.filled(series) is None
    assert trend(series) is None
    assert mser5(series) is None
    assert levels(series, 30) is None


def test_levels_of_reports_every_ten_seconds_are_in_seconds() -> None:
    series = np.concatenate((np.full(40, 900.0), np.full(60, 500.0)))
    series[3] = np.nan
    result = levels(series, 30, step_s=10.0)
    assert result is not None
    assert (result.burst, result.burst_s) == (900.0, 30)
    assert (result.sustained, result.sustained_from) == (500.0, 400)
    assert [step.second for step in result.steps] == [400]
