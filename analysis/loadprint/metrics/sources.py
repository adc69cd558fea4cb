"""Reads the quantities of the host and process probes over the window, one function per probe."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.formula import figure
from loadprint.metrics.quantities import NOT_KNOWN, Quantities
from loadprint.reading.columns import (
    CPU_FIELDS,
    CPU_HOST_FIELDS,
    NUMBER,
)
from loadprint.reading.counters import Floats, rises, size_of
from loadprint.reading.cpusets import at_once, host_cpus
from loadprint.reading.queries import (
    Columns,
    Store,
    among,
    by_entity,
    doubles,
    listed,
    quote,
    sums,
    together,
)
from loadprint.reading.recording import Run
from loadprint.reading.units import factor
from loadprint.reading.window import Window

SERVER = "process.server."
PROCESS_FIELDS = ("utime", "stime", "read_bytes", "write_bytes", "minflt", "majflt")
TIME_LOST = 0.05  # of elapsed time: more is not rounding to ticks
SERVER_ENDED = (
    "the server's process ended in the window and no later one was found; "
    "name a server that restarts by its pid file (--process server=@FILE)"
)
SERVER_RESTARTED = (
    "the server restarted in the window: CPU time before the first reading of a process and after its last "
    "one is not counted, and time without a server is not recorded in the time ledger"
)


@dataclass(frozen=True)
class Source:
    """The run and window that a probe's table is read from, and the quantities it is added to.

    `charted`: with series, over the whole recording.
    """

    run: Run
    window: Window
    store: Store
    out: Quantities
    charted: bool = False

    def rows(self, probe: str, query: str, *, whole: bool = False) -> Columns | None:
        """Rows of a SELECT from a probe's table `t`, inside the window, by tick; None without a table.

        `whole`: of all ticks if there are series, which need them.
        """
        path = self.run.table(self.window.role, probe)
        if path is None or probe not in self.window.middle_ns:
            return None
        between = None if whole and self.charted else self.window.ends(probe)
        return self.store.fetch(path, f"{query} ORDER BY tick", between=between)

    def inside(self, probe: str, rows: Columns) -> Columns:
        """Those rows of all ticks that are inside the window."""
        first, last = self.window.ends(probe)
        begin, end = np.searchsorted(rows["tick"], first), np.searchsorted(rows["tick"], last, side="right")
        return {name: values[begin:end] for name, values in rows.items()}

    def seconds(self, probe: str, ticks: Floats) -> float:
        """Seconds between the reads of the first and the last of `ticks`."""
        stamps = self.window.middle_ns[probe]
        begin, end = stamps.get(int(ticks[0])), stamps.get(int(ticks[-1]))
        return 0.0 if begin is None or end is None else (end - begin) / 1e9

    def counter(self, column: str, name: str, rows: Columns, values: str) -> None:
        """Add a counter and its series from `column`, TABLE.COLUMN: `values` of rows of all ticks."""
        probe = column.partition(".")[0]
        self.course(column, name, rows[values], rows["tick"])
        inside = self.inside(probe, rows)
        if len(inside["tick"]) > 1:
            self.increase(column, name, inside[values], inside["tick"])
        else:
            self.out.mark_missing(name, NOT_KNOWN)

    def course(self, column: str, name: str, readings: Floats, ticks: Floats) -> None:
        """Add the series of a counter; `readings` at `ticks` as in `Grid.counter`."""
        if not self.charted:
            return
        probe, _, column = column.partition(".")
        size, unit = size_of(self.described(probe, column)), self.unit(probe, column)
        self.out.add_series(name, self.window.grids[probe].counter(ticks, readings, unit, size))

    def increase(self, column: str, name: str, readings: Floats, ticks: Floats) -> None:
        """Add a counter from `column`, TABLE.COLUMN; `readings` at `ticks` as in `Quantities.counter`."""
        probe, _, column = column.partition(".")
        seconds, described = self.seconds(probe, ticks), self.described(probe, column)
        if "imported" in self.run.meta and np.isnan(readings).all():
            self.out.mark_missing(name, f"this file has no value of {column}")
        self.out.counter(name, readings, seconds, self.unit(probe, column), size_of(described))
        if "imported" in self.run.meta:
            # the last printed digit of a mean per second
            try:
                step = float(described.get("resolution") or 0)
            except ValueError:
                return
            if step > 0:
                self.out.set_resolution(name, step * seconds)

    def described(self, probe: str, column: str) -> Mapping[str, Any]:
        """The metadata of a column or metric; empty without."""
        path = self.run.table(self.window.role, probe)
        return self.store.described(path, column) if path is not None else {}

    def unit(self, probe: str, column: str) -> float:
        """The unit of a column in base units. Raises InputError if it is not known.

        A metric without an entry is a count; nothing is known of one that an old version imported.
        """
        path = self.run.table(self.window.role, probe)
        if path is None:
            return math.nan
        unit = self.store.described(path, column).get("unit")
        if unit is None and self.has(probe, "metric"):
            return math.nan if "imported" in self.run.meta and probe == "vmstat" else 1.0
        return factor(path, column, unit, self.run)

    def has(self, probe: str, column: str) -> bool:
        """Whether a probe's table has a column."""
        path = self.run.table(self.window.role, probe)
        return path is not None and column in self.store.columns(path)


