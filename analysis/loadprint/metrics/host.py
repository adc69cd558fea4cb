"""Adds the quantities of the host and process probes, one function per probe."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from loadprint.catalogue.formula import figure
from loadprint.metrics.rates import Source
from loadprint.reading.columns import CPU_FIELDS, CPU_HOST_FIELDS
from loadprint.reading.cpusets import host_cpus
from loadprint.reading.queries import (
    Columns,
    among,
    by_entity,
    doubles,
    quote,
    select_list,
)

SERVER = "process.server."
WHOLE = "all"  # the host's CPUs together
PROCESS_FIELDS = ("utime", "stime", "read_bytes", "write_bytes", "minflt", "majflt")
PROCESS = "hash(pid, {})"  # and the start time
NOT_READ = "no readings: the recorder may not read this process's /proc files"
ADD_UP = "add up to"
TIME_LOST = 0.05  # of elapsed time: more is not rounding to ticks
SERVER_ENDED = (
    "the server's process ended in the window and no later one was found; "
    "name a server that restarts by its pid file (--process server=@FILE)"
)
SERVER_RESTARTED = (
    "the server restarted in the window: CPU time before the first reading of a process and after its last "
    "one is not counted, and time without a server is not recorded in the time ledger"
)


def cpu(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """CPU time of a set of CPUs (None: the whole host) as `cpu.<side>.<field>`, in cores."""
    names = {field: f"cpu.{side}.{field}" for field in CPU_FIELDS}
    chosen = _of_host(source) if cpus is None else list(map(str, cpus))
    summed = source.sum("cpu", names, "hash(cpu)", f"cpu IN {among(chosen)}")
    cores, changed = summed.number, summed.changed
    if not cores:
        source.out.mark_missing(f"cpu.{side}", source.window.why_missing("cpu"))
        return
    times = math.fsum(time.rate for name in names.values() if (time := source.out.get(name)))
    if chosen == [WHOLE]:
        cores, changed = _host_cpus(source, times)
    if changed:
        source.out.falls += 1
        source.out.warnings.append(f"a CPU of the {side} set went online or offline in the window")
        courses = [course for name in names.values() if (course := source.out.series.get(name))]
        source.out.sum_series(f"cpu.{side}.cores", courses)
    source.out.put(f"cpu.{side}.cores", cores)
    if abs(times - cores) > TIME_LOST * cores:
        source.out.warnings.append(f"the {side} set's CPU times {ADD_UP} {100 * times / cores:.0f} %")


def _of_host(source: Source) -> list[str]:
    """The kernel's sum over all CPUs, or every CPU: some imported tables have no sum of their times."""
    times = 'SELECT tick, cpu FROM t WHERE "user" IS NOT NULL'
    rows = source.rows("cpu", times) if source.run.meta.imported else None
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
    query = f"SELECT tick, {select_list(doubles(CPU_HOST_FIELDS))} FROM t WHERE cpu = 'all'"
    rows = source.rows("cpu", query, whole=True)
    if rows is None or len(rows["tick"]) < 2:
        source.out.mark_missing("host", source.window.why_missing("cpu"))
        return
    for name in CPU_HOST_FIELDS:
        source.counter(f"cpu.{name}", f"host.{name}", rows["tick"], rows[name])


