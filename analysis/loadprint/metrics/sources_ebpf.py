"""Reads counts, times and quantiles from the eBPF tables and the server's statement histogram.

Buckets are cumulative, so only the readings at both ends of the window are fetched. An entity without a row
at the first reading counts from zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ibis
import numpy as np

from loadprint.metrics.sources import Source
from loadprint.reading.columns import EBPF_COUNTERS, EBPF_HISTOGRAMS, NANOSECOND
from loadprint.reading.histograms import Histogram, bounds, difference
from loadprint.reading.queries import Columns, number

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
MIN_VALUES = {"p99": 100, "p999": 10_000}  # for such a quantile
TOO_FEW = {
    "p99": f"p99 of fewer than {MIN_VALUES['p99']} values is their maximum",
    "p999": f"p99.9 of fewer than {MIN_VALUES['p999']:,} values depends on fewer than ten of them",
}
PICOSECOND = 1e-12
SYNCS = frozenset({"fsync", "fdatasync"})


def ebpf(source: Source) -> None:
    """All eBPF tables as `<table>.<entity>….<figure>`, with the table's name without `ebpf_`.

    `mysql_statements` is the server's histogram of all statements; it has no sum.
    """
    for probe, keys in EBPF_HISTOGRAMS.items():
        _histograms(source, probe, keys, "sum_ns", NANOSECOND)
    _histograms(source, "ebpf_block_size", ("device", "operation"), "sum_bytes", 1.0)
    _histograms(source, "mysql_statements", ("statements",), None, PICOSECOND)
    _round_trips(source)
    for probe in EBPF_COUNTERS:
        _counters(source, probe)
    _syscalls(source)


def scheduler(source: Source) -> None:
    """Only the tables that grow with concurrency: run queue, off-CPU time by reason, switches."""
    _histograms(source, "ebpf_sched", EBPF_HISTOGRAMS["ebpf_sched"], "sum_ns", NANOSECOND)
    _counters(source, "ebpf_switches")


def programs(source: Source) -> None:
    """CPU time of the recorder's own eBPF programs as `programs.<object>:<program>.<figure>`, in cores.

    `cpu` is the time on all CPUs. `server_cpu` is the part on the server's CPUs, from their share of the
    calls, because the kernel reports one time for all CPUs. It is absent if the recorder did not get the
    server's CPUs.
    """
    probe = "ebpf_programs"
    figures = {name: number(ibis._[name]) for name in ("run_time_ns", "calls")}
    keys = ("object", "program", "cpus")
    rows = ends(source, probe, keys, figures)
    if rows is None:
        return
    seconds = seconds_between(source, probe)
    risen: dict[str, dict[str, tuple[float, float]]] = {}
    for (owner, program, cpus), of_program in increases(rows, keys, tuple(figures)):
        risen.setdefault(f"{owner}:{program}", {})[cpus] = of_program["run_time_ns"], of_program["calls"]
    for name, by_cpus in risen.items():
        time, calls = by_cpus["all"]
        if not (time >= 0 and calls >= 0):
            source.out.mark_missing(f"programs.{name}.", f"{probe} was reset in the window")
            continue
        cores = time * NANOSECOND / seconds
        source.out.put(f"programs.{name}.cpu", cores)
        if "server" in by_cpus:
            # it is read after the sum of all CPUs and can be a few calls ahead
            share = min(1.0, by_cpus["server"][1] / calls) if calls else 0.0
            source.out.put(f"programs.{name}.server_cpu", cores * share)


def ends(source: Source, probe: str, keys: Sequence[str], columns: dict[str, ibis.Value]) -> Columns | None:
    """Rows of the probe's first and last reading in the window; None below two readings."""
    name = probe.removeprefix("ebpf_")
    path = source.run.table(source.window.role, probe)
    ticks = sorted(source.window.middle_ns.get(probe, ()))
    if path is None or len(ticks) < 2:
        source.out.mark_missing(f"{name}.", source.window.why_missing(probe))
        return None
    ends = [ticks[0], ticks[-1]]
    rows = source.store.fetch(path, lambda t: t.select("tick", *keys, **columns), at=ends)
    rows["last"] = rows["tick"] == ends[1]
    rows["name"] = np.array(
        [".".join([name, *parts]) for parts in zip(*(rows[key].tolist() for key in keys), strict=True)],
        dtype=object,
    )
    return rows


def _pairs(rows: Columns) -> Iterator[tuple[str, int | None, int]]:
    """Name, and its row at the first reading (None if absent) and at the last."""
    before = {name: place for place, name in enumerate(rows["name"]) if not rows["last"][place]}
    for place in np.flatnonzero(rows["last"]).tolist():
        name = rows["name"][place]
        yield name, before.get(name), place