def cpu(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """CPU time of a set of CPUs (None: the whole host) as `cpu.<side>.<field>`, in cores."""
    parts = []
    reads = source.window.grids["cpu"].ticks if source.charted and "cpu" in source.window.grids else ()
    for some in at_once(cpus, len(reads) or len(source.window.middle_ns.get("cpu", ()))):
        # numbers, because texts would take most of the time
        number = "coalesce(try_cast(cpu AS BIGINT), -1) AS number"
        query = f"SELECT tick, {number}, {listed(doubles(CPU_FIELDS))} FROM t WHERE cpu IN {among(some)}"
        rows = source.rows("cpu", query, whole=True)
        inside = source.inside("cpu", rows) if rows is not None else {}
        ticks, readings, changed = together(inside, "number") if inside else (np.empty(0), {}, False)
        if rows is None or len(ticks) < 2:
            source.out.mark_missing(f"cpu.{side}", source.window.why_missing("cpu"))
            return
        part = replace(source, out=Quantities())
        everywhere, courses, _ = together(rows, "number") if source.charted else (ticks, readings, False)
        if changed:
            part.out.falls += 1
            part.out.warnings.append(f"a CPU of the {side} set went online or offline in the window")
        for name in CPU_FIELDS:
            part.increase(f"cpu.{name}", f"cpu.{side}.{name}", readings[name], ticks)
            part.course(f"cpu.{name}", f"cpu.{side}.{name}", courses[name], everywhere)
        part.out.put("cores", float(len(readings["idle"])))
        source.out.add_events(part.out)
        parts.append(part.out)
    for name in (f"cpu.{side}.{field}" for field in CPU_FIELDS):
        source.out.sum_series(name, [part.series.get(name) for part in parts])
        known = [time for part in parts if (time := part.get(name))]
        if len(known) < len(parts):
            source.out.mark_missing(name, next(part.why(name) for part in parts if not part.get(name)))
        else:
            source.out.total(name, known)
    times = math.fsum(time.rate for name in CPU_FIELDS if (time := source.out.get(f"cpu.{side}.{name}")))
    counted = math.fsum(part.values["cores"].rate for part in parts)
    cores = counted if cpus is not None else _host_cpus(source) or times
    source.out.put(f"cpu.{side}.cores", cores)
    if abs(times - cores) > TIME_LOST * cores:
        source.out.warnings.append(
            f"the CPU times of the {side} set add up to {100 * times / cores:.0f} % of elapsed time × CPUs; "
            "its shares are of the latter"
        )


def _host_cpus(source: Source) -> float:
    """Number of the host's CPUs; 0 if the table has only the sum of all, as some imported ones."""
    rows = source.rows("cpu", "SELECT tick, count(*)::DOUBLE AS seen FROM t WHERE cpu <> 'all' GROUP BY tick")
    return float(rows["seen"][-1]) if rows is not None and len(rows["seen"]) else 0.0


def host(source: Source) -> None:
    """Context switches, interrupts and forks of the whole host as `host.<field>`."""
    query = f"SELECT tick, {listed(doubles(CPU_HOST_FIELDS))} FROM t WHERE cpu = 'all'"
    rows = source.rows("cpu", query, whole=True)
    if rows is None or len(rows["tick"]) < 2:
        source.out.mark_missing("host", source.window.why_missing("cpu"))
        return
    for name in CPU_HOST_FIELDS:
        source.counter(f"cpu.{name}", f"host.{name}", rows, name)


def interrupts(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """Interrupts and softirqs on a set of CPUs as `interrupts.<side>` and `softirqs.<side>`."""
    if cpus is None:
        wanted: list[str] | None = ["all"]
    elif tuple(cpus) == host_cpus(source.run, source.window.role):
        wanted = None
    else:
        wanted = [side, *map(str, cpus)]
    for probe, key in (("interrupts", "line"), ("softirqs", "kind")):
        rows = source.rows(probe, _totals(key, side, wanted), whole=True)
        if rows is None or len(rows["tick"]) < 2:
            reason = (
                source.window.why_missing(probe) if rows is None else f"{probe} has no rows of these CPUs"
            )
            source.out.mark_missing(f"{probe}.{side}", reason)
            continue
        # the sum that the source recorded, if it did
        totals = "parts" if np.isnan(source.inside(probe, rows)["whole"]).any() else "whole"
        source.counter(f"{probe}.count", f"{probe}.{side}", rows, totals)


def _totals(key: str, side: str, wanted: Sequence[str] | None) -> str:
    """Sums of all lines over some CPUs, or over all CPUs: the recorder writes one row for each CPU."""
    whole, part, chosen = f"cpus = {quote(side)}", f"cpus <> {quote(side)}", f"cpus IN {among(wanted or ())}"
    if wanted is None:
        whole, part, chosen = "cpus = 'all'", f"regexp_matches(cpus, {quote(NUMBER)})", "true"
    return (
        f'SELECT tick, max("count"::DOUBLE) FILTER ({whole}) AS whole,'
        f' sum("count"::DOUBLE) FILTER ({part}) AS parts'
        f" FROM t WHERE {key} = 'all' AND {chosen} GROUP BY tick"
    )


def storage(source: Source, columns: Collection[str]) -> None:
    """The disks of the server's files as `storage.<role>.<column>`, with role data, redo or binlog."""
    for entry in source.run.fingerprint(source.window.role).get("storage") or []:
        disks = entry.get("disks") or []
        for name in {each.rpartition(".")[2] for each in columns}:
            parts = [part for disk in disks if (part := source.out.get(f"disk.{disk}.{name}"))]
            if parts and len(parts) == len(disks):
                source.out.total(f"storage.{entry.get('role')}.{name}", parts)
    source.out.mark_missing("storage", "the fingerprint does not list the disks of the server's files")


def process(source: Source) -> None:
    """CPU, memory and I/O of each role's processes as `process.<role>.<field>`; CPU in cores, rss in B."""
    units = {name: source.unit("process", name) for name in PROCESS_FIELDS}
    values = listed({"starttime": _start_time(source)} | doubles(("pid", "rss", *units)))
    _process_series(source, units)  # first: its queries need memory, and have small results
    rows = source.rows("process", f"SELECT tick, role, {values} FROM t")
    if rows is None:
        source.out.mark_missing("process", source.window.why_missing("process"))
        return
    for role, series in by_entity(rows, "role"):
        lives, seconds = _lives(series), source.seconds("process", series["tick"])
        if role == "server" and source.run.result and series["tick"][-1] < source.window.ends("process")[1]:
            source.out.mark_missing(SERVER, SERVER_ENDED)
            continue
        if role == "server" and _is_succeeded(series["tick"], lives.values()):
            source.out.warnings.append(SERVER_RESTARTED)
        for name, unit in units.items():
            readings = {life: series[name][chosen] for life, chosen in lives.items()}
            _sum_of_processes(source, f"process.{role}.{name}", readings, seconds, unit)
        both = [part for name in ("utime", "stime") if (part := source.out.get(f"process.{role}.{name}"))]
        if len(both) == 2:
            source.out.total(f"process.{role}.cpu", both)
        if not np.isnan(series["rss"]).all():
            unit = source.unit("process", "rss")
            source.out.put(figure("max", f"process.{role}.rss"), float(np.nanmax(series["rss"])) * unit)


def _process_series(source: Source, units: Mapping[str, float]) -> None:
    """CPU time, I/O and resident memory of each role's processes together."""
    if not source.charted:
        return
    entity = ["role", "pid", *(["starttime"] if source.has("process", "starttime") else [])]
    courses = source.rows("process", summed_rises(tuple(units), entity, born_at_zero=False), whole=True)
    resident = source.rows(
        "process", "SELECT role, tick, sum(rss::DOUBLE) AS rss FROM t GROUP BY ALL", whole=True
    )
    if courses is None or resident is None:
        return
    grid, page = source.window.grids["process"], source.unit("process", "rss")
    for role, series in by_entity(courses, "role"):
        for name, unit in units.items():
            source.out.add_series(f"process.{role}.{name}", grid.rises(series["tick"], series[name], unit))
        times = [source.out.series.get(f"process.{role}.{name}") for name in ("utime", "stime")]
        source.out.sum_series(f"process.{role}.cpu", times)
    for role, series in by_entity(resident, "role"):
        source.out.readings[f"process.{role}.rss"] = grid.gauge(series["tick"], series["rss"] * page)


def summed_rises(columns: Sequence[str], entity: Sequence[str], *, born_at_zero: bool) -> str:
    """SELECT of the increase of each column since the entity's previous reading, summed by role and tick."""
    risen = rises("t", columns, entity, "(SELECT min(tick) FROM t)" if born_at_zero else None)
    return f"SELECT role, tick, {listed(sums(columns))} FROM ({risen}) GROUP BY role, tick"


def _start_time(source: Source) -> str:
    """Start time of a process; 0 if an imported table has none."""
    return "coalesce(starttime::DOUBLE, 0.0)" if source.has("process", "starttime") else "0.0::DOUBLE"


def reused_pids(source: Source) -> list[tuple[float, float]]:
    """Pid and first tick of every process that got the pid of an earlier one within the window."""
    lives = source.rows(
        "process",
        f"SELECT pid::DOUBLE AS pid, {_start_time(source)} AS starttime, min(tick)::DOUBLE AS tick"
        " FROM t GROUP BY ALL",
    )
    if lives is None:
        return []
    seen: set[float] = set()
    again = []
    for pid, tick in zip(lives["pid"].tolist(), lives["tick"].tolist(), strict=True):
        if pid in seen:
            again.append((pid, tick))
        seen.add(pid)
    return again


def _lives(series: Columns) -> dict[str, NDArray[np.bool_]]:
    """The rows of each process: a process with a reused pid has another start time."""
    return {
        f"{pid:.0f} of {start:.0f}": (series["pid"] == pid) & (series["starttime"] == start)
        for pid, start in np.unique(np.stack([series["pid"], series["starttime"]]), axis=1).T
    }


def _is_succeeded(ticks: Floats, lives: Iterable[NDArray[np.bool_]]) -> bool:
    """Whether a process appeared after another one had ended."""
    ends = [(ticks[chosen][0], ticks[chosen][-1]) for chosen in lives]
    return bool(max(first for first, _ in ends) > min(last for _, last in ends))


def _sum_of_processes(
    source: Source, name: str, readings: Mapping[str, Floats], seconds: float, unit: float
) -> None:
    """Add the increases of all processes of a role; one that ends in the window counts until its last read.

    All use the seconds of the window, because a process and its successor did not run at the same time.
    """
    parts = Quantities()
    for life, values in readings.items():
        if len(values) > 1:
            parts.counter(f"{name}: pid {life}", values, seconds, unit)
    source.out.sum_of(name, parts, "no readings: the recorder may not read this process's /proc files")
