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
from loadprint.reading.columns import CPU_FIELDS, CPU_HOST_FIELDS
from loadprint.reading.counters import Floats, Marks, rises, size_of
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
WHOLE = "all"  # the host's CPUs together
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
        """Rows of a SELECT from a probe's table `t` at its reads in the window, by tick; None without one.

        `whole`: of all reads if there are series, which need them.
        """
        path = self.run.table(self.window.role, probe)
        if path is None or probe not in self.window.middle_ns:
            return None
        between = None if whole and self.charted else self.window.ends(probe)
        rows = self.store.fetch(path, f"{query} ORDER BY tick", between=between)
        known = self.window.grids[probe].places(rows["tick"]) >= 0
        return rows if known.all() else {name: values[known] for name, values in rows.items()}

    def inside(self, probe: str, rows: Columns) -> Columns:
        """Those rows of all ticks that are inside the window."""
        first, last = self.window.ends(probe)
        begin, end = np.searchsorted(rows["tick"], first), np.searchsorted(rows["tick"], last, side="right")
        return {name: values[begin:end] for name, values in rows.items()}

    def times(self, probe: str, ticks: Floats) -> Floats:
        """The time of the probe's read at each tick in seconds; NaN where it was not read."""
        return self.window.grids[probe].times(ticks)

    def seconds(self, probe: str, first: float, last: float) -> float:
        """Seconds between the reads of two ticks; NaN if one of them was not read."""
        begin, end = self.times(probe, np.array([first, last]))
        return float(end - begin)

    def counter(self, column: str, name: str, rows: Columns, values: str) -> None:
        """Add a counter and its series from `column`, TABLE.COLUMN: `values` of rows of all ticks."""
        self.course(column, name, rows[values], rows["tick"])
        inside = self.inside(column.partition(".")[0], rows)
        self.increase(column, name, inside[values], inside["tick"])

    def course(
        self, column: str, name: str, readings: Floats, ticks: Floats, present: Marks | None = None
    ) -> None:
        """Add the series of a counter; `readings` at `ticks` as in `Grid.counter`."""
        if not self.charted:
            return
        probe, _, column = column.partition(".")
        size, unit = size_of(self.described(probe, column)), self.unit(probe, column)
        self.out.add_series(name, self.window.grids[probe].counter(ticks, readings, unit, size, present))

    def increase(
        self, column: str, name: str, readings: Floats, ticks: Floats, present: Marks | None = None
    ) -> None:
        """Add a counter from `column`, TABLE.COLUMN; `readings` at `ticks` as in `Quantities.counter`."""
        probe, _, column = column.partition(".")
        described, at = self.described(probe, column), self.times(probe, ticks)
        if len(ticks) < 2:
            self.out.mark_missing(name, NOT_KNOWN)
            return
        if "imported" in self.run.meta and np.isnan(readings).all():
            self.out.mark_missing(name, f"this file has no value of {column}")
        self.out.counter(name, readings, at, self.unit(probe, column), size_of(described), present=present)
        if "imported" in self.run.meta:
            # the last printed digit of a mean per second
            try:
                step = float(described.get("resolution") or 0)
            except ValueError:
                return
            if step > 0:
                self.out.set_resolution(name, step * float(at[-1] - at[0]))

    def sum(
        self, table: str, names: Mapping[str, str], member: str, members: Sequence[str], where: str = "true"
    ) -> tuple[float, bool]:
        """Add the sum over some members of each column of a table, the keys of `names`.

        `member` is the column of their texts, of which at most one is no number. Each counts for the time in
        which it has rows. Returns their mean number, 0 without two reads, and whether one came or went.
        """
        number, changed, parts = 0.0, False, []
        reads = len(self.window.grids[table].ticks) if table in self.window.grids else 0
        # numbers, because texts would take most of the time
        number_of = f"coalesce(try_cast({member} AS BIGINT), -1) AS member"
        query = f"SELECT tick, {number_of}, {listed(doubles(names))} FROM t WHERE {where} AND {member} IN "
        for some in at_once(members, reads):
            rows = self.rows(table, query + among(some), whole=True)
            inside = together(self.inside(table, rows), "member") if rows is not None else None
            if rows is None or inside is None or len(inside.ticks) < 2:
                return 0.0, False
            everywhere = together(rows, "member") if self.charted else inside
            part = replace(self, out=Quantities())
            for column, name in names.items():
                value = f"{table}.{column}"
                part.increase(value, name, inside.values[column], inside.ticks, inside.present)
                part.course(value, name, everywhere.values[column], everywhere.ticks, everywhere.present)
            at = self.times(table, inside.ticks)
            lives = [at[seen] for seen in inside.present]
            number += float(sum(life[-1] - life[0] for life in lives) / (at[-1] - at[0]))
            changed |= not inside.present.all()
            self.out.add_events(part.out)
            parts.append(part.out)
        for name in names.values():
            self.out.sum_series(name, [part.series.get(name) for part in parts])
            known = [one for part in parts if (one := part.get(name))]
            if len(known) < len(parts):
                self.out.mark_missing(name, next(part.why(name) for part in parts if not part.get(name)))
            else:
                self.out.total(name, known)
        return number, changed

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
    names = {field: f"cpu.{side}.{field}" for field in CPU_FIELDS}
    members = _of_host(source) if cpus is None else list(map(str, cpus))
    cores, changed = source.sum("cpu", names, "cpu", members)
    if not cores:
        source.out.mark_missing(f"cpu.{side}", source.window.why_missing("cpu"))
        return
    times = math.fsum(time.rate for name in names.values() if (time := source.out.get(name)))
    if members == [WHOLE]:
        cores, changed = _host_cpus(source, times)
    if changed:
        source.out.falls += 1
        source.out.warnings.append(f"a CPU of the {side} set went online or offline in the window")
        courses = [course for name in names.values() if (course := source.out.series.get(name))]
        source.out.sum_series(f"cpu.{side}.cores", courses)
    source.out.put(f"cpu.{side}.cores", cores)
    if abs(times - cores) > TIME_LOST * cores:
        source.out.warnings.append(
            f"the {side} set's CPU times are {100 * times / cores:.0f} % of elapsed time × CPUs; "
            "its shares are of the latter"
        )


