"""Reads counts, times and quantiles from the eBPF tables and the server's statement histogram.

All columns are cumulative, so buckets are only fetched at both ends of each segment and around resets. An
entity without a row at the first reading counts from zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.formula import figure
from loadprint.metrics.quantities import NOT_KNOWN
from loadprint.metrics.rates import CounterCourse, Source
from loadprint.reading.columns import EBPF_COUNTERS, EBPF_HISTOGRAMS
from loadprint.reading.counters import SIZES, edges, increase
from loadprint.reading.histograms import Histogram, bounds
from loadprint.reading.histograms import increase as increase_of_counts
from loadprint.reading.queries import Columns, Members, doubles, grouped, select_list, together

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
MIN_VALUES = {"p99": 100, "p999": 10_000}  # for such a quantile
TOO_FEW = {
    "p99": f"p99 of fewer than {MIN_VALUES['p99']} values is their maximum",
    "p999": f"p99.9 of fewer than {MIN_VALUES['p999']:,} values depends on fewer than ten of them",
}
BUCKETS = "buckets"
ROUND_TRIPS = "ebpf_tcp.port.accepted"  # of the server's port, for all peers
EMPTY = "empty"  # the object whose program does nothing
SYNCS = frozenset({"fsync", "fdatasync"})


def ebpf(source: Source) -> None:
    """All eBPF tables as `<table>.<entity>….<column>`, and the quantiles of their histograms.

    `mysql_statements` is the server's histogram of all statements; it has no sum.
    """
    for probe, keys in EBPF_HISTOGRAMS.items():
        _histograms(source, probe, keys, "sum_ns")
    _histograms(source, "ebpf_block_size", ("device", "operation"), "sum_bytes")
    _histograms(source, "mysql_statements", ("statements",), None)
    _round_trips(source)
    for probe in EBPF_COUNTERS:
        _counters(source, probe)
    _syscalls(source)


def scheduler(source: Source) -> None:
    """Only the tables that grow with concurrency: off-CPU time by reason, switches."""
    _histograms(source, "ebpf_sched", EBPF_HISTOGRAMS["ebpf_sched"], "sum_ns")
    _counters(source, "ebpf_switches")


def programs(source: Source) -> None:
    """CPU time of the recorder's own eBPF programs as `programs.<object>:<program>.<figure>`, in cores.

    `cpu` is the calls on all CPUs × the time of a call, which the kernel measured for the first seconds of
    the recording; a program without a call in them has that of the most expensive one. `server_cpu` is the
    part of the server's CPUs, absent if the recorder did not get them.
    """
    probe, keys = "ebpf_programs", ("object", "program", "cpus")
    rows = readings(source, probe, keys, doubles(("run_time_ns", "run_cnt", "calls")))
    if rows is None:
        source.out.mark_missing("programs.", source.window.why_missing(probe))
        return
    calls: dict[str, dict[str, float]] = {}
    for (owner, program, cpus), risen in increases(source, probe, rows, keys, ("calls",)):
        if owner != EMPTY:
            calls.setdefault(f"{owner}:{program}", {})[cpus] = risen["calls"]
    times = _times_of_calls(rows, source.unit(f"{probe}.run_time_ns"))
    for name, by_cpus in calls.items():
        if not (by_cpus["all"] >= 0 and times):
            source.out.mark_missing(f"programs.{name}.", f"{probe}: {NOT_KNOWN}")
            continue
        source.out.entities["programs"].add((name,))
        per_s = times.get(name, max(times.values())) / source.seconds(probe)
        cores = {cpus: risen * per_s for cpus, risen in by_cpus.items()}
        source.out.put(f"programs.{name}.cpu", cores["all"])
        if "server" in cores:
            # it is read after the sum of all CPUs and can be a few calls ahead
            source.out.put(f"programs.{name}.server_cpu", min(cores["server"], cores["all"]))


def _times_of_calls(rows: Columns, unit: float) -> dict[str, float]:
    """The seconds of a call of each program, by the last reading that has them.

    Without those that the kernel measures of a program that does nothing.
    """
    names = ("object", "program", "run_time_ns", "run_cnt")
    # an hour has a hundred thousand rows
    last = rows["tick"] == rows["tick"][rows["run_cnt"] > 0].max(initial=0)
    costs, empty = {}, 0.0
    for owner, program, time, count in zip(*(rows[name][last].tolist() for name in names), strict=True):
        if count > 0 and time > 0:
            if owner == EMPTY:
                empty = time / count * unit
                continue
            costs[f"{owner}:{program}"] = time / count * unit
    return {name: max(0.0, cost - empty) for name, cost in costs.items()}


def readings(
    source: Source,
    probe: str,
    keys: Sequence[str],
    columns: Mapping[str, str],
    courses: Mapping[str, tuple[str, float]] | None = None,
) -> Columns | None:
    """Rows of the probe's readings in the window, ordered by tick, with a warning of resets.

    `columns` are SQL expressions by name; `courses` has the last word and the unit of those with a series.
    None below two readings.
    """
    rows = _scanned(source, probe, keys, columns, courses)
    if rows is not None:
        _noted_resets(source, probe, rows, tuple(columns))
    return rows


def _scanned(
    source: Source,
    probe: str,
    keys: Sequence[str],
    columns: Mapping[str, str],
    courses: Mapping[str, tuple[str, float]] | None = None,
) -> Columns | None:
    path = source.run.table(source.window.role, probe)
    if path is None or not source.window.read.get(probe) or source.seconds(probe) <= 0:
        source.out.mark_missing(f"{probe}.", source.window.why_missing(probe))
        return None
    charted = courses if courses and source.charted else {}
    between = None if charted else [source.window.ends(probe)]
    rows = _named(source.store.fetch(path, _selected(keys, columns), between=between), probe, keys)
    source.out.entities[probe].update(zip(*(rows[key].tolist() for key in keys), strict=True))
    _series(source, probe, rows, charted)
    return source.inside(probe, rows)


def _buckets(
    source: Source, probe: str, keys: Sequence[str], rows: Columns, columns: Collection[str]
) -> Columns:
    """Rows with the buckets at the first and last reading of each segment and around resets, ordered by tick.

    Those of every reading would take longer than the rest of a comparison. `rows` are those of `_scanned`.
    """
    path = source.run.table(source.window.role, probe)
    assert path is not None
    grid, resets = source.window.grids[probe], _noted_resets(source, probe, rows, tuple(columns))
    ends = grid.ticks[grid.read][np.concatenate(edges(grid.segment[grid.read]))]
    at = sorted({*ends.tolist(), *(tick for reset in resets for tick in reset)})
    at_ends = source.store.fetch(path, _selected(keys, {BUCKETS: BUCKETS}), at=at)
    return _named(at_ends, probe, keys)


def _series(source: Source, probe: str, rows: Columns, courses: Mapping[str, tuple[str, float]]) -> None:
    """Series of entities; before its first event an entity has no rows and counted 0."""
    grid = source.window.grids[probe]
    for name, places in grouped(rows["name"]) if courses else ():
        members = _entity(rows, places, courses, grid.ticks)
        for column, (word, unit) in courses.items():
            course = CounterCourse(grid)
            course.add(replace(members, recorded=members.present), column, None)
            source.out.add_series(f"{name}.{word}", course.series(unit))


def _entity(rows: Columns, places: NDArray[np.intp], columns: Iterable[str], ticks: NDArray[Any]) -> Members:
    """Some columns of one entity at all ticks; before its first row it counted 0."""
    of_one = {column: rows[column][places] for column in ("tick", "name", *columns)}
    return together(of_one, "name", ticks).born_at_zero()


def _selected(keys: Sequence[str], columns: Mapping[str, str]) -> str:
    return f"SELECT tick, {', '.join(keys)}, {select_list(columns)} FROM t ORDER BY tick"


def _named(rows: Columns, table: str, keys: Sequence[str]) -> Columns:
    """The rows with the names of their entities."""
    names = [".".join([table, *parts]) for parts in zip(*(rows[key].tolist() for key in keys), strict=True)]
    rows["name"] = np.array(names, dtype=object)
    return rows


def _noted_resets(source: Source, probe: str, rows: Columns, figures: Sequence[str]) -> list[tuple[int, int]]:
    """The ticks before and after each reset of an entity in a segment, with a warning."""
    resets: set[tuple[int, int]] = set()
    segment = source.segments(probe, rows["tick"])
    for _, places in grouped(rows["name"]):
        ticks = rows["tick"][places].astype(int)
        fell = np.logical_or.reduce([np.diff(rows[figure][places]) < 0 for figure in figures])
        fell &= np.diff(segment[places]) == 0
        resets |= set(zip(ticks[:-1][fell].tolist(), ticks[1:][fell].tolist(), strict=True))
    if resets:
        source.out.warnings.append(f"{probe} was reset {len(resets)}x; counted from zero after each reset")
    return sorted(resets)


def increases(
    source: Source, probe: str, rows: Columns, keys: Sequence[str], figures: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
    """Entity, and the increase of its counters over the segments; NaN where it is not known.

    That of a counter which was not read at both ends is its rate times the length of the segments.
    """
    grid, whole = source.window.grids[probe], source.seconds(probe)
    ticks, at, of = grid.ticks[grid.read], grid.seconds[grid.read], grid.segment[grid.read]
    for _, places in grouped(rows["name"]):
        amounts, values = {}, _entity(rows, places, figures, ticks).values
        for name in figures:
            risen = increase(values[name][0], SIZES[-1], of)
            share = whole / (at[risen.last] - at[risen.first]).sum() if risen else 0.0
            amounts[name] = risen.amount * share if risen else float("nan")
        yield tuple(str(rows[key][places[0]]) for key in keys), amounts


def _counted(
    source: Source, probe: str, rows: Columns, places: NDArray[np.intp], edges: NDArray[np.float64]
) -> Histogram | None:
    """The values that an entity counted over the segments, from zero if it appeared in one."""
    readings, of = list(rows["buckets"][places]), source.segments(probe, rows["tick"][places])
    grid = source.window.grids[probe]
    if rows["tick"][places[0]] > grid.ticks[grid.segment == of[0]][0]:
        readings, of = [np.zeros_like(readings[0]), *readings], np.append(of[0], of)
    return increase_of_counts(readings, edges, of)


def _histograms(source: Source, probe: str, keys: Sequence[str], total: str | None) -> None:
    unit = source.unit(f"{probe}.{BUCKETS}")
    summed = {"total": f"{total}::DOUBLE" if total else f"list_sum({BUCKETS})::DOUBLE"}
    courses = {"total": ("sum_ns", unit)} if total == "sum_ns" else None
    scanned = _scanned(source, probe, keys, summed, courses)
    path = source.run.table(source.window.role, probe)
    if scanned is None or path is None:
        return
    rows = _buckets(source, probe, keys, scanned, summed)
    bounds_of = bounds(source.store.metadata(path))
    seconds = source.seconds(probe)
    sums = {of: risen["total"] for of, risen in increases(source, probe, scanned, keys, ("total",))}
    for name, places in grouped(rows["name"]):
        entity = tuple(str(rows[key][places[0]]) for key in keys)
        counted = _counted(source, probe, rows, places, bounds_of)
        if counted is None:
            reason = NOT_KNOWN if len(bounds_of) else "its histograms have no bounds"
            source.out.mark_missing(f"{name}.", f"{probe}: {reason}")
            continue
        source.out.histograms[probe, *entity] = counted
        source.out.put(f"{name}.buckets", counted.total / seconds, float(counted.total))
        if total:
            source.out.put(f"{name}.{total}", sums[entity] * unit / seconds)
        _quantiles(source, name, counted, unit)


def _quantiles(source: Source, name: str, counted: Histogram, unit: float) -> None:
    for word, share in QUANTILES.items():
        if not counted.total:
            source.out.mark_missing(figure(word, f"{name}.buckets"), "did not occur in the window")
        elif counted.total < MIN_VALUES.get(word, 1):
            source.out.mark_missing(figure(word, f"{name}.buckets"), TOO_FEW[word])
        else:
            source.out.put(figure(word, f"{name}.buckets"), counted.quantile(share) * unit)


def _round_trips(source: Source) -> None:
    """TCP to the server's port: `ROUND_TRIPS.retransmits`, and the figures of `ROUND_TRIPS.buckets`.

    Of the accepting side of the connections, for all peers; of all ports if the server's is unknown.
    """
    probe = "ebpf_tcp"
    counters, keys = ("retransmits", "opened"), ("port", "side", "peer")
    scanned = _scanned(source, probe, keys, doubles(counters))
    path = source.run.table(source.window.role, probe)
    if scanned is None or path is None:
        source.out.mark_missing(probe, source.window.why_missing(probe))
        return
    port = str(source.run.server.variables.get("port", ""))

    def accepted(rows: Columns) -> Columns:
        chosen = (rows["side"] == "accepted") & ((rows["port"] == port) if port else True)
        return {name: values[chosen] for name, values in rows.items()}

    rows, scanned = accepted(_buckets(source, probe, keys, scanned, counters)), accepted(scanned)
    if not len(rows["tick"]):
        to_port = f" to port {port}, of those with rows of their own," if port else ""
        source.out.mark_missing(probe, f"no TCP connection{to_port} was accepted in the window")
        return
    bounds_of = bounds(source.store.metadata(path))
    parts = [_counted(source, probe, rows, places, bounds_of) for _, places in grouped(rows["name"])]
    counts = [part for part in parts if part is not None]
    if len(counts) < len(parts):
        source.out.mark_missing(probe, f"{probe}: {NOT_KNOWN}")
        return
    counted = Histogram(np.sum([part.counts for part in counts], axis=0), bounds_of)
    unit = source.unit(f"{probe}.{BUCKETS}")
    _quantiles(source, ROUND_TRIPS, counted, unit)
    source.out.put(figure("mean", f"{ROUND_TRIPS}.buckets"), counted.mean() * unit)
    for name in counters:
        risen = sum(increase[name] for _, increase in increases(source, probe, scanned, keys, counters))
        source.out.put(f"{ROUND_TRIPS}.{name}", risen / source.seconds(probe), risen)


def _counters(source: Source, probe: str) -> None:
    keys, fields = EBPF_COUNTERS[probe]
    rows = readings(source, probe, keys, doubles(fields), {field: (field, 1.0) for field in fields})
    if rows is None:
        return
    seconds = source.seconds(probe)
    for entity, increased in increases(source, probe, rows, keys, fields):
        name = ".".join((probe, *entity))
        for field, risen in increased.items():
            if risen >= 0:
                source.out.put(f"{name}.{field}", risen / seconds, risen)
            else:
                source.out.mark_missing(f"{name}.{field}", f"{probe}: {NOT_KNOWN}")


def _syscalls(source: Source) -> None:
    """Sums over calls: `ebpf_syscalls.<role>.syscalls` and `.syncs`."""
    counts = {
        (role, call): quantity
        for role, call in source.out.entities["ebpf_syscalls"]
        if (quantity := source.out.get(f"ebpf_syscalls.{role}.{call}.count"))
    }
    for role in {role for role, _ in counts}:
        for word, calls in (("syscalls", None), ("syncs", SYNCS)):
            chosen = [
                q for (of, call), q in counts.items() if of == role and (calls is None or call in calls)
            ]
            source.out.total(f"ebpf_syscalls.{role}.{word}", chosen)