def increases(
    rows: Columns, keys: Sequence[str], figures: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
    """Entity, and the increase of its counters from the first reading to the last; NaN for nulls."""
    for _, first, place in _pairs(rows):
        started = {figure: 0.0 if first is None else rows[figure][first] for figure in figures}
        risen = {figure: float(rows[figure][place] - started[figure]) for figure in figures}
        yield tuple(str(rows[key][place]) for key in keys), risen


def _histograms(source: Source, probe: str, keys: Sequence[str], total: str | None, unit: float) -> None:
    summed = {"total": number(ibis._[total])} if total else {}
    rows = ends(source, probe, keys, {**summed, "buckets": ibis._.buckets})
    path = source.run.table(source.window.role, probe)
    if rows is None or path is None:
        return
    edges = bounds(source.store.metadata(path), "buckets")
    seconds = seconds_between(source, probe)
    for name, first, place in _pairs(rows):
        before = None if first is None else rows["buckets"][first]
        counted = difference(rows["buckets"][place], before, edges)
        if counted is None:
            reason = "was reset in the window" if len(edges) else "its histograms have no bounds"
            source.out.mark_missing(f"{name}.", f"{probe}: {reason}")
            continue
        source.out.histograms[probe, *(rows[key][place] for key in keys)] = counted
        source.out.put(f"{name}.count", counted.total / seconds, float(counted.total))
        if total:
            sum_before = 0.0 if first is None else rows["total"][first]
            source.out.put(f"{name}.sum", (rows["total"][place] - sum_before) * unit / seconds)
        _quantiles(source, name, counted, unit)


def _quantiles(source: Source, name: str, counted: Histogram, unit: float) -> None:
    for word, share in QUANTILES.items():
        if not counted.total:
            source.out.mark_missing(f"{name}.{word}", "did not occur in the window")
        elif counted.total < MIN_VALUES.get(word, 1):
            source.out.mark_missing(f"{name}.{word}", TOO_FEW[word])
        else:
            source.out.put(f"{name}.{word}", counted.quantile(share) * unit)


def _round_trips(source: Source) -> None:
    """TCP to the server's port: `tcp_rtt.p50` …, `tcp_rtt.mean` and `tcp_rtt.retransmits`.

    Of the accepting side of the connections, for all peers; of all ports if the server's is unknown.
    """
    probe = "ebpf_tcp"
    counters = {name: number(ibis._[name]) for name in ("retransmits", "opened")}
    columns = {**counters, "peer": ibis._.peer, "buckets": ibis._.buckets}
    rows = ends(source, probe, ("port", "side"), columns)
    path = source.run.table(source.window.role, probe)
    if rows is None or path is None:
        source.out.mark_missing("tcp_rtt", source.window.why_missing(probe))
        return
    port = str(((source.run.server or {}).get("variables") or {}).get("port") or "")
    chosen = rows["side"] == "accepted"
    if port in rows["port"]:
        chosen &= rows["port"] == port
    last, first = chosen & rows["last"], chosen & ~rows["last"]
    if not last.any():
        source.out.mark_missing("tcp_rtt", "no TCP connection was accepted in the window")
        return
    edges = bounds(source.store.metadata(path), "buckets")
    before = np.sum(np.stack(rows["buckets"][first]), axis=0) if first.any() else None
    counted = difference(np.sum(np.stack(rows["buckets"][last]), axis=0), before, edges)
    if counted is None:
        source.out.mark_missing("tcp_rtt", f"{probe} was reset in the window")
        return
    _quantiles(source, "tcp_rtt", counted, NANOSECOND)
    source.out.put("tcp_rtt.mean", counted.mean() * NANOSECOND)
    for name in counters:
        risen = float(rows[name][last].sum() - rows[name][first].sum())
        source.out.put(f"tcp_rtt.{name}", risen / seconds_between(source, probe), risen)


def _counters(source: Source, probe: str) -> None:
    keys, fields = EBPF_COUNTERS[probe]
    rows = ends(source, probe, keys, {field: number(ibis._[field]) for field in fields})
    if rows is None:
        return
    seconds = seconds_between(source, probe)
    for entity, increased in increases(rows, keys, fields):
        name = ".".join((probe.removeprefix("ebpf_"), *entity))
        for field, risen in increased.items():
            if risen >= 0:
                source.out.put(f"{name}.{field}", risen / seconds, risen)
            else:
                source.out.mark_missing(f"{name}.{field}", f"{probe} was reset in the window")


def _syscalls(source: Source) -> None:
    """Sums over calls: `syscalls.<role>.all` and `syscalls.<role>.sync`."""
    counts = {
        tuple(name.split(".")[1:3]): quantity
        for name, quantity in source.out.values.items()
        if name.startswith("syscalls.") and name.endswith(".count")
    }
    for role in {role for role, _ in counts}:
        for word, calls in (("all", None), ("sync", SYNCS)):
            chosen = [
                q for (of, call), q in counts.items() if of == role and (calls is None or call in calls)
            ]
            source.out.total(f"syscalls.{role}.{word}", chosen)


def seconds_between(source: Source, probe: str) -> float:
    """Seconds between the first and the last reading of a probe in the window."""
    ticks = sorted(source.window.middle_ns[probe])
    return source.seconds(probe, np.array([ticks[0], ticks[-1]], dtype=np.float64))
