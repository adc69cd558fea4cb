"""Error rates of intervals, verdicts and refusals on simulated data.

Seeds are fixed. With any other seed a test would fail in fewer than 1 of 10,000 cases: a share of 5 % in 4000
trials has a standard error of 0.34 points. `simulations/coverage.py` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from loadprint.statistics.trend import trend
from simulations import runs, series

pytestmark = pytest.mark.slow


def refused(made: series.Floats) -> float:
    """Share of series (trials, seconds), or of sides (trials, repeats, seconds), that count as unsettled."""
    trends = [trend(each) for each in made]
    return float(np.mean([each is not None and each.drifts for each in trends]))


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("repeats", "trials"), [(3, 24_000), (5, 6000), (10, 6000)])
def test_intervals_hold_the_true_ratio(
    random: np.random.Generator, repeats: int, trials: int, paired: bool
) -> None:
    """Welch's interval of three repeats covers 96.5 %, so that the upper bound needs more trials."""
    truth = runs.Truth(repeats, ratio=1.1, run=0.03, block=0.05 if paired else 0.0, seconds=15)
    held, _ = runs.coverage(random, trials, truth, paired=paired)
    assert 0.93 <= held <= 0.97


def test_alarms_of_an_a_a_come_at_the_nominal_rate(random: np.random.Generator) -> None:
    """5 % of headline rows, and 5 % of comparisons with any mark among the other 52 rows, or fewer."""
    verdicts, marked = runs.alarms(random, 400, rows=60, headlines=8, repeats=3)
    assert 0.015 <= verdicts <= 0.075
    assert marked <= 0.095


@pytest.mark.parametrize("autocorrelation", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("seconds", [60, 120, 600])
def test_steady_series_are_not_refused(
    random: np.random.Generator, seconds: int, autocorrelation: float
) -> None:
    """As noisy as can be: 10 %, so that the limit of 5 % alone lets nothing pass."""
    assert refused(series.stationary(random, 1500, seconds, 0.1, autocorrelation)) <= 0.05 + 0.022


@pytest.mark.parametrize("autocorrelation", [0.0, 0.8])
def test_steady_sides_are_not_refused(random: np.random.Generator, autocorrelation: float) -> None:
    made = series.stationary(random, 1500 * 3, 60, 0.15, autocorrelation)
    assert refused(made.reshape(1500, 3, 60)) <= 0.05 + 0.022


@pytest.mark.parametrize("height", [0.1, 0.3])
@pytest.mark.parametrize("cycles", [2.5, 3, 6])
@pytest.mark.parametrize("seconds", [60, 300])
def test_checkpoint_cycles_are_not_refused(
    random: np.random.Generator, seconds: int, cycles: float, height: float
) -> None:
    assert refused(series.sawtooth(random, 300, seconds, cycles, height)) <= 0.05


@pytest.mark.parametrize("repeats", [3, 10])
@pytest.mark.parametrize("seconds", [30, 60])
def test_cycles_that_all_repeats_have_in_common_are_not_refused(
    random: np.random.Generator, seconds: int, repeats: int
) -> None:
    """Every repeat begins from the same state: more of them must not make a drift of a cycle."""
    assert refused(series.cycles_in_step(random, repeats, seconds, 3, 0.3)) <= 0.05


@pytest.mark.parametrize("seconds", [60, 300, 600])
def test_bursts_are_not_refused(random: np.random.Generator, seconds: int) -> None:
    assert refused(series.bursty(random, 600, seconds)) <= 0.05


@pytest.mark.parametrize(
    ("seconds", "spread", "autocorrelation"),
    [
        (60, 0.02, 0.5),
        (120, 0.03, 0.5),
        (300, 0.02, 0.8),
        (600, 0.03, 0.8),
        (600, 0.05, 0.5),
        (30, 0.02, 0.0),
    ],
)
def test_a_drift_of_ten_percent_is_refused(
    random: np.random.Generator, seconds: int, spread: float, autocorrelation: float
) -> None:
    assert refused(series.linear(random, 500, seconds, 0.1, spread, autocorrelation)) >= 0.95


@pytest.mark.parametrize("decay", [0.1, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("seconds", [120, 300, 600])
@pytest.mark.parametrize("depth", [0.2, 0.5])
def test_a_warm_up_is_refused(random: np.random.Generator, seconds: int, depth: float, decay: float) -> None:
    assert refused(series.ramp(random, 300, seconds, depth, decay, 0.02)) >= 0.95


def test_repeats_together_see_what_one_cannot(random: np.random.Generator) -> None:
    """A minute with 3 % of slow noise hides a drift of ten percent in two of three runs; five do not."""
    one = series.linear(random, 5 * 300, 60, 0.1, 0.03, 0.7)
    one = one[np.argsort(np.arange(1500) % 2, kind="stable")]  # those that rise, those that fall
    assert refused(one) < 0.75
    assert refused(one.reshape(300, 5, 60)) >= 0.9
