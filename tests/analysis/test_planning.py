"""Bootstrap and planning against arch and SciPy, and plans in a table."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from arch.bootstrap import StationaryBootstrap, optimal_block_length
from loadprint.rendering import render_json
from loadprint.statistics import bootstrap, stats
from loadprint.tables.table import Table
from numpy.typing import NDArray
from reads import known, table_of
from recordings import Host, make_execution

X, Y = [12.1, 12.9, 12.4, 13.3], [11.9, 12.6, 12.5, 12.8]


def autoregressive(samples: int, autocorrelation: float, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    series = random.normal(0, 1, samples)
    for i in range(1, samples):
        series[i] += autocorrelation * series[i - 1]
    return 100 + series


@pytest.mark.parametrize("autocorrelation", [0.0, 0.5, 0.8, -0.4])
@pytest.mark.parametrize("samples", [15, 60, 200, 600])
def test_the_block_length_is_archs(samples: int, autocorrelation: float) -> None:
    series = autoregressive(samples, autocorrelation, seed=samples)
    expected = max(1.0, float(optimal_block_length(series)["stationary"].iloc[0]))
    assert bootstrap.block_length(series) == pytest.approx(expected)


def test_the_spread_is_the_closed_form_of_politis_and_romano() -> None:
    series = autoregressive(120, 0.6, seed=9)
    n, p, centred = 120, 1 / 7.0, series - series.mean()
    circular = [float((centred * np.roll(centred, lag)).mean()) for lag in range(n)]
    variance = circular[0] + 2 * sum((1 - i / n) * (1 - p) ** i * circular[i] for i in range(1, n))
    result = bootstrap.stationary_means(series, 1 / p, 20_000, np.random.default_rng(4))
    assert result.var() == pytest.approx(variance / n, rel=0.05)


def test_noise_is_of_the_size_that_white_noise_has_and_grows_with_memory() -> None:
    white, slow = (autoregressive(600, autocorrelation, seed=5) for autocorrelation in (0.0, 0.8))
    noise, slower = known(bootstrap.bootstrap_noise(white)), known(bootstrap.bootstrap_noise(slow))
    assert noise == pytest.approx(1.96 * 0.01 / math.sqrt(600), rel=0.2)
    assert slower > 2.5 * noise
    assert noise == bootstrap.bootstrap_noise(white)  # the seed is fixed


def test_long_series_are_averaged_and_as_noisy() -> None:
    series = autoregressive(3600, 0.5, seed=6)
    noise = known(bootstrap.bootstrap_noise(series))
    expected = 1.96 * StationaryBootstrap(16, series, seed=2).apply(np.mean, 1000).std() / 100
    assert noise == pytest.approx(expected, rel=0.2)


def test_too_short_or_zero_series_have_no_noise() -> None:
    assert bootstrap.bootstrap_noise(np.ones(9)) is None
    assert bootstrap.bootstrap_noise(np.zeros(60)) is None
    assert bootstrap.block_length(np.full(60, 5.0)) == 1.0


@pytest.mark.parametrize("paired", [True, False])
def test_the_planned_repeats_decide(paired: bool) -> None:
    """As many runs more, of the same mean and spread, make the interval exclude 1; one less does not."""
    more = known(stats.repeats_to_decide(X, Y, paired=paired))
    assert more > 0
    centre = float(np.mean(np.log(X)) - np.mean(np.log(Y)))
    spread = np.var(np.log(X) - np.log(Y), ddof=1)
    variance = spread if paired else np.var(np.log(X), ddof=1) + np.var(np.log(Y), ddof=1)
    for repeats, told in ((len(X) + more, True), (len(X) + more - 1, False)):
        freedom = repeats - 1 if paired else 2 * repeats - 2
        half = scipy.stats.t.ppf(0.975, freedom) * math.sqrt(variance / repeats)
        assert (half < centre) == told


def test_a_decided_comparison_needs_none_and_an_equal_one_never_ends() -> None:
    assert stats.repeats_to_decide(X, [x / 2 for x in X], paired=True) == 0
    assert stats.repeats_to_decide([1.0, 1.1, 0.9], [1.0, 1.1, 0.9], paired=False) is None
    assert stats.repeats_to_decide([1.0], [2.0], paired=False) is None
    assert stats.repeats_to_decide([1.0, 0.0], [2.0, 1.0], paired=False) is None


def test_what_a_number_of_repeats_would_tell() -> None:
    """The inverse of planning: the planned repeats just detect the observed difference."""
    more = known(stats.repeats_to_decide(X, Y, paired=False))
    seen = math.exp(float(np.mean(np.log(X)) - np.mean(np.log(Y)))) - 1
    enough = stats.detectable_difference(X, Y, len(X) + more, paired=False)
    fewer = stats.detectable_difference(X, Y, len(X) + more - 1, paired=False)
    assert enough is not None
    assert fewer is not None
    assert enough < seen <= fewer


def compared(path: Path, a: list[int], b: list[int]) -> Table:
    """Two sides whose repeats reach the given operations a second."""
    sides = {name: [Host(events=events) for events in reached] for name, reached in (("a", a), ("b", b))}
    return table_of(make_execution(path, sides, "a"))


def test_an_undecided_ratio_says_how_many_more_repeats(tmp_path: Path) -> None:
    a, b = [100, 104, 97], [103, 101, 106]
    table = compared(tmp_path / "x", a, b)
    (plan,) = table.plans
    assert plan.row == "operations"
    assert plan.more == stats.repeats_to_decide(b, a, paired=True)
    ratio = stats.ratio(b, a, paired=True).centre
    assert plan.apart == pytest.approx(ratio - 1)
    assert any(line.startswith(f"b: {plan.more} more repeats per side would detect") for line in table.method)
    assert json.loads(render_json.render(table))["plans"][0]["more"] == plan.more


def test_one_repeat_can_only_hope(tmp_path: Path) -> None:
    """By what the seconds show two more repeats are the least: runs differ by more than that."""
    table = compared(tmp_path / "x", [100], [103])
    (plan,) = table.plans
    assert (plan.more, plan.basis) == (2, "within runs")
    assert any("at best" in line for line in table.method)
    assert 0 < plan.apart < 0.1


def test_a_series_too_short_has_neither_noise_nor_drift(tmp_path: Path) -> None:
    sides = {name: [Host(seconds=5, events=100 + k) for k in (0, 1, 2)] for name in ("a", "b")}
    table = table_of(make_execution(tmp_path / "x", sides, "a"))
    assert [(head.noise, head.drift) for head in table.sides] == [(None, None)] * 2
    assert not {"noise", "drift"} & dict(table.facts).keys()
