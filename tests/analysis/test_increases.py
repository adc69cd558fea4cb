"""Increases of counters and of cumulative buckets, and quantiles against the values themselves."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadprint.reading import counters
from loadprint.reading.counters import Increase
from loadprint.reading.histograms import bounds, increase
from loadprint.reading.run_documents import ColumnMeaning, TableMeaning
from reads import known

# as in docs/recording-format.md: 0 to 15 one by one, then eight for each power of two
EDGES = [*range(16), *(low << shift for shift in range(1, 34) for low in range(8, 16))]
BOUNDS = np.array([*EDGES, math.inf])
NOTHING = np.zeros(len(EDGES), dtype=np.uint64)


def counted(values: np.ndarray) -> np.ndarray:
    places = np.searchsorted(np.array(EDGES), values, side="right") - 1
    return np.bincount(places, minlength=len(EDGES)).astype(np.uint64)


TOP = 2**32


@pytest.mark.parametrize(
    ("readings", "size", "risen"),
    [
        ((5, 7, 7, 20), None, Increase(15)),
        # wraps, before a restart to the same value
        ((TOP - 10, TOP - 1, 4, 9), TOP, Increase(19, wraps=1)),
        ((TOP - 10, TOP - 1, 4, 9), None, Increase(19, wraps=1)),
        # 2^12 below the top: a float near 2^64 has steps of 2^11
        ((2**64 - 2**13, 2**64 - 2**12, 1000, 1500), None, Increase(2**13 + 1500, wraps=1)),
        ((7 * TOP + 100, 6 * TOP + 1100, 6 * TOP + 1200), TOP, Increase(1100, wraps=1)),  # a sum of counters
        ((TOP // 2, TOP // 2 + 5, 50), TOP, Increase(55, restarts=1)),  # too far from the end for a wrap
        ((900.0, 20.0), 1000, Increase(120, wraps=1)),
        # restarts, before a step back
        ((1000, 1010, 3, 8), None, Increase(10 + 3 + 5, restarts=1)),
        ((100, math.nan, 130, math.nan, 13, 18), None, Increase(30 + 13 + 5, restarts=1)),
        ((5, 7, 0, 0), None, Increase(2, restarts=1)),
        # steps back: what was lost is not counted twice
        ((100, 110, 108, 120), None, Increase(20, steps_back=1)),
        ((100, 110, 108, 109, 107, 111), None, Increase(11, steps_back=2)),
        ((100, 110, 108, math.nan, 109), None, Increase(10, steps_back=1)),
        ((200_000, 199_000, 199_500), None, Increase(0, steps_back=1)),
        # any other fall
        ((200_000, 198_999, 199_500), None, None),
        ((20_000, 19_700, 25_000), None, None),
        ((TOP - 1, TOP - 5000, TOP), TOP, None),
        ((7 * TOP + 100, 6 * TOP + 1100), None, None),
        ((2**63, 2**63 + 2**40, 2**62), None, None),
        # not two readings without a restart between
        ((300, 5), None, None),
        ((math.nan, math.nan), None, None),
        ((math.nan, 5), None, None),
    ],
)
def test_a_counter_that_falls(
    readings: tuple[float, ...], size: float | None, risen: Increase | None
) -> None:
    assert counters.increase(np.array(readings, float), size) == risen


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=20))
def test_an_increase_is_never_more_than_all_that_was_counted(values: list[int]) -> None:
    """Whatever a counter does, its rises and what it has after each restart bound the increase."""
    risen = counters.increase(np.array(values, float), 2.0**64)
    most = sum(max(after - before, 0) for before, after in pairwise(values))
    most += sum(after for before, after in pairwise(values) if after < before)
    assert risen is None or 0 <= risen.amount <= most


@given(
    st.lists(st.integers(0, 2**40), min_size=6, max_size=20),
    st.lists(st.integers(0, 3), min_size=6, max_size=20),
)
def test_segments_are_counted_alone(values: list[int], of: list[int]) -> None:
    readings, segment = np.array(values, float)[: len(of)], np.sort(of)[: len(values)]
    whole = counters.increase(readings, None, segment)
    parts = [
        counters.increase(readings[segment == number]) for number in set(of) if (segment == number).sum() > 1
    ]
    assert whole is None or whole.amount == pytest.approx(sum(part.amount for part in parts if part))
    for place, amount in zip(whole.first, whole.by_segment, strict=True) if whole else ():
        part = known(counters.increase(readings[segment == segment[place]]))
        assert math.isnan(amount) if part.restarts else amount == part.amount


def test_a_fall_between_segments_is_none() -> None:
    readings, of = np.array([10.0, 20, 5, 8, 2**40, 2**40 + 1]), np.array([0, 0, 1, 1, 2, 2])
    assert counters.increase(readings, None, of) == Increase(10 + 3 + 1)


def test_what_is_not_known_of_a_thread_is_its_successors() -> None:
    readings = np.array([20_000.0, 19_700, 25_000, 4_000, 3_998])
    assert counters.increase(readings) is None
    assert known(counters.increase(readings, succeeded=True)).amount == 19_700 + 5_300 + 4_000
    assert counters.increase(readings[:2], succeeded=True) == Increase(19_700, restarts=1)


def test_intervals_without_an_increase() -> None:
    rises = counters.steps(np.array([100.0, np.nan, 130.0, 12.0, 112.0, 60.0]))
    assert np.isnan(rises.amounts[[0, 1, 4]]).all()
    assert rises.amounts[[2, 3]].tolist() == [12, 100]
    assert (rises.restarted.tolist(), rises.unknown.tolist()) == (
        [False, False, True, False, False],
        [False, False, False, False, True],
    )


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
    described = TableMeaning(columns={"buckets": ColumnMeaning(bounds=(0, 1, None))})
    assert bounds(described).tolist() == [0, 1, math.inf]
    assert len(bounds(TableMeaning())) == 0
