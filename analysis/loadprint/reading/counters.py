"""Computes the increase of cumulative counters: one rule for wraps, resets, gaps, births and ends.

- A decrease from the upper half of 32 or 64 bits to a small number is a wrap, which is added back: the kernel
  prints the times of /proc/diskstats as `unsigned int`.
- Any other decrease is a reset: the counter restarted at zero, and what it counted since is added, as by
  Prometheus' `increase`. What it counted between the previous reading and the reset is not known: the sum is
  a lower bound, and a warning names the counter.
- Of a single interval with a reset nothing is known: a chart has a gap, a cell the reason.
- A missing reading is skipped, not zero; a counter with fewer than two readings has no increase.
- A thread or an entity of an eBPF table that appears in the window counts from zero. A process counts from
  its first reading, because it may have been found later. All count until their last reading.
- idle and iowait can decrease (proc(5), /proc/stat): their increase is last − first, at least 0.

A counter that was reset and passed its old value within one interval is not detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.queries import listed

Floats = NDArray[np.float64]
WRAPS = (2.0**32, 2.0**64)


@dataclass(frozen=True)
class Increase:
    """Increase of a counter in the unit of its source, with the wraps and resets that it includes."""

    amount: float
    wraps: int = 0
    resets: int = 0


@dataclass(frozen=True)
class Steps:
    """Increases between neighbouring readings, (readings - 1,), NaN at a missing one; wraps and resets."""

    amounts: Floats
    wrapped: NDArray[np.bool_]
    reset: NDArray[np.bool_]


def increase(
    values: Floats, *, may_step_back: bool = False, wraps: Sequence[float] = WRAPS
) -> Increase | None:
    """Increase of one counter over its readings; None if it is not known.

    With `may_step_back` a decrease is not a reset. `wraps` are the sizes at which a counter restarts at zero.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return None
    if may_step_back:
        return Increase(max(0.0, float(known[-1] - known[0])))
    each = steps(known, wraps)
    if each.reset.all():
        return None
    if not (each.reset | each.wrapped).any():
        return Increase(float(known[-1] - known[0]))
    return Increase(float(each.amounts.sum()), int(each.wrapped.sum()), int(each.reset.sum()))


def steps(values: Floats, wraps: Sequence[float] = WRAPS) -> Steps:
    """Increases between neighbouring readings; after a reset, what was counted since."""
    before, after = values[:-1], values[1:]
    amounts = after - before
    fell, wrapped = amounts < 0, np.zeros(len(amounts), dtype=bool)
    for size in wraps:
        # (size - before) first: near 2^64 a float has steps of 2048, and `after` is small
        over = fell & (before >= size / 2) & (before <= size) & ((size - before) + after < size / 2)
        amounts = np.where(over, (size - before) + after, amounts)
        wrapped |= over
    reset = fell & ~wrapped
    return Steps(np.where(reset, after, amounts), wrapped, reset)


def rises(table: str, columns: Sequence[str], entity: Sequence[str], first: str | None) -> str:
    """Return a SELECT of tick, `entity` and the increase of each column since the entity's previous reading.

    `table` is SQL. A reading below the previous one is of a successor with the same number, which started at
    zero. With `first`, the first tick, so did an entity that appears after it.
    """
    keys = ", ".join(entity)
    read = listed({name: f"{name}::DOUBLE" for name in columns})
    before = listed({f"{name} before": f"lag({name}::DOUBLE) OVER readings" for name in columns})
    born = "NULL" if first is None else f"CASE WHEN tick > {first} THEN {{}} END"
    risen = {
        name: f'CASE WHEN "{name} before" IS NULL THEN {born.format(name)}'
        f' WHEN {name} < "{name} before" THEN {name} ELSE {name} - "{name} before" END'
        for name in columns
    }
    return (
        f"SELECT tick, {keys}, {listed(risen)} FROM (SELECT tick, {keys}, {read}, {before} FROM {table}"
        f" WINDOW readings AS (PARTITION BY {keys} ORDER BY tick))"
    )
