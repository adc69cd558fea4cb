"""What a run did over time: every counter as a rate per interval, every gauge as read, on one axis.

Seconds count from the begin of phase `measure` (negative before it) and a rate stands at the middle of its
interval. Unlike the quantities of a window, series reach over the whole recording. Keys are those of the
quantities, e.g. `cpu.server.user`, `disk.vda.write_sectors`, `mysql.pages_flushed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.reading.cpusets import cpuset, user_hz
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.series.axis import Floats, read_axis
from loadprint.series.labels import label_of
from loadprint.series.probe_table import Table, any_requested, is_requested
from loadprint.series.readers import readers
from loadprint.series.throughput import intervals

TimedSeries = tuple[str, Floats, Floats, Floats | float]


@dataclass(frozen=True)
class Series:
    """One figure over time.

    `seconds` and `values` are float64 arrays of one length, shape (intervals,): base units per second for a
    counter, the reading for a gauge. NaN where a tick was missed, a read failed or a counter began anew.
    `half` is half the length of each value's interval in seconds, shape (intervals,); 0 for a reading.
    """

    key: str
    label: str
    unit: str
    seconds: Floats
    values: Floats
    half: Floats | float = 0.0


@dataclass(frozen=True)
class Span:
    """A phase of the load on the axis of the series; `end_s` is None where it never ended."""

    name: str
    begin_s: float
    end_s: float | None


def phases(run: Run) -> tuple[Span, ...]:
    """Phases in the order they began, in seconds since the begin of `measure`; empty without a generator."""
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
    """All series of a run by key, or those of `names`: keys, or the begin of some ("mysql", "disk.vda").

    What was not recorded is not in the mapping. Raises InputError naming the file that cannot be used.
    """
    found: dict[str, Series] = {}
    for key, seconds, values, half in (*_generator(run, store, names), *_recorders(run, store, names)):
        known = np.isfinite(values)
        if is_requested(key, names) and known.any():
            label, unit = label_of(key)
            found.setdefault(key, Series(key, label, unit, seconds, np.where(known, values, np.nan), half))
    return found


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
                if role != "load" or _of_load(key):
                    # what was read has a value for every read, what was counted between two one fewer
                    between = len(seconds) < len(grid.seconds)
                    yield key, seconds, values, np.diff(grid.seconds) / 2 if between else 0.0


def _is_of(what: str, role: str, side: str) -> bool:
    """Whether a reader is one of a role's recorder for a side's CPU set: devices are the server's alone."""
    return what == "cpus" or (side == role and (what == "role" or role != "load"))


def _of_load(key: str) -> bool:
    """Whether a key of the load host's recorder is the load's, and not of another role's process there."""
    return key.split(".")[1] == "load"


def _cpu_sets(run: Run, role: str) -> list[tuple[str, tuple[int, ...] | None]]:
    """The CPU sets that a role's tables hold: on a shared host the load's too, if somebody named it."""
    if role == "load":
        return [("load", cpuset(run, "load"))]
    shared = "load" not in run.roles and cpuset(run, "load") is not None
    return [("server", cpuset(run, "server")), *([("load", cpuset(run, "load"))] if shared else [])]


def _generator(run: Run, store: Store, names: Sequence[str] | None) -> Iterator[TimedSeries]:
    """Of each interval of the measure phase: `load.events` …, and of an open loop its backlog."""
    found = intervals(run, store) if any_requested("load", names) else None
    if found is None:
        return
    middle, half = (found.begins + found.ends) / 2, found.lengths / 2
    for name in found.totals:
        yield f"load.{name}", middle, found.rates(name), half
    for name, values in found.states.items():
        unit = 1e-3 if name.endswith("_ms") else 1.0
        yield f"load.{name.removesuffix('_ms')}", middle, values * unit, half
