"""Computes the increase of cumulative counters: one rule for every counter that falls between two readings.

Readings are of the segments of measured time, of which a run has one or more. Between two segments nothing is
counted: no increase, no fall.

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
4. Any other fall: nothing is known of the interval, nor of the run.

- A missing reading is skipped, not zero; a counter with fewer than two readings has no increase. The seconds
  of an increase are those between the readings that it is from.
- A thread whose counter falls, but for a step back, has a successor with its number, which counts from zero.
- A thread or an entity of an eBPF table that appears in a segment counts from zero. A process counts from
  its first reading, because it may have been found later. All count until their last reading.

A counter that restarted and passed its old value within one interval is not detected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadprint.reading.run_documents import ColumnMeaning

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
Numbers = NDArray[np.intp]
SIZES = (2.0**32, 2.0**64)
WIDEST = 64  # bits
WRAPPED = 1 / 8  # of the size
RESTARTED = 1 / 10  # of the value before
STEPPED_BACK, FEW, MANY = 1 / 100, 10, 1000  # of the value before; units


@dataclass(frozen=True)
class Increase:
    """Increase of a counter in the unit of its source, with the falls that it includes.

    It is from the readings number `first` to number `last` of each segment in which it is known, (segments,);
    `by_segment` are the amounts of these segments, NaN where it restarted.
    """

    amount: float
    wraps: int = 0
    restarts: int = 0
    steps_back: int = 0
    first: Numbers = field(default_factory=lambda: np.zeros(0, np.intp), compare=False)
    last: Numbers = field(default_factory=lambda: np.zeros(0, np.intp), compare=False)
    by_segment: Floats = field(default_factory=lambda: np.zeros(0), compare=False)


@dataclass(frozen=True)
class Steps:
    """Increases between neighbouring readings, (readings - 1,), NaN where not known; the falls by kind."""

    amounts: Floats
    wrapped: Marks
    restarted: Marks
    stepped_back: Marks
    unknown: Marks


def increase(
    values: Floats, size: float | None = None, of: Numbers | None = None, *, succeeded: bool = False
) -> Increase | None:
    """Increase of one counter over its readings; None if it is not known.

    `of` are the segments of the readings, in order; one if it is None. `succeeded`: a fall is a successor's.
    """
    places = np.flatnonzero(~np.isnan(values))
    readings = values[places]
    segment = np.zeros(len(places), np.intp) if of is None else of[places]
    first, last = edges(segment)
    usable = last > first
    if not usable.any():
        return None
    amounts, falls = readings[last] - readings[first], (0, 0, 0)
    restarted = np.zeros(len(first), dtype=bool)
    if not _is_rising(readings, segment):
        rises = steps(readings, size, segment, succeeded=succeeded)
        if rises.unknown.any():
            return None
        begins, ends = first[usable], last[usable]
        amounts[usable] = [rises.amounts[one:end].sum() for one, end in zip(begins, ends, strict=True)]
        if not succeeded:
            restarts = [rises.restarted[one:end] for one, end in zip(begins, ends, strict=True)]
            restarted[usable] = [one.any() for one in restarts]
            usable[usable] = [not one.all() for one in restarts]
        if not usable.any():
            return None
        falls = int(rises.wrapped.sum()), int(rises.restarted.sum()), int(rises.stepped_back.sum())
    by_segment = np.where(restarted, np.nan, amounts)[usable]
    return Increase(
        float(amounts[usable].sum()), *falls, places[first[usable]], places[last[usable]], by_segment
    )


def _is_rising(readings: Floats, segment: Numbers) -> bool:
    return bool(((readings[1:] >= readings[:-1]) | (segment[1:] != segment[:-1])).all())


def edges(segment: Numbers) -> tuple[Numbers, Numbers]:
    """Numbers of the first and of the last reading of each segment, from the segments of the readings."""
    changes = np.flatnonzero(np.diff(segment)) + 1
    if not len(segment):
        return changes, changes
    return np.concatenate([[0], changes]), np.append(changes - 1, len(segment) - 1)


def steps(
    values: Floats, size: float | None = None, of: Numbers | None = None, *, succeeded: bool = False
) -> Steps:
    """Increases between neighbouring readings, 0 between segments; of a restart what came since."""
    before, after = values[:-1], values[1:]
    apart = np.zeros(len(before), dtype=bool) if of is None else of[1:] != of[:-1]
    amounts = np.where(apart, 0.0, after - before)
    fell, by, wrapped = amounts < 0, -amounts, np.zeros(len(amounts), dtype=bool)
    for span in () if succeeded else SIZES if size is None else (size,):
        # (span - before) first: near 2^64 a float has steps of 2048, and `after` is small
        rise = (span - before) + after if size is None else np.mod(amounts, span)
        over = fell & (rise >= 0) & (rise <= WRAPPED * span) & ((before <= span) | (size is not None))
        amounts = np.where(over, rise, amounts)
        wrapped |= over
    restarted = fell & ~wrapped & (after <= RESTARTED * before)
    small = (by <= FEW) | ((by <= MANY) & (by <= STEPPED_BACK * before))
    stepped_back = fell & ~wrapped & ~restarted & small
    unknown = fell & ~wrapped & ~restarted & ~stepped_back
    if succeeded:
        restarted, unknown = restarted | unknown, np.zeros_like(unknown)
    amounts = np.where(restarted, after, np.where(stepped_back, 0.0, np.where(unknown, np.nan, amounts)))
    if stepped_back.any():
        _repay(values, amounts, apart | wrapped | restarted | unknown)
    return Steps(amounts, wrapped, restarted, stepped_back, unknown)


def _repay(values: Floats, amounts: Floats, ends: Marks) -> None:
    """Between other falls a counter adds what passes its highest value so far."""
    edges = [0, *(np.flatnonzero(ends) + 1).tolist(), len(values)]
    for first, last in pairwise(edges):
        rises = np.diff(np.fmax.accumulate(values[first:last]))
        finite = ~np.isnan(amounts[first : last - 1])
        amounts[first : last - 1][finite] = rises[finite]


def size_of(described: ColumnMeaning) -> float | None:
    """The value at which a column's counters start again at zero, from its metadata; None without one."""
    return 2.0**described.bits if described.bits and described.bits < WIDEST else None
