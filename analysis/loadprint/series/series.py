"""Reads time series of a run: every counter as a rate per interval, every gauge as read, on one axis.

Seconds count from the start of phase `measure` (negative before it); the time of a rate is the middle of its
interval. Series cover the whole recording, unlike the quantities of a window, and have the same keys, e.g.
`cpu.server.user`, `disk.vda.write_sectors`, `mysql.pages_flushed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.reading.cpusets import cpuset, user_hz
from loadprint.reading.queries import Store
from loadprint.reading.recording import LOAD, Run
from loadprint.series.axis import Floats, read_axis
from loadprint.series.labels import label_of
from loadprint.series.probe_table import Table, any_requested, is_requested
from loadprint.series.readers import readers
from loadprint.series.throughput import intervals

TimedSeries = tuple[str, Floats, Floats, Floats | float]


@dataclass(frozen=True)
class Series:
    """One quantity over time.

    `seconds` and `values` are float64 arrays, shape (intervals,): base units per second of a counter, the
    reading of a gauge. NaN where a tick was missed, a read failed or a counter was reset. `half` is half the
    length of each interval in seconds, shape (intervals,); 0 for a reading.
    """

    key: str
    label: str
    unit: str
    seconds: Floats
    values: Floats
    half: Floats | float = 0.0


@dataclass(frozen=True)
class Span:
    """A phase of the load on the axis of the series; `end_s` is None without an end."""

    name: str
    begin_s: float
    end_s: float | None


def phases(run: Run) -> tuple[Span, ...]:
    """Phases in the order of their start, in seconds since the start of `measure`; empty without a load."""
    measure = run.phase("measure")
    if measure is None:
        return ()
    zero = measure.begin_ns
    return tuple(
        Span(
            phase.name,
            (phase.begin_ns - zero) / 1e9,
            None if phase.end_ns is None else (phase.end_ns - zero) / 1e9,
        )
        for phase in run.phases
    )


def run_series(run: Run, store: Store, names: Sequence[str] | None = None) -> dict[str, Series]:
    """All series of a run by key, or those of `names`: keys or their first words ("mysql", "disk.vda").

    Series that were not recorded are absent. Raises InputError with the file that cannot be used.
    """
    series: dict[str, Series] = {}
    for key, seconds, values, half in (*_generator(run, store, names), *_recorders(run, store, names)):
        known = np.isfinite(values)
        if is_requested(key, names) and known.any():
            label, unit = label_of(key)
            series.setdefault(key, Series(key, label, unit, seconds, np.where(known, values, np.nan), half))
    return series


def _recorders(run: Run, store: Store, names: Sequence[str] | None) -> Iterator[TimedSeries]:
    for role in run.roles:
        chosen = [
            (side, cpus, reader)
            for side, cpus in _cpu_sets(run, role)
            for reader in readers(side)
            if _is_of(reader.of, role, side) and any_requested(reader.prefix, names)
        ]
        probes = sorted({reader.probe for _, _, reader in chosen})
        axis = read_axis(run, role, store, probes) if probes else None
        for side, cpus, reader in chosen if axis else ():
            path, grid = run.table(role, reader.probe), axis.grids.get(reader.probe) if axis else None
            if path is None or grid is None:
                continue
            table = Table(run, role, store, path, reader.probe, grid, side, cpus, user_hz(run, role), names)
            for key, seconds, values in reader.read(table):
                if role != LOAD or key.split(".")[1] == LOAD:
                    # a gauge has a value for each read, a counter one for each interval
                    between = len(seconds) < len(grid.seconds)
                    yield key, seconds, values, np.diff(grid.seconds) / 2 if between else 0.0


def _is_of(what: str, role: str, side: str) -> bool:
    """Whether a reader applies to a role's recorder and a side's CPU set: devices are only of the server."""
    if role == LOAD:
        return what in ("cpus", "role")
    return what == "cpus" or side == role


def _cpu_sets(run: Run, role: str) -> list[tuple[str, tuple[int, ...] | None]]:
    """The CPU sets in a role's tables: on a shared host also the load's, if it was given."""
    if role == LOAD:
        return [(LOAD, cpuset(run, role))]
    shared = run.shares_host and cpuset(run, LOAD) is not None
    return [("server", cpuset(run, "server")), *([(LOAD, cpuset(run, LOAD))] if shared else [])]


def _generator(run: Run, store: Store, names: Sequence[str] | None) -> Iterator[TimedSeries]:
    """Series of the generator's intervals: `load.events` …, and the backlog of an open loop."""
    reported = intervals(run, store) if any_requested("load", names) else None
    if reported is None:
        return
    middle, half = (reported.begins + reported.ends) / 2, reported.lengths / 2
    for name in reported.totals:
        yield f"load.{name}", middle, reported.rates(name), half
    for name, values in reported.states.items():
        unit = 1e-3 if name.endswith("_ms") else 1.0
        yield f"load.{name.removesuffix('_ms')}", middle, values * unit, half
