"""What sentences need of a row: whether the interval of a ratio is beyond a factor, values as text."""

from __future__ import annotations

from loadprint import numbers
from loadprint.tables.table import Row, Table, Versus

FAR = 1.5


def sure(versus: Versus | None, factor: float) -> int:
    """1 or -1 if the whole interval of a ratio is above `factor` or below 1/`factor`, else 0."""
    if versus is None or versus.kind != "ratio" or versus.low is None or versus.high is None:
        return 0
    if versus.within_floor:
        return 0
    return 1 if versus.low >= factor else -1 if versus.high <= 1 / factor else 0


def direction(versus: Versus | None) -> int:
    """1 or -1 if the whole interval is above or below "no effect", else 0.

    Without a value on the reference's side (`inf`) it is 1.
    """
    if versus is None or versus.within_floor:
        return 0
    if versus.kind == "inf":
        return 1
    if versus.low is None or versus.high is None:
        return 0
    return 1 if versus.low > versus.no_effect else -1 if versus.high < versus.no_effect else 0


def apart(table: Table, row: Row, side: int, factor: float = 1.0) -> bool:
    """Without an interval: whether every repeat of a side is beyond `factor` of all of the reference."""
    versus = row.versus[side]
    values, base = row.cells[side].measured, row.cells[table.base].measured
    if versus is None or versus.low is not None or not values or not base:
        return False
    return min(values) > factor * max(base) or factor * max(values) < min(base)


def times(ratio: float) -> str:
    """A ratio as text: two digits, three below 1."""
    return numbers.ratio(ratio) if ratio < 1 else f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def value(row: Row, side: int) -> str:
    """The value of a side with its unit."""
    read = row.cells[side].value
    if read is None:
        return "n/a"
    return f"{numbers.single(read * row.factor)} {row.shown}".rstrip()
