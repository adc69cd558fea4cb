"""Parses a printed number to the interval of values that round to it, and detects misprints.

The interval extends half a unit of the last digit to both sides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLAIN = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
GROUPED = re.compile(r"([+-]?)(\d{1,3}(?:,\d{3})+)(?:\.(\d*))?")
BROKEN = re.compile(r"([+-]?)(\d{1,3}(?:,\d+)+)(?:\.(\d*))?")
GROUP = 3  # digits between commas
MAX_LENGTH = 60  # characters of a number; with MAX_POWER every quotient is in the range of a double
MAX_POWER = 60


@dataclass(frozen=True)
class Interval:
    """Values from `low` to `high`, both ends included."""

    low: float
    high: float

    def over(self, other: Interval) -> Interval | None:
        """Quotients of a value of this one and a value of the other; None if a divisor can be 0 or less."""
        if other.low <= 0 or self.low < 0:
            return None
        return Interval(self.low / other.high, self.high / other.low)

    def times(self, other: Interval) -> Interval:
        """Products of positive values."""
        return Interval(self.low * other.low, self.high * other.high)

    def common(self, other: Interval) -> Interval | None:
        """The intersection."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else None


@dataclass(frozen=True)
class Number:
    """A cell: its text, its value (None for a misprint) and the interval of possible values.

    `wrong` describes a misprint; `meant` is the range of integers that it can stand for, from its digits, the
    printed ratio, or both.
    """

    text: str
    value: float | None
    span: Interval | None
    decimals: int = 0
    wrong: str = ""
    meant: Interval | None = None


def parse(text: str) -> Number | None:
    """Read a cell; None if it is empty. A percent sign at the end is dropped."""
    text = text.strip()
    bare = text.removesuffix("%").strip()
    if not bare:
        return None
    if len(bare) > MAX_LENGTH:
        return Number(text, None, None, wrong="is not a number")
    if match := PLAIN.fullmatch(bare) or GROUPED.fullmatch(bare):
        sign, whole, fraction, *exponent = match.groups()
        power = int(exponent[0]) if exponent and exponent[0] else 0
        if abs(power) > MAX_POWER:
            return Number(text, None, None, wrong="is not a number")
        decimals = len(fraction or "")
        value = float(f"{sign}{whole.replace(',', '')}.{fraction or '0'}e{power}")
        half = 0.5 * 10.0 ** (power - decimals)
        low = max(0.0, value - half) if value >= 0 else value - half  # counts and times are not negative
        return Number(text, value, Interval(low, value + half), max(0, decimals - power))
    if match := BROKEN.fullmatch(bare):
        return _broken(text, match)
    return Number(text, None, None, wrong="is not a number")


def _broken(text: str, match: re.Match[str]) -> Number:
    """A number with a group of thousands that does not have three digits."""
    sign, whole, fraction = match.groups()
    *before, last = whole.split(",")
    sizes = [len(group) for group in before[1:]]
    wrong = f"its groups of thousands have {', '.join(str(len(group)) for group in whole.split(','))} digits"
    lost = GROUP - len(last)
    if sign or fraction is not None or lost <= 0 or any(size != GROUP for size in sizes):
        return Number(text, None, None, wrong=wrong)
    least = int("".join((*before, last))) * 10**lost
    digits = "its last digit is missing" if lost == 1 else f"its last {lost} digits are missing"
    meant = Interval(float(least), float(least + 10**lost - 1))
    return Number(text, None, Interval(meant.low - 0.5, meant.high + 0.5), 0, f"{wrong}: {digits}", meant)
