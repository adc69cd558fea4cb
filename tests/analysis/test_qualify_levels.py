"""Steps down, burst and sustained levels of simulated seconds."""

from __future__ import annotations

import numpy as np
import pytest
from loadprint.commands.qualify.levels import changes, exhaustion, levels
from reads import known
from simulations.series import Floats, Random, stationary

TRIALS = 200


def drawn(random: Random, course: Floats, trials: int = TRIALS) -> Floats:
    """Autocorrelated seconds (trials, seconds) of this course, whose mean is 1000 where it is 1."""
    return 1000 * course * stationary(random, trials, len(course), spread=0.08, autocorrelation=0.6)


def step(at: int, to: float, n: int = 600) -> Floats:
    return np.where(np.arange(n) < at, 1.0, to)


@pytest.mark.parametrize(("at", "to"), [(120, 0.6), (400, 0.8), (300, 0.3)])
def test_used_up_credits_are_found_where_they_ended(at: int, to: float) -> None:
    random = np.random.default_rng(21)
    result = [exhaustion(series) for series in drawn(random, step(at, to))]
    hits = [steps for steps in result if len(steps) == 1 and abs(steps[0].second - at) <= 10]
    assert len(hits) >= 0.95 * TRIALS
    assert np.mean([steps[0].after / steps[0].before for steps in hits]) == pytest.approx(to, rel=0.02)


@pytest.mark.parametrize("shape", ["steady", "sawtooth", "spikes", "recovers", "small step", "warms up"])
def test_nothing_is_called_exhausted_that_is_not(shape: str) -> None:
    random = np.random.default_rng(22)
    n = 600
    t = np.arange(n)
    course = {
        "steady": np.ones(n),
        "sawtooth": 1.2 - 0.4 * (t % 60) / 60,  # a checkpoint a minute
        "spikes": np.where(t % 97 < 8, 0.4, 1.0),
        "recovers": np.where((t > 200) & (t < 320), 0.6, 1.0),
        "small step": np.where(t < 300, 1.0, 0.95),
        "warms up": np.minimum(1.0, 0.7 + t / 400),
    }[shape]
    wrong = sum(bool(exhaustion(series)) for series in drawn(random, course))
    assert wrong <= 0.05 * TRIALS


def test_two_credits_end_at_two_times() -> None:
    random = np.random.default_rng(23)
    (series,) = drawn(random, np.concatenate((step(200, 0.7, 400), np.full(300, 0.4))), 1)
    result = exhaustion(series)
    assert [round(step.second, -1) for step in result] == [200, 400]
    assert known(levels(series, 30)).sustained_from == result[-1].second


def test_an_hour_is_looked_at_in_means() -> None:
    random = np.random.default_rng(24)
    (series,) = drawn(random, step(1800, 0.5, 3600), 1)
    result = exhaustion(series)
    assert len(result) == 1
    assert abs(result[0].second - 1800) <= 12


def test_burst_and_sustained_levels() -> None:
    series = np.concatenate((np.full(90, 900.0), np.full(210, 500.0)))
    result = known(levels(series, 30))
    assert (result.burst, result.burst_s) == (900.0, 30)
    assert (result.sustained, result.sustained_from) == (500.0, 90)
    steady = known(levels(np.arange(40.0), 30))
    assert (steady.sustained_from, steady.sustained, steady.steps) == (20, 29.5, ())
    assert levels(np.ones(9), 30) is None
    assert changes(np.ones(100)) == []
