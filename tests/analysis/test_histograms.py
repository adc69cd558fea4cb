"""Quantiles from cumulative buckets, against the values themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loadprint.reading.histograms import bounds, increase

# as in docs/recording-format.md: 0 to 15 one by one, then eight for each power of two
EDGES = [*range(16), *(low << shift for shift in range(1, 34) for low in range(8, 16))]
BOUNDS = np.array([*EDGES, math.inf])
NOTHING = np.zeros(len(EDGES), dtype=np.uint64)


def counted(values: np.ndarray) -> np.ndarray:
    places = np.searchsorted(np.array(EDGES), values, side="right") - 1
    return np.bincount(places, minlength=len(EDGES)).astype(np.uint64)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 0.99, 0.999, 1.0])
def test_a_quantile_is_within_half_a_bucket_of_the_value(share: float) -> None:
    values = np.sort(np.random.default_rng(7).lognormal(11, 2, 20_000).astype(np.int64))
    result = increase([NOTHING, counted(values)], BOUNDS)
    assert result is not None
    assert result.total == len(values)
    truth = values[math.ceil(share * len(values)) - 1]
    assert result.quantile(share) == pytest.approx(truth, rel=0.0625)


def test_only_what_came_between_counts() -> None:
    before, after = np.array([5, 5000, 9000]), np.array([5, 5000, 9000, 70, 70, 80])
    result = increase([counted(before), counted(after)], BOUNDS)
    assert result is not None
    assert result.total == 3
    assert result.quantile(0.5) == pytest.approx(70, rel=0.0625)


def test_small_values_are_exact_and_the_last_bucket_gives_its_lower_bound() -> None:
    result = increase([NOTHING, counted(np.array([3, 3, 1 << 40]))], BOUNDS)
    assert result is not None
    assert result.quantile(0.5) == 3
    assert result.quantile(1.0) == EDGES[-1]


def test_nothing_counted_and_counts_that_fell() -> None:
    empty = increase([NOTHING, NOTHING], BOUNDS)
    assert empty is not None
    assert math.isnan(empty.quantile(0.5))
    assert increase([counted(np.array([1, 1])), counted(np.array([1]))], BOUNDS) is None
    assert increase([[0, 0], [1, 2]], BOUNDS) is None


def test_after_a_reset_all_buckets_count_from_zero() -> None:
    """The second reading is of a source that restarted, although only one bucket fell."""
    readings = [counted(np.array(values)) for values in ([1, 1, 9], [1, 9, 9, 9], [1, 9, 9, 9, 9])]
    result = increase(readings, BOUNDS)
    assert result is not None
    assert (result.total, result.counts[1], result.counts[9]) == (5, 1, 4)


def test_bounds_are_read_from_the_metadata() -> None:
    described = {"columns": {"buckets": {"bounds": [0, 1, None]}}}
    assert bounds(described, "buckets").tolist() == [0, 1, math.inf]
    assert len(bounds({}, "buckets")) == 0
