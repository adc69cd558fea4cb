"""A number as printed: the interval of values that print like this, and what is wrong with its digits.

A printed number stands for all values that round to it: half a unit of its last digit to either side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLAIN = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
GROUPED = re.compile(r"([+-]?)(\d{1,3}(?:,\d{3})+)(?:\.(\d*))?")
BROKEN = re.compile(r"([+-]?)(\d{1,3}(?:,\d+)+)(?:\.(\d*))?")
GROUP = 3  # digits between commas
LONGEST = 60  # characters of a number; with MAX_POWER no quotient of two leaves the range of a double
MAX_POWER = 60


@dataclass(frozen=True)
class Interval:
    """Values from `low` to `high`, both ends included."""

    low: float
    high: float

    def over(self, other: Interval) -> Interval | None:
        """Quotients of a value of this one and a value of the other; None where those may be zero or less."""
        if other.low <= 0 or self.low < 0:
            return None
        return Interval(self.low / other.high, self.high / other.low)

    def times(self, other: Interval) -> Interval:
        """Products; both hold positive values."""
        return Interval(self.low * other.low, self.high * other.high)

    def common(self, other: Interval) -> Interval | None:
        """What lies in both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else None


@dataclass(frozen=True)
class Number:
    """A cell: its text, its value (None where it is misprinted) and what may have been meant.

    `wrong` says what is wrong with a misprinted one; `meant` is then what it can have been, as whole numbers:
    of the lost last digits, of the printed ratio, or of both, whichever is known.
    """

    text: str
    value: float | None
    span: Interval | None
    decimals: int = 0
    wrong: str = ""
    meant: Interval | None = None


def parse(text: str) -> Number | None:
    """Read a cell; None where it is empty. A percent sign behind it is dropped."""
    text = text.strip()
    bare = text.removesuffix("%").strip()
    if not bare:
        return None
    if len(bare) > LONGEST:
        return Number(text, None, None, wrong="is no number")
    if found := PLAIN.fullmatch(bare) or GROUPED.fullmatch(bare):
        sign, whole, fraction, *exponent = found.groups()
        power = int(exponent[0]) if exponent and exponent[0] else 0
        if abs(power) > MAX_POWER:
            return Number(text, None, None, wrong="is no number")
        decimals = len(fraction or "")
        value = float(f"{sign}{whole.replace(',', '')}.{fraction or '0'}e{power}")
        half = 0.5 * 10.0 ** (power - decimals)
        least = max(0.0, value - half) if value >= 0 else value - half  # no count or time is below zero
        return Number(text, value, Interval(least, value + half), max(0, decimals - power))
    if found := BROKEN.fullmatch(bare):
        return _broken(text, found)
    return Number(text, None, None, wrong="is no number")


def _broken(text: str, found: re.Match[str]) -> Number:
    """A number whose groups of thousands do not have three digits each."""
    sign, whole, fraction = found.groups()
    *before, last = whole.split(",")
    sizes = [len(group) for group in before[1:]]
    wrong = f"its groups of thousands have {', '.join(str(len(group)) for group in whole.split(','))} digits"
    lost = GROUP - len(last)
    if sign or fraction is not None or lost <= 0 or any(size != GROUP for size in sizes):
        return Number(text, None, None, wrong=wrong)
    least = int("".join((*before, last))) * 10**lost
    digits = "its last digit is lost" if lost == 1 else f"its last {lost} digits are lost"
    meant = Interval(float(least), float(least + 10**lost - 1))
    return Number(text, None, Interval(meant.low - 0.5, meant.high + 0.5), 0, f"{wrong}: {digits}", meant)
