"""How numbers are written: enough digits, not too many, one minus sign."""

from __future__ import annotations

import pytest
from loadprint import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.00"), (0.9999, "1.00"), (0.9994, "0.999"), (9.999, "10.0"), (99.96, "100"), (0.0231, "0.0231")],
)
def test_a_ratio_has_the_digits_of_what_it_is_written_as(value: float, text: str) -> None:
    assert numbers.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.00006, 4, "6.0e-5"),
        (0.00014, 4, "1.4e-4"),
        (0.00094, 4, "9.4e-4"),
        (0.00097, 4, "0.0010"),
        (0.0024, 4, "0.0024"),
        (0.1, 1, "0.1"),
        (0.0, 4, "0"),
    ],
)
def test_no_value_is_written_with_a_single_digit_where_decimals_end(
    value: float, places: int, text: str
) -> None:
    assert numbers.number(value, places) == text
    if value:
        assert numbers.signed(-value, 1.0, places) == f"\u2212{text}"


def test_a_change_has_its_sign_and_no_minus_of_its_own_when_nothing_is_left() -> None:
    assert numbers.change(-0.113, 0) == "\u221211 %"
    assert numbers.change(0.0042, 2) == "+0.42 %"
    assert numbers.change(-0.0001, 1, "") == "+0.0"
