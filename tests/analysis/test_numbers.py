"""Numbers for people: enough digits, not too many, no exponent, no negative zero."""

from __future__ import annotations

import math

import pytest
from loadprint import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.00"),
        (0.9999, "1.00"),
        (0.9994, "0.999"),
        (9.999, "10.0"),
        (99.96, "100"),
        (0.0231, "0.0231"),
        (0.00123, "0.00123"),
        (39.23, "39.2"),
        (0.00028, "0.00028"),
        (0.000004, "<0.00001"),
        (178_432.0, "178,432"),
        (3e9, ">1,000,000"),
        (math.inf, "inf"),
        (-0.0, "0"),
    ],
)
def test_a_ratio_has_three_significant_digits(value: float, text: str) -> None:
    assert numbers.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.0000061, 4, "<0.00001"),
        (0.00006, 4, "0.000060"),
        (0.00014, 4, "0.00014"),
        (0.00094, 4, "0.00094"),
        (0.00097, 4, "0.0010"),
        (0.0024, 4, "0.0024"),
        (0.1, 1, "0.1"),
        (0.0, 4, "0"),
    ],
)
def test_a_value_that_decimals_would_hide_has_two_digits(value: float, places: int, text: str) -> None:
    assert numbers.number(value, places) == text
    if value:
        assert numbers.signed(-value, 1.0, places) == f"\u2212{text}"


def test_large_values_are_printed_in_full() -> None:
    assert numbers.signed(-258_381.0, 1.0, 0) == "\u2212258,381"
    assert numbers.significant(140.4, 2) == "140"
    assert numbers.percent(1.4) == "140"


def test_zero_has_no_minus_sign() -> None:
    assert numbers.percent(-0.00001) == "0.00"
    assert numbers.signed(-0.0, 1.0, 1) == "+0.0"
    assert numbers.points(-0.01) == "+0.0"


def test_a_change_has_its_sign_and_zero_has_no_minus() -> None:
    assert numbers.change(-0.113, 0) == "\u221211 %"
    assert numbers.change(0.0042, 2) == "+0.42 %"
    assert numbers.change(-0.0001, 1, "") == "+0.0"


@pytest.mark.parametrize(
    ("values", "places"),
    [([66.83, 97.81], 1), ([36.51, 0.04], 3), ([2535380.0, 14289.0], 0), ([0.0], 0), ([1.5, 0.2], 2)],
)
def test_decimals_fit_the_row(values: list[float], places: int) -> None:
    assert numbers.decimals(values) == places
