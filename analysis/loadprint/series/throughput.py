"""Reads throughput.parquet: counts of the generator's intervals, their lengths, and rates with gaps.

The recording holds counts and the stamps of the intervals' ends. Here alone they become rates: a count is
divided by the length of its own interval, and what no interval reports is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ibis
import numpy as np

from loadprint.errors import InputError
from loadprint.reading import bounds
from loadprint.reading.queries import FIX, Columns, Store, number
from loadprint.reading.recording import Phase, Run
from loadprint.series.axis import Floats

TOTALS = ("events", "queries", "reads", "writes", "commits", "errors", "reconnects", "rows")
STATES = ("latency_p95_ms", "backlog", "concurrency")
SHORT = 0.5  # of the usual length: a line that came late shortens the next interval; the last may be a part
WHOLE = 0.9  # of the usual length: the first report of a window may count from before it
LARGEST = 2.0**64  # no counter holds more
OVERTIME_NS = 3600e9  # by which the last interval may end after its phase: events under way are waited for


@dataclass(frozen=True)
class Intervals:
    """The generator's intervals of the measure phase, in the order of time; arrays (intervals,).

    `begins` and `ends` are seconds since the begin of the phase. `totals` are counts of all transaction types
    together, `states` the worst of them; NaN where an interval does not report one. `usual` is the median
    length in seconds.
    """

    begins: Floats
    ends: Floats
    totals: Mapping[str, Floats]
    states: Mapping[str, Floats]
    usual: float

    @property
    def lengths(self) -> Floats:
        """Lengths in seconds."""
        return self.ends - self.begins

    def rates(self, name: str) -> Floats:
        """A count per second of each interval; NaN where it is not known."""
        lengths = self.lengths
        whole = lengths > 0
        whole[:1] &= lengths[:1] >= WHOLE * self.usual
        found: Floats = np.divide(self.totals[name], lengths, out=np.full(len(whole), np.nan), where=whole)
        return found

    def samples(self, name: str) -> Floats:
        """Rates at steps of `usual` seconds from the begin of the phase to the last known; NaN in gaps.

        Empty where none is known, or where they are too unlike to have common steps.
        """
        rates = self.rates(name)
        if not np.isfinite(rates).any():
            return np.empty(0)
        gaps = np.diff(self.begins, prepend=0.0)
        gaps[1:] = self.begins[1:] - self.ends[:-1]
        values = np.column_stack((np.full(len(rates), np.nan), rates)).ravel()
        steps = np.column_stack(
            (np.round(gaps / self.usual), np.maximum(np.round(self.lengths / self.usual), 1))
        )
        steps = np.clip(np.nan_to_num(steps.ravel()), 0, bounds.POINTS)
        if steps.sum() > bounds.POINTS:
            return np.empty(0)
        even = np.repeat(values, steps.astype(int))
        return even[: np.flatnonzero(np.isfinite(even))[-1] + 1]


def intervals(run: Run, store: Store) -> Intervals | None:
    """Intervals of a run; None without a series or a measure phase. Raises InputError naming the file."""
    path = run.path / "load" / "throughput.parquet"
    measure = run.phase("measure")
    if not path.is_file() or measure is None:
        return None
    known = store.columns(path)
    counted = tuple(name for name in TOTALS if name in known)
    seen = tuple(name for name in ("monotonic_ns", *STATES) if name in known)
    rows = store.fetch(
        path,
        lambda t: (
            t.group_by(second=number(t.second))
            .agg(
                **{name: number(ibis._[name]).sum() for name in counted},
                **{name: number(ibis._[name]).max() for name in seen},
            )
            .order_by("second")
        ),
    )
    _require_in_run(path, rows, measure)
    second = rows.pop("second")
    if not len(second):
        return None
    stamps = rows.pop("monotonic_ns", np.full(len(second), np.nan))
    for name, values in rows.items():
        rows[name] = np.where((values >= 0) & (values <= LARGEST), values, np.nan)
    window = np.inf if measure.end_ns is None else (measure.end_ns - measure.begin_ns) / 1e9
    ends = np.minimum((stamps - measure.begin_ns) / 1e9, window)
    if np.isfinite(ends).all() and (np.diff(ends) >= 0).all():
        return _joined(_begins(second, ends), ends, rows, counted)
    # without stamps they are seconds, of which the last may be a part
    for name in counted:
        rows[name][-1] = np.nan
    return _joined(second, second + 1, rows, counted)


def _require_in_run(path: Path, rows: Columns, measure: Phase) -> None:
    """Raise InputError where a row ended outside of the measure phase: a chart would reach there."""
    if len(rows["second"]) > bounds.POINTS:
        raise InputError(path, f"holds more than {bounds.POINTS:,} seconds", FIX)
    ends = rows.get("monotonic_ns")
    if ends is None or measure.end_ns is None:
        return
    outside = (ends < measure.begin_ns) | (ends > measure.end_ns + OVERTIME_NS)
    if outside.any():
        second = rows["second"][np.argmax(outside)]
        raise InputError(path, f"the stamp of its second {second:g} is not within phase `measure`", FIX)


def _begins(second: Floats, ends: Floats) -> Floats:
    """Begins of intervals from their ends; where a number is left out, its interval is a gap."""
    begins = np.concatenate([[0.0], ends[:-1]])
    missed = np.flatnonzero(np.diff(second, prepend=-1.0) > 1)
    begins[missed] = np.maximum(begins[missed], ends[missed] - np.median(ends - begins))
    return begins


def _joined(begins: Floats, ends: Floats, rows: Columns, counted: Sequence[str]) -> Intervals:
    """Intervals, each too short to have a rate joined to the one before it."""
    lengths = ends - begins
    lasting = lengths[lengths > 0]
    usual = float(np.median(lasting)) if len(lasting) else 1.0
    own = lengths >= SHORT * usual
    own[0] = True
    first = np.flatnonzero(own)
    last = np.append(first[1:], len(own)) - 1

    def sums(values: Floats) -> Floats:
        total = np.add.reduceat(np.nan_to_num(values), first)
        return np.where(np.add.reduceat(np.isfinite(values), first) > 0, total, np.nan)

    return Intervals(
        begins[first],
        ends[last],
        {name: sums(values) for name, values in rows.items() if name in counted},
        {name: np.fmax.reduceat(values, first) for name, values in rows.items() if name not in counted},
        usual,
    )