def _of_host(source: Source) -> list[str]:
    """The kernel's sum over all CPUs, or every CPU: some imported tables have no sum of their times."""
    times = 'SELECT tick, cpu FROM t WHERE "user" IS NOT NULL'
    rows = source.rows("cpu", times) if "imported" in source.run.meta else None
    listed_cpus = sorted(set(rows["cpu"].tolist())) if rows is not None else []
    return [WHOLE] if WHOLE in listed_cpus or not listed_cpus else listed_cpus


def _host_cpus(source: Source, times: float) -> tuple[float, bool]:
    """Number of the host's CPUs, and whether it changed: then, or if only their sum was imported, `times`."""
    rows = source.rows(
        "cpu", f"SELECT tick, count(*)::DOUBLE AS seen FROM t WHERE cpu <> '{WHOLE}' GROUP BY tick"
    )
    seen = set(rows["seen"].tolist()) if rows is not None else set()
    return (seen.pop(), False) if len(seen) == 1 else (times, bool(seen))


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
    """Interrupts and softirqs on a set of CPUs as `interrupts.<side>` and `softirqs.<side>`.

    The sum that the source recorded, if it did, else that of the CPUs.
    """
    is_host = cpus is None or tuple(cpus) == host_cpus(source.run, source.window.role)
    for probe, key in (("interrupts", "line"), ("softirqs", "kind")):
        whole, of_all = WHOLE if is_host else side, f"{key} = 'all'"
        query = f'SELECT tick FROM t WHERE {of_all} AND cpus = {quote(whole)} AND "count" IS NOT NULL'
        recorded = source.rows(probe, query)
        members = (
            [whole] if cpus is None or (recorded and len(recorded["tick"]) > 1) else list(map(str, cpus))
        )
        number, _ = source.sum(probe, {"count": f"{probe}.{side}"}, "cpus", members, of_all)
        if not number:
            reason = (
                source.window.why_missing(probe) if recorded is None else f"{probe} has no rows of these CPUs"
            )
            source.out.mark_missing(f"{probe}.{side}", reason)


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
        lives, at = _lives(series), source.times("process", series["tick"])
        if role == "server" and source.run.result and series["tick"][-1] < source.window.ends("process")[1]:
            source.out.mark_missing(SERVER, SERVER_ENDED)
            continue
        if role == "server" and _is_succeeded(series["tick"], lives.values()):
            source.out.warnings.append(SERVER_RESTARTED)
        for name, unit in units.items():
            _sum_of_processes(source, f"process.{role}.{name}", series[name], at, unit, lives)
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
            course = grid.rises(series["tick"], series[f"since {name}"], series[name], unit)
            source.out.add_series(f"process.{role}.{name}", course)
        times = [source.out.series.get(f"process.{role}.{name}") for name in ("utime", "stime")]
        source.out.sum_series(f"process.{role}.cpu", times)
    for role, series in by_entity(resident, "role"):
        source.out.readings[f"process.{role}.rss"] = grid.gauge(series["tick"], series["rss"] * page)


def summed_rises(columns: Sequence[str], entity: Sequence[str], *, born_at_zero: bool) -> str:
    """SELECT of the increase of each column since the entity's previous reading, summed by role and ticks."""
    risen = rises("t", columns, entity, "(SELECT min(tick) FROM t)" if born_at_zero else None)
    since = listed(doubles(f"since {name}" for name in columns))
    return f"SELECT role, tick, {since}, {listed(sums(columns))} FROM ({risen}) GROUP BY ALL"


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


def _sum_of_processes(  # noqa: PLR0913, PLR0917
    source: Source, name: str, readings: Floats, at: Floats, unit: float, lives: Mapping[str, Marks]
) -> None:
    """Add the increases of all processes of a role; one that ends in the window counts until its last read.

    All use the seconds of the window, because a process and its successor did not run at the same time.
    """
    parts = Quantities()
    for life, chosen in lives.items():
        if chosen.sum() > 1:
            counter = f"{name}: pid {life}"
            parts.counter(counter, readings[chosen], at[chosen], unit, seconds=float(at[-1] - at[0]))
    source.out.sum_of(name, parts, "no readings: the recorder may not read this process's /proc files")
