"""What a run did over time: every counter as a rate per interval, every gauge as read, on one axis.

Seconds count from the begin of phase `measure` (negative before it) and a rate stands at the middle of its
interval. Unlike the quantities of a window, series reach over the whole recording. Keys are those of the
quantities, e.g. `cpu.server.user`, `disk.vda.write_sectors`, `mysql.pages_flushed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import ibis
import numpy as np

from loadprint.errors import InputError
from loadprint.reading import bounds
from loadprint.reading.cpusets import cpuset, user_hz
from loadprint.reading.queries import MEND, Columns, Store, number
from loadprint.reading.recording import Phase, Run
from loadprint.series.axis import Floats, origin
from loadprint.series.labels import label_of
from loadprint.series.table import Table, any_asked, asked
from loadprint.series.tables import readers

Lasting = tuple[str, Floats, Floats, Floats | float]
SHORTEST = 0.1  # seconds; a shorter last interval has no rate worth showing
OVERTIME_NS = 3600e9  # by which the last interval may end after its phase: events under way are waited for


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
        if asked(key, names) and not np.isnan(values).all():
            label, unit = label_of(key)
            found.setdefault(key, Series(key, label, unit, seconds, values, half))
    return found


def _recorders(run: Run, store: Store, names: Sequence[str] | None) -> Iterator[Lasting]:
    for role in run.roles:
        chosen = [
            (side, cpus, reader)
            for side, cpus in _cpu_sets(run, role)
            for reader in readers(side)
            if _is_of(reader.of, role, side) and any_asked(reader.prefix, names)
        ]
        probes = sorted({reader.probe for _, _, reader in chosen})
        axis = origin(run, role, store, probes) if probes else None
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


def _generator(run: Run, store: Store, names: Sequence[str] | None) -> Iterator[Lasting]:
    """Of each second of the measure phase: `load.events` …, and of an open loop its backlog."""
    path = run.path / "load" / "throughput.parquet"
    measure = run.phase("measure")
    if not path.is_file() or measure is None or not any_asked("load", names):
        return
    known = store.columns(path)
    sums = {
        name: number(ibis._[name]).sum()
        for name in ("events", "queries", "reads", "writes", "commits", "errors", "reconnects", "rows")
        if name in known
    }
    most = {
        name: number(ibis._[name]).max()
        for name in ("monotonic_ns", "latency_p95_ms", "backlog", "concurrency")
        if name in known
    }
    rows = store.fetch(
        path, lambda t: t.group_by(second=number(t.second)).agg(**sums, **most).order_by("second")
    )
    _require_in_run(path, rows, measure)
    grid = _seconds_of(rows.pop("second"), rows.pop("monotonic_ns", None), measure.begin_ns)
    for name, values in rows.items():
        rate = grid.rates(values) if name in sums else values * (1e-3 if name.endswith("_ms") else 1.0)
        yield f"load.{name.removesuffix('_ms')}", grid.middle, rate, grid.length / 2


def _require_in_run(path: Path, rows: Columns, measure: Phase) -> None:
    """Raise InputError where a second ended outside of the measure phase: a chart would reach there."""
    if len(rows["second"]) > bounds.POINTS:
        raise InputError(path, f"holds more than {bounds.POINTS:,} seconds", MEND)
    ends = rows.get("monotonic_ns")
    if ends is None or measure.end_ns is None:
        return
    outside = (ends < measure.begin_ns) | (ends > measure.end_ns + OVERTIME_NS)
    if outside.any():
        second = rows["second"][np.argmax(outside)]
        raise InputError(path, f"the stamp of its second {second:g} is not within phase `measure`", MEND)


@dataclass(frozen=True)
class _Seconds:
    """The generator's intervals: middles and lengths in seconds."""

    middle: Floats
    length: Floats

    def rates(self, totals: Floats) -> Floats:
        """Totals of each interval as rates; NaN where the interval is too short to tell."""
        usable = self.length >= SHORTEST
        out: Floats = np.divide(totals, self.length, out=np.full(len(totals), np.nan), where=usable)
        return out


def _seconds_of(second: Floats, end_ns: Floats | None, begin_ns: int) -> _Seconds:
    """By the stamps of their ends; whole seconds where there are none, the last of them of unknown length."""
    if end_ns is None or np.isnan(end_ns).any():
        length = np.ones(len(second))
        length[-1:] = 0.0
        return _Seconds(second + 0.5, length)
    ends = (end_ns - begin_ns) / 1e9
    begins = np.concatenate([[0.0], ends[:-1]])
    return _Seconds((begins + ends) / 2, ends - begins)