def interrupts(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """Interrupts and softirqs on a set of CPUs as `interrupts.<side>` and `softirqs.<side>`.

    The sum that the source recorded, if it did, else that of the CPUs.
    """
    is_host = cpus is None or tuple(cpus) == host_cpus(source.run, source.window.role)
    for probe, key in (("interrupts", "line"), ("softirqs", "kind")):
        whole, of_all = WHOLE if is_host else side, f"{key} = 'all'"
        query = f'SELECT tick FROM t WHERE {of_all} AND cpus = {quote(whole)} AND "count" IS NOT NULL'
        recorded = source.rows(probe, query)
        is_sum = cpus is None or (recorded and len(recorded["tick"]) > 1)
        chosen = among([whole] if is_sum else map(str, cpus or ()))
        counted = source.sum(
            probe, {"count": f"{probe}.{side}"}, "hash(cpus)", f"{of_all} AND cpus IN {chosen}"
        )
        if not counted.number:
            reason = (
                source.window.why_missing(probe) if recorded is None else f"{probe} has no rows of these CPUs"
            )
            source.out.mark_missing(f"{probe}.{side}", reason)


def storage(source: Source, columns: Collection[str]) -> None:
    """The disks of the server's files as `storage.<role>.<column>`, with role data, redo or binlog."""
    for place in source.run.fingerprint(source.window.role).storage:
        for name in {column.rpartition(".")[2] for column in columns}:
            parts = [part for disk in place.disks if (part := source.out.get(f"disk.{disk}.{name}"))]
            if parts and len(parts) == len(place.disks):
                source.out.total(f"storage.{place.role}.{name}", parts)
    source.out.mark_missing("storage", "the fingerprint does not list the disks of the server's files")


def process(source: Source, only: str = "") -> None:
    """CPU, memory and I/O of each role's processes as `process.<role>.<field>`; CPU in cores, rss in B.

    `only` one role: that of another host has a recorder too.

    A process with a reused pid has another start time. One that ends counts until its last reading, and all
    use the seconds of the role, because a process and its successor did not run at the same time.
    """
    start = start_time(source)
    rows = source.rows(
        "process",
        f"SELECT tick, role, pid::DOUBLE AS pid, {start} AS starttime, rss::DOUBLE AS rss FROM t",
        whole=True,
    )
    if rows is None:
        source.out.mark_missing("process", source.window.why_missing("process"))
        return
    grid, page = source.window.grids["process"], source.unit("process.rss")
    for role, everywhere in by_entity(rows, "role"):
        series = source.inside("process", everywhere)
        if not len(series["tick"]) or only not in {"", role}:
            continue
        if role == "server" and source.run.result and series["tick"][-1] < source.window.ends("process")[1]:
            source.out.mark_missing(SERVER, SERVER_ENDED)
            continue
        if role == "server" and _is_succeeded(series):
            source.out.warnings.append(SERVER_RESTARTED)
        names = {name: f"process.{role}.{name}" for name in PROCESS_FIELDS}
        source.sum("process", names, PROCESS.format(start), f"role = {quote(role)}", optional=NOT_READ)
        times = [names["utime"], names["stime"]]
        both = [part for name in times if (part := source.out.get(name))]
        if len(both) == 2:
            source.out.total(f"process.{role}.cpu", both)
        source.out.sum_series(f"process.{role}.cpu", [source.out.series.get(name) for name in times])
        if not np.isnan(series["rss"]).all():
            source.out.put(figure("max", f"process.{role}.rss"), float(np.nanmax(series["rss"])) * page)
        if source.charted:
            ticks, at = np.unique(everywhere["tick"], return_inverse=True)
            resident = np.bincount(at, np.nan_to_num(everywhere["rss"]) * page).astype(np.float64)
            source.out.readings[f"process.{role}.rss"] = grid.gauge(ticks, resident)


def start_time(source: Source) -> str:
    """Start time of a process; 0 if an imported table has none."""
    return "coalesce(starttime::DOUBLE, 0.0)" if source.has("process", "starttime") else "0.0::DOUBLE"


def reused_pids(source: Source) -> list[tuple[float, float]]:
    """Pid and first tick of every process that got the pid of an earlier one within the window."""
    lives = source.rows(
        "process",
        f"SELECT pid::DOUBLE AS pid, {start_time(source)} AS starttime, min(tick)::DOUBLE AS tick"
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


def _is_succeeded(series: Columns) -> bool:
    """Whether a process appeared after another one had ended."""
    every = np.unique(np.stack([series["pid"], series["starttime"]]), axis=1).T
    lives = [series["tick"][(series["pid"] == pid) & (series["starttime"] == start)] for pid, start in every]
    return bool(max(life[0] for life in lives) > min(life[-1] for life in lives))
