"""Computes the increase of cumulative counters: one rule for every counter that falls between two readings.

In this order, `size` being the value at which the counter starts again at zero, if the recording declares it:

1. A *wrap*: the increase past `size`, modulo `size`, is at most an eighth of it. It is added. So is that of a
   sum of counters of this size, which falls when one of them wraps. Where no size is declared, 2^32 and 2^64
   are tried, and the value before must not be above.
2. A *restart*: to at most a tenth of the value before. The counter counts from zero, as in Prometheus'
   `increase`. What it counted between the previous reading and the restart is not known: the sum is a lower
   bound, and a warning names the counter. Of a single interval with a restart nothing is known.
3. A *step back*: by at most 1 % and 1,000 units, or by at most 10 units. Kernels repair idle, iowait, steal,
   user, disk and interface counters by a few units (proc(5) about /proc/stat; public reports have 1 to 7). It
   adds nothing, and the counter adds nothing until it has passed its old value.
4. Any other fall: nothing is known of the interval, nor of a window with it.

- A missing reading is skipped, not zero; a counter with fewer than two readings has no increase. The seconds
  of an increase are those between the readings that it is from.
- A thread whose counter falls, but for a step back, has a successor with its number.
- A thread or an entity of an eBPF table that appears in the window counts from zero. A process counts from
  its first reading, because it may have been found later. All count until their last reading.

A counter that restarted and passed its old value within one interval is not detected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.queries import doubles, identifier, listed

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
SIZES = (2.0**32, 2.0**64)
WIDEST = 64  # bits
WRAPPED = 1 / 8  # of the size
RESTARTED = 1 / 10  # of the value before
STEPPED_BACK, FEW, MANY = 1 / 100, 10, 1000  # of the value before; units


@dataclass(frozen=True)
class Increase:
    """Increase of a counter in the unit of its source, with the falls that it includes.

    It is from the reading number `first` to number `last`, the first and last that are known.
    """

    amount: float
    wraps: int = 0
    restarts: int = 0
    steps_back: int = 0
    first: int = field(default=0, compare=False)
    last: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Steps:
    """Increases between neighbouring readings, (readings - 1,), NaN where not known; the falls by kind."""

    amounts: Floats
    wrapped: Marks
    restarted: Marks
    stepped_back: Marks
    unknown: Marks


def increase(values: Floats, size: float | None = None) -> Increase | None:
    """Increase of one counter over its readings; None if it is not known."""
    places = np.flatnonzero(~np.isnan(values))
    if len(places) < 2:
        return None
    known, ends = values[places], {"first": int(places[0]), "last": int(places[-1])}
    if (known[1:] >= known[:-1]).all():
        return Increase(float(known[-1] - known[0]), **ends)
    each = steps(known, size)
    if each.restarted.all() or each.unknown.any():
        return None
    falls = (int(kind.sum()) for kind in (each.wrapped, each.restarted, each.stepped_back))
    return Increase(float(each.amounts.sum()), *falls, **ends)


def steps(values: Floats, size: float | None = None) -> Steps:
    """Increases between neighbouring readings; after a restart, what was counted since."""
    before, after = values[:-1], values[1:]
    amounts = after - before
    fell, by, wrapped = amounts < 0, -amounts, np.zeros(len(amounts), dtype=bool)
    for each in SIZES if size is None else (size,):
        # (each - before) first: near 2^64 a float has steps of 2048, and `after` is small
        rise = (each - before) + after if size is None else np.mod(amounts, each)
        over = fell & (rise >= 0) & (rise <= WRAPPED * each) & ((before <= each) | (size is not None))
        amounts = np.where(over, rise, amounts)
        wrapped |= over
    restarted = fell & ~wrapped & (after <= RESTARTED * before)
    small = (by <= FEW) | ((by <= MANY) & (by <= STEPPED_BACK * before))
    stepped_back = fell & ~wrapped & ~restarted & small
    unknown = fell & ~wrapped & ~restarted & ~stepped_back
    amounts = np.where(restarted, after, np.where(stepped_back, 0.0, np.where(unknown, np.nan, amounts)))
    if stepped_back.any():
        _repay(values, amounts, wrapped | restarted | unknown)
    return Steps(amounts, wrapped, restarted, stepped_back, unknown)


def _repay(values: Floats, amounts: Floats, ends: Marks) -> None:
    """Between other falls a counter adds what passes its highest value so far."""
    edges = [0, *(np.flatnonzero(ends) + 1).tolist(), len(values)]
    for first, last in pairwise(edges):
        rises = np.diff(np.fmax.accumulate(values[first:last]))
        known = ~np.isnan(amounts[first : last - 1])
        amounts[first : last - 1][known] = rises[known]


def size_of(described: Mapping[str, Any]) -> float | None:
    """The value at which a column's counters start again at zero, from its metadata; None without one."""
    bits = described.get("bits")
    return 2.0**bits if isinstance(bits, int) and 0 < bits < WIDEST else None


def rises(table: str, columns: Sequence[str], entity: Sequence[str], first: str | None) -> str:
    """Return a SELECT of tick, `entity` and the increase of each column since the entity's previous reading.

    `since COLUMN` is the tick of that reading; a null is no reading. `table` is SQL. A fall that is no step
    back is a restart: of a successor with the same number, which may have counted anything. With `first`, the
    first tick, an entity that appears after it started at zero.
    """
    keys, read = ", ".join(entity), doubles(columns)
    known = {name: f"CASE WHEN {value} IS NOT NULL THEN tick END" for name, value in read.items()}
    inner = {
        **read,
        **{f"before {name}": f"lag({value} IGNORE NULLS) OVER readings" for name, value in read.items()},
        **{f"since {name}": f"lag({tick} IGNORE NULLS) OVER readings" for name, tick in known.items()},
        "born": "min(tick) OVER readings",
    }
    born = "NULL" if first is None else f"CASE WHEN born > {first} THEN {{}} END"
    risen = {name: _risen(identifier(name), f'"before {name}"', born) for name in columns}
    since = ", ".join(identifier(f"since {name}") for name in columns)
    return (
        f"SELECT tick, {keys}, {since}, {listed(risen)}"
        f" FROM (SELECT tick, {keys}, {listed(inner)} FROM {table}"
        f" WINDOW readings AS (PARTITION BY {keys} ORDER BY tick))"
    )


def _risen(value: str, before: str, born: str) -> str:
    return (
        f"CASE WHEN {before} IS NULL THEN {born.format(value)}"
        f" WHEN {value} >= {before} THEN {value} - {before}"
        f" WHEN {before} - {value} <= greatest({FEW}, least({MANY}, {STEPPED_BACK} * {before}))"
        f" AND {value} > {RESTARTED} * {before} THEN 0 ELSE {value} END"
    )
