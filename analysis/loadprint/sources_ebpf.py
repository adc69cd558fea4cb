"""The eBPF tables over the window: counts, time and quantiles of each entity.

Only the readings at the window's ends are fetched: buckets are cumulative. What had no row at the first of
them had not happened yet, and counts from zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ibis
import numpy as np

from loadprint.histograms import bounds, difference
from loadprint.queries import Columns, number
from loadprint.sources import NANOSECOND, Source

QUANTILES = {"p50": 0.5, "p99": 0.99}
SYNCS = frozenset({"fsync", "fdatasync"})


def ebpf(source: Source) -> None:
    """All eBPF tables, as `<table>.<entity>….<figure>` with the table's name less its `ebpf_`."""
    _histograms(source, "ebpf_sched", ("role", "state"), "sum_ns", NANOSECOND)
    _histograms(source, "ebpf_block", ("device", "operation", "stage"), "sum_ns", NANOSECOND)
    _histograms(source, "ebpf_irq", ("kind",), "sum_ns", NANOSECOND)
    _histograms(source, "ebpf_syscall_latency", ("role", "syscall"), "sum_ns", NANOSECOND)
    _histograms(source, "ebpf_statements", ("role", "command"), "sum_ns", NANOSECOND)
    _counters(source, "ebpf_switches", ("role",), ("voluntary", "involuntary", "wakeups", "migrations"))
    _counters(source, "ebpf_syscalls", ("role", "syscall"), ("count", "errors"))
    _syscalls(source)


def _ends(source: Source, probe: str, keys: Sequence[str], columns: dict[str, ibis.Value]) -> Columns | None:
    """Rows of the probe's first and last reading in the window; None when there are no two."""
    name = probe.removeprefix("ebpf_")
    path = source.run.table(source.window.role, probe)
    ticks = sorted(source.window.middle_ns.get(probe, ()))
    if path is None or len(ticks) < 2:
        source.out.lack(f"{name}.", source.window.why_missing(probe))
        return None
    ends = [ticks[0], ticks[-1]]
    rows = source.store.fetch(path, lambda t: t.filter(t.tick.isin(ends)).select("tick", *keys, **columns))
    rows["last"] = rows["tick"] == ends[1]
    rows["name"] = np.array(
        [".".join([name, *parts]) for parts in zip(*(rows[key].tolist() for key in keys), strict=True)],
        dtype=object,
    )
    return rows


def _pairs(rows: Columns) -> Iterator[tuple[str, int | None, int]]:
    """Name and its places at the first reading, None if it was not there yet, and at the last."""
    before = {name: place for place, name in enumerate(rows["name"]) if not rows["last"][place]}
    for place in np.flatnonzero(rows["last"]).tolist():
        name = rows["name"][place]
        yield name, before.get(name), place


def _histograms(source: Source, probe: str, keys: Sequence[str], total: str, unit: float) -> None:
    rows = _ends(source, probe, keys, {"total": number(ibis._[total]), "buckets": ibis._.buckets})
    path = source.run.table(source.window.role, probe)
    if rows is None or path is None:
        return
    edges = bounds(source.store.metadata(path), "buckets")
    seconds = _seconds(source, probe)
    for name, first, place in _pairs(rows):
        found = difference(rows["buckets"][place], None if first is None else rows["buckets"][first], edges)
        if found is None:
            source.out.lack(f"{name}.", f"{probe} began anew in the window")
            continue
        sum_before = 0.0 if first is None else rows["total"][first]
        source.out.put(f"{name}.count", found.total / seconds, float(found.total))
        source.out.put(f"{name}.sum", (rows["total"][place] - sum_before) * unit / seconds)
        for word, share in QUANTILES.items():
            if found.total:
                source.out.put(f"{name}.{word}", found.quantile(share) * unit)
            else:
                source.out.lack(f"{name}.{word}", "it did not happen in the window")


def _counters(source: Source, probe: str, keys: Sequence[str], fields: Sequence[str]) -> None:
    rows = _ends(source, probe, keys, {field: number(ibis._[field]) for field in fields})
    if rows is None:
        return
    seconds = _seconds(source, probe)
    for name, first, place in _pairs(rows):
        for field in fields:
            start = 0.0 if first is None else rows[field][first]
            risen = float(rows[field][place] - start)
            if risen >= 0:
                source.out.put(f"{name}.{field}", risen / seconds, risen)
            else:
                source.out.lack(f"{name}.{field}", f"{probe} began anew in the window")


def _syscalls(source: Source) -> None:
    """Sums over calls: `syscalls.<role>.all` and `syscalls.<role>.sync`."""
    found = {
        tuple(name.split(".")[1:3]): quantity
        for name, quantity in source.out.values.items()
        if name.startswith("syscalls.") and name.endswith(".count")
    }
    for role in {role for role, _ in found}:
        for word, calls in (("all", None), ("sync", SYNCS)):
            chosen = [q for (of, call), q in found.items() if of == role and (calls is None or call in calls)]
            rate, count = sum(q.rate for q in chosen), sum(q.count or 0.0 for q in chosen)
            source.out.put(f"syscalls.{role}.{word}", rate, count)


def _seconds(source: Source, probe: str) -> float:
    ticks = sorted(source.window.middle_ns[probe])
    return source.seconds(probe, np.array([ticks[0], ticks[-1]], dtype=np.float64))
