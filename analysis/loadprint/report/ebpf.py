"""The eBPF histograms over the measure phase, per side, all repeats together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ibis
import numpy as np

from loadprint.errors import InputError
from loadprint.reading.histograms import Histogram, bounds, difference
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.window import Window
from loadprint.report import buckets
from loadprint.report.data import Distribution

NANO = 1e-9
LEAST = 20  # values that a shape can be seen in
MOST = 14
LEAST_EDGES = 4


@dataclass(frozen=True)
class _Source:
    """A table, its entity columns, the fixed values of some of them, and the title of what is left."""

    probe: str
    keys: tuple[str, ...]
    fixed: Mapping[str, str]
    title: str
    unit: float
    shown: str
    factor: float


SOURCES = (
    _Source("ebpf_sched", ("role", "state"), {"role": "server"}, "{state}", NANO, "µs", 1e6),
    _Source(
        "ebpf_block",
        ("device", "operation", "stage"),
        {"stage": "device"},
        "{device}: {operation}",
        NANO,
        "ms",
        1e3,
    ),
    _Source(
        "ebpf_block_size", ("device", "operation"), {}, "{device}: size of a {operation}", 1.0, "kB", 1e-3
    ),
    _Source("ebpf_syscall_latency", ("role", "syscall"), {"role": "server"}, "{syscall}", NANO, "µs", 1e6),
    _Source("ebpf_statements", ("role", "command"), {"role": "server"}, "{command}", NANO, "ms", 1e3),
)
OFF_CPU = "off-CPU: "


def distributions(
    runs: Sequence[tuple[int, Run, Window]], sides: int, store: Store
) -> tuple[Distribution, ...]:
    """Histograms of all tables that `runs`, (side, run, window) each, have. Raises InputError."""
    return tuple(chart for source in SOURCES for chart in _charts(source, runs, sides, store))


def _charts(
    source: _Source, runs: Sequence[tuple[int, Run, Window]], sides: int, store: Store
) -> list[Distribution]:
    sums: dict[str, list[Histogram | None]] = {}
    for side, run, window in runs:
        for title, found in _of_run(source, run, window, store).items():
            per_side = sums.setdefault(title, [None] * sides)
            before = per_side[side]
            per_side[side] = (
                found if before is None else Histogram(before.counts + found.counts, before.bounds)
            )
    frequent = [title for title, found in sums.items() if _total(found) >= LEAST]
    frequent.sort(key=lambda title: title.startswith(OFF_CPU))
    charts = [_chart(source, title, sums[title]) for title in frequent[:MOST]]
    return [chart for chart in charts if chart is not None]


def _chart(source: _Source, title: str, sums: Sequence[Histogram | None]) -> Distribution | None:
    """None where all values are in one or two buckets: a number would say as much."""
    fine = [None if one is None else (one.counts, one.bounds * source.unit) for one in sums]
    ends = buckets.span(fine)
    bounds_of = next(one.bounds for one in sums if one)
    if ends is None:
        return None
    edges = buckets.every_other(bounds_of * source.unit, *ends)
    if len(edges) < LEAST_EDGES:
        return None
    shares, totals = buckets.onto(fine, edges)
    key = f"{source.probe}-{title}"
    return Distribution(key, source.probe, title, source.shown, source.factor, edges, shares, totals)


def _total(found: Sequence[Histogram | None]) -> int:
    return sum(one.total for one in found if one)


def _of_run(source: _Source, run: Run, window: Window, store: Store) -> dict[str, Histogram]:
    """Histograms of one run by title; buckets are cumulative, so that the window's ends are enough."""
    path = run.table(window.role, source.probe)
    ticks = sorted(window.middle_ns.get(source.probe, ()))
    if path is None or len(ticks) < 2:
        return {}
    ends = [ticks[0], ticks[-1]]
    fixed, keys = source.fixed, source.keys

    def chosen(table: ibis.Table) -> ibis.Table:
        for column, value in fixed.items():
            table = table.filter(table[column] == value)
        return table.select("tick", "buckets", *keys)

    rows = store.fetch(path, chosen, at=ends)
    edges = bounds(store.metadata(path), "buckets")
    if len(edges) < 2:
        raise InputError(path, "its histograms have no bounds", "copy the run directory again")
    names = list(zip(*(rows[key].tolist() for key in source.keys), strict=True))
    first = {name: place for place, name in enumerate(names) if rows["tick"][place] == ends[0]}
    found: dict[str, Histogram] = {}
    for place in np.flatnonzero(rows["tick"] == ends[1]).tolist():
        before = first.get(names[place])
        risen = difference(rows["buckets"][place], None if before is None else rows["buckets"][before], edges)
        if risen is not None and risen.total:
            found[_title(source, dict(zip(source.keys, names[place], strict=True)))] = risen
    return found


def _title(source: _Source, entity: Mapping[str, str]) -> str:
    if source.probe == "ebpf_sched" and entity["state"] != "run queue":
        return OFF_CPU + entity["state"]
    return source.title.format(**entity)
