"""Reads throughput.parquet and computes the rates of the generator's intervals.

The table holds counts and the stamps of the intervals' ends. A rate is a count divided by the length of its
interval; it is NaN where no interval reports one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from loadprint.errors import InputError
from loadprint.reading import bounds
from loadprint.reading.counters import Floats
from loadprint.reading.names import LOAD
from loadprint.reading.queries import FIX, Columns, Store, doubles, select_list, sums
from loadprint.reading.recording import Run
from loadprint.reading.stamps import Phase
from loadprint.reading.time_series import interval_times
from loadprint.series.intervals import SHORT, STATES, Intervals

TOTALS = ("events", "queries", "reads", "writes", "commits", "errors", "reconnects", "rows")
LARGEST = 2.0**64  # of a counter
OVERTIME_NS = 3600e9  # that the last interval may end after its phase: the generator waits for open events


def intervals(run: Run, store: Store) -> Intervals | None:
    """Intervals of a run, in seconds since the start of `measure`; None without it or throughput.parquet.

    Raises InputError.
    """
    path = run.path / LOAD / "throughput.parquet"
    measure = run.phase("measure")
    if not path.is_file() or measure is None:
        return None
    stored = store.columns(path)
    counted = tuple(name for name in TOTALS if name in stored)
    seen = tuple(name for name in ("monotonic_ns", *STATES) if name in stored)
    largest = {name: f"max({column})" for name, column in doubles(seen).items()}
    columns = select_list({"second": "second::DOUBLE"} | sums(counted) | largest)
    rows = store.fetch(path, f"SELECT {columns} FROM t GROUP BY ALL ORDER BY second")
    _require_in_run(path, rows, measure)
    second = rows.pop("second")
    if not len(second):
        return None
    stamps = rows.pop("monotonic_ns", np.full(len(second), np.nan))
    for name, values in rows.items():
        rows[name] = np.where((values >= 0) & (values <= LARGEST), values, np.nan)
    begins, ends = interval_times(second, stamps, measure)
    if np.isfinite(ends).all() and (np.diff(ends) >= 0).all():
        # the edges of segments end intervals, of which none is short by being late
        return _joined(begins, ends, rows, counted, SHORT if run.segments is None else 0.0)
    # without stamps they are seconds; the last can be partial
    for name in counted:
        rows[name][-1] = np.nan
    return _joined(second, second + 1, rows, counted, SHORT)


def _require_in_run(path: Path, rows: Columns, measure: Phase) -> None:
    """Raise InputError if an interval ended outside of the measure phase: charts would extend there."""
    if len(rows["second"]) > bounds.POINTS:
        raise InputError(path, f"more than {bounds.POINTS:,} seconds", FIX)
    ends = rows.get("monotonic_ns")
    if ends is None or measure.end_ns is None:
        return
    outside = (ends < measure.begin_ns) | (ends > measure.end_ns + OVERTIME_NS)
    if outside.any():
        second = rows["second"][np.argmax(outside)]
        raise InputError(path, f"the stamp of second {second:.0f} is outside of phase `measure`", FIX)


def _joined(begins: Floats, ends: Floats, rows: Columns, counted: Sequence[str], short: float) -> Intervals:
    """Intervals; one of a length below `short` times the usual is merged into the previous one."""
    lengths = ends - begins
    lasting = lengths[lengths > 0]
    usual = float(np.median(lasting)) if len(lasting) else 1.0
    long_enough = (lengths >= short * usual) & (lengths > 0)
    long_enough[0] = True
    first = np.flatnonzero(long_enough)
    last = np.append(first[1:], len(long_enough)) - 1

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
