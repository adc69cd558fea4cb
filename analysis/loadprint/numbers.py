"""How numbers are written: one scale and number of decimals a row, three significant digits."""

from __future__ import annotations

import math
from collections.abc import Iterable

MAX_DECIMALS = 4
SMALL, LARGE = 1e-3, 1e5  # ratios beyond are written with an exponent, and larger differences


def decimals(values: Iterable[float], digits: int = 3) -> int:
    """Decimals that give the largest value `digits` significant digits, and the smallest non-zero one two."""
    sizes = [math.floor(math.log10(abs(value))) for value in values if value]
    if not sizes:
        return 0
    largest = digits - 1 - max(sizes)
    smallest = 1 - min(sizes)
    return max(0, min(MAX_DECIMALS, max(largest, smallest if max(sizes) < 4 else largest)))


def number(value: float, places: int) -> str:
    """A value with thousands separators; one that its row's decimals would hide, as 1.9e-5."""
    if value == 0:
        return "0"
    return _tiny(value) if _hidden(value, places) else f"{value:,.{places}f}"


def _hidden(value: float, places: int) -> bool:
    """Whether so many decimals show nothing of a value, or at their limit but one digit of it."""
    return round(value, places) == 0 or (
        places == MAX_DECIMALS and abs(round(value, places)) < 10 ** (1 - places)
    )


def ratio(value: float) -> str:
    """A ratio in three significant digits: 0.417, 2.79, 39.2, 836; far from 1 in two: 2.8e-4, 1.8e5."""
    if not math.isfinite(value):
        return "inf"
    if value == 0:
        return "0"
    if not SMALL <= abs(value) < LARGE:
        return _tiny(value)
    # of what it is written as: 0.9999 is 1.00, not 1.000
    size = math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return f"{value:,.{max(0, min(5, 2 - size))}f}"


def percent(share: float) -> str:
    """A share of 1 in per cent, three significant digits at most."""
    places = 2 if abs(share) < 0.01 else 1 if abs(share) < 1 else 0
    return f"{100 * share:,.{places}f}"


def change(share: float, places: int, unit: str = " %") -> str:
    """A change as a share of 1, in per cent with its sign: +0.42 %, −11 %."""
    return f"{100 * share:+z.{places}f}{unit}".replace("-", "\u2212")


def points(value: float) -> str:
    """A difference of percentages, in points."""
    return f"{value:+z.1f}".replace("-", "\u2212")


def signed(value: float, factor: float, places: int) -> str:
    """A difference in the row's own unit."""
    shown = value * factor
    hidden = shown != 0 and (_hidden(shown, places) or abs(shown) >= LARGE)
    text = ("+" if shown > 0 else "") + _tiny(shown) if hidden else f"{shown:+,.{places}f}"
    return f"\u2212{text[1:]}" if text.startswith("-") else text


def _tiny(value: float) -> str:
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
