"""Quantiles from cumulative buckets, against the values themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loadprint.reading.histograms import bounds, difference

# as in docs/recording-format.md: 0 to 15 one by one, then eight for each power of two
EDGES = [*range(16), *(low << shift for shift in range(1, 34) for low in range(8, 16))]
BOUNDS = np.array([*EDGES, math.inf])


def counted(values: np.ndarray) -> np.ndarray:
    places = np.searchsorted(np.array(EDGES), values, side="right") - 1
    return np.bincount(places, minlength=len(EDGES)).astype(np.uint64)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 0.99, 0.999, 1.0])
def test_a_quantile_is_within_half_a_bucket_of_the_value(share: float) -> None:
    values = np.sort(np.random.default_rng(7).lognormal(11, 2, 20_000).astype(np.int64))
    result = difference(counted(values), None, BOUNDS)
    assert result is not None
    assert result.total == len(values)
    truth = values[math.ceil(share * len(values)) - 1]
    assert result.quantile(share) == pytest.approx(truth, rel=0.0625)


def test_only_what_came_between_counts() -> None:
    before, after = np.array([5, 5000, 9000]), np.array([5, 5000, 9000, 70, 70, 80])
    result = difference(counted(after), counted(before), BOUNDS)
    assert result is not None
    assert result.total == 3
    assert result.quantile(0.5) == pytest.approx(70, rel=0.0625)


def test_small_values_are_exact_and_the_last_bucket_gives_its_lower_bound() -> None:
    result = difference(counted(np.array([3, 3, 1 << 40])), None, BOUNDS)
    assert result is not None
    assert result.quantile(0.5) == 3
    assert result.quantile(1.0) == EDGES[-1]


def test_nothing_counted_and_counts_that_fell() -> None:
    empty = difference(counted(np.array([], dtype=np.int64)), None, BOUNDS)
    assert empty is not None
    assert math.isnan(empty.quantile(0.5))
    assert difference(counted(np.array([1])), counted(np.array([1, 1])), BOUNDS) is None
    assert difference([1, 2], None, BOUNDS) is None


def test_bounds_are_read_from_the_metadata() -> None:
    described = {"columns": {"buckets": {"bounds": [0, 1, None]}}}
    assert bounds(described, "buckets").tolist() == [0, 1, math.inf]
    assert len(bounds({}, "buckets")) == 0
