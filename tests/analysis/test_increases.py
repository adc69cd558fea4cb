"""Increases of counters and of cumulative buckets, and quantiles against the values themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loadprint.reading import counters
from loadprint.reading.histograms import bounds, increase
from reads import known

# as in docs/recording-format.md: 0 to 15 one by one, then eight for each power of two
EDGES = [*range(16), *(low << shift for shift in range(1, 34) for low in range(8, 16))]
BOUNDS = np.array([*EDGES, math.inf])
NOTHING = np.zeros(len(EDGES), dtype=np.uint64)


def counted(values: np.ndarray) -> np.ndarray:
    places = np.searchsorted(np.array(EDGES), values, side="right") - 1
    return np.bincount(places, minlength=len(EDGES)).astype(np.uint64)


@pytest.mark.parametrize(
    ("readings", "amount", "wraps", "resets"),
    [
        ((5, 7, 7, 20), 15, 0, 0),
        ((2**32 - 10, 2**32 - 1, 4, 9), 19, 1, 0),
        # 2^12 below the top: a float near 2^64 has steps of 2^11
        ((2**64 - 2**13, 2**64 - 2**12, 1000, 1500), 2**13 + 1500, 1, 0),
        ((2**63, 2**63 + 2**40, 2**62), 2**40 + 2**62, 0, 1),
        ((1000, 1010, 3, 8), 10 + 3 + 5, 0, 1),
        ((100, math.nan, 130, math.nan, 20, 25), 30 + 20 + 5, 0, 1),
    ],
)
def test_a_counter_that_decreases_wrapped_or_was_reset(
    readings: tuple[float, ...], amount: float, wraps: int, resets: int
) -> None:
    assert counters.increase(np.array(readings, float)) == counters.Increase(amount, wraps, resets)


def test_a_counter_of_a_known_size_wraps_above_half_of_it() -> None:
    assert counters.increase(np.array([900.0, 50.0]), wraps=(1000.0,)) == counters.Increase(150.0, 1, 0)
    reset = np.array([280.0, 300.0, 50.0])
    assert counters.increase(reset, wraps=(1000.0,)) == counters.Increase(70.0, 0, 1)


def test_counters_that_may_decrease_and_that_have_no_increase() -> None:
    stored = np.array([100.0, 110.0, 108.0, 120.0])
    assert counters.increase(stored, may_step_back=True) == counters.Increase(20.0)
    assert counters.increase(np.array([math.nan, math.nan])) is None
    assert counters.increase(np.array([300.0, 50.0])) is None
    each = counters.steps(np.array([100.0, np.nan, 130.0, 20.0]))
    assert np.isnan(each.amounts[:2]).all()
    assert (each.amounts[2], each.reset[2]) == (20, True)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 0.99, 0.999, 1.0])
def test_a_quantile_is_within_half_a_bucket_of_the_value(share: float) -> None:
    values = np.sort(np.random.default_rng(7).lognormal(11, 2, 20_000).astype(np.int64))
    result = known(increase([NOTHING, counted(values)], BOUNDS))
    assert result.total == len(values)
    truth = values[math.ceil(share * len(values)) - 1]
    assert result.quantile(share) == pytest.approx(truth, rel=0.0625)


def test_only_what_came_between_counts() -> None:
    before, after = np.array([5, 5000, 9000]), np.array([5, 5000, 9000, 70, 70, 80])
    result = known(increase([counted(before), counted(after)], BOUNDS))
    assert result.total == 3
    assert result.quantile(0.5) == pytest.approx(70, rel=0.0625)


def test_small_values_are_exact_and_the_last_bucket_gives_its_lower_bound() -> None:
    result = known(increase([NOTHING, counted(np.array([3, 3, 1 << 40]))], BOUNDS))
    assert result.quantile(0.5) == 3
    assert result.quantile(1.0) == EDGES[-1]


def test_nothing_counted_and_counts_that_fell() -> None:
    assert math.isnan(known(increase([NOTHING, NOTHING], BOUNDS)).quantile(0.5))
    assert increase([counted(np.array([1, 1])), counted(np.array([1]))], BOUNDS) is None
    assert increase([[0, 0], [1, 2]], BOUNDS) is None


def test_after_a_reset_all_buckets_count_from_zero() -> None:
    """The second reading is of a source that restarted, although only one bucket fell."""
    readings = [counted(np.array(values)) for values in ([1, 1, 9], [1, 9, 9, 9], [1, 9, 9, 9, 9])]
    result = known(increase(readings, BOUNDS))
    assert (result.total, result.counts[1], result.counts[9]) == (5, 1, 4)


def test_bounds_are_read_from_the_metadata() -> None:
    described = {"columns": {"buckets": {"bounds": [0, 1, None]}}}
    assert bounds(described, "buckets").tolist() == [0, 1, math.inf]
    assert len(bounds({}, "buckets")) == 0
