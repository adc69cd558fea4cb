"""Formats numbers for people: three significant digits, no exponents. Of a long list it counts the rest.

The values of a row have one number of decimals, a difference and its interval have another.
A value that its row's decimals would hide has two significant digits (0.00028), below `SMALLEST` it is
`<0.00001`. A ratio above `LARGEST_RATIO` is `>1,000,000`. Zero has no sign. JSON and CSV hold the values
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MAX_DECIMALS = 4
SMALLEST, LARGEST_RATIO = 1e-5, 1e6


def decimals(values: Iterable[float], digits: int = 3) -> int:
    """Decimals that give the largest value `digits` significant digits, and the smallest non-zero one two."""
    sizes = [math.floor(math.log10(abs(value))) for value in values if value]
    if not sizes:
        return 0
    largest = digits - 1 - max(sizes)
    smallest = 1 - min(sizes)
    return max(0, min(MAX_DECIMALS, max(largest, smallest if max(sizes) < 4 else largest)))


def number(value: float, places: int) -> str:
    """A value with thousands separators; two significant digits where `places` decimals would hide it."""
    if value == 0:
        return "0"
    return significant(value, 2) if _hidden(value, places) else f"{value:,.{places}f}"


def single(value: float, digits: int = 3) -> str:
    """A value by itself, with the decimals that give it this many significant digits."""
    return number(value, decimals([value], digits))


def _hidden(value: float, places: int) -> bool:
    """Whether this many decimals print 0, or a single digit although no row has more decimals."""
    return round(value, places) == 0 or (
        places == MAX_DECIMALS and abs(round(value, places)) < 10 ** (1 - places)
    )


def significant(value: float, digits: int) -> str:
    """A value in this many significant digits, integers in full: 0.00028, 2.79, 1,234."""
    if value == 0:
        return "0"
    if abs(value) < SMALLEST:
        return f"{'-' if value < 0 else ''}<{SMALLEST:.5f}"
    # the size after rounding: three digits of 0.9999 are 1.00, not 1.000
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def brief(value: float, digits: int) -> str:
    """As `significant`, without zeros at the end: 2.5, 10, 12,340."""
    text = significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def ratio(value: float) -> str:
    """A ratio in three significant digits, below 0.001 in two: 0.00028, 0.417, 2.79, 39.2, 836, 178,000."""
    if not math.isfinite(value):
        return "inf"
    if abs(value) > LARGEST_RATIO:
        return f">{LARGEST_RATIO:,.0f}"
    return significant(value, 2 if abs(value) < 1e-3 else 3)


def percent(share: float) -> str:
    """A share of 1 in percent, three significant digits at most."""
    places = 2 if abs(share) < 0.01 else 1 if abs(share) < 1 else 0
    return f"{100 * share:z,.{places}f}"


def change(share: float, places: int, unit: str = " %") -> str:
    """A change as a share of 1, in percent with its sign: +0.42 %, −11 %."""
    return minus(f"{100 * share:+z.{places}f}{unit}")


def change_within(share: float, low: float, high: float, *, places: int) -> str:
    """A change and its interval: +0.42 % [−0.10, +0.94]."""
    return f"{change(share, places)} [{change(low, places, '')}, {change(high, places, '')}]"


def points(value: float) -> str:
    """A difference of percentages, in percentage points with its sign."""
    return minus(f"{value:+z.1f}")


def signed(value: float, factor: float, places: int) -> str:
    """A difference in the row's unit, with its sign."""
    shown = value * factor
    if shown and _hidden(shown, places):
        text = significant(shown, 2)
        return minus(text if shown < 0 else f"+{text}")
    return minus(f"{shown:+z,.{places}f}")


def minus(text: str) -> str:
    """A formatted number with a minus sign in place of a hyphen."""
    return text.replace("-", "\u2212")


def listed(texts: Sequence[str], most: int, sign: str = ", ") -> str:
    """The first texts and the number of the others: `a, b and 3 more`, with semicolons `a; b; and 3 more`."""
    others = len(texts) - most
    more = f"{';' if sign == '; ' else ''} and {others} more" if others > 0 else ""
    return sign.join(texts[:most]) + more
