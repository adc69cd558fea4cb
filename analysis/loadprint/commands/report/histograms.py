"""Latency by transaction type, and the histograms of the eBPF probes over the measure phase.

Latency is from load/latency.hlog where a run has one, else from the few quantiles of load/result.json. A
histogram is of one side, all repeats added up; its fine buckets are merged for a logarithmic axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadprint.commands.report.charts import KB
from loadprint.metrics.gather import Measured
from loadprint.reading import interval_log
from loadprint.reading.interval_log import LogHistogram
from loadprint.reading.recording import Run
from loadprint.rendering.report_data import Curve, Distribution, Floats, Percentiles

CURVE_PER_DECADE = 24  # points of a curve between 90 % and 99 %, and so on
BUCKETS_PER_DECADE = 30
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
MILLI, NANO = 1e3, 1e-9
LEAST = 20  # values for a meaningful shape
MOST = 14  # histograms of a probe
LEAST_EDGES = 4
OFF_CPU = "off-CPU: "
Sums = list[LogHistogram | None]  # of each side


@dataclass(frozen=True)
class _Source:
    """A table, its entity columns, fixed values of some of them, and the title of a histogram."""

    probe: str
    keys: tuple[str, ...]
    fixed: Mapping[str, str]
    title: str
    shown: str
    factor: float
    unit: float = NANO


SERVER = {"role": "server"}
SOURCES = (
    _Source("ebpf_sched", ("role", "state"), SERVER, "{state}", "µs", 1e6),
    _Source(
        "ebpf_block",
        ("device", "operation", "stage"),
        {"stage": "device"},
        "{device}: {operation}",
        "ms",
        MILLI,
    ),
    _Source(
        "ebpf_block_size",
        ("device", "operation"),
        {},
        "{device}: size of a {operation}",
        "kB",
        1 / KB,
        unit=1.0,
    ),
    _Source("ebpf_syscall_latency", ("role", "syscall"), SERVER, "{syscall}", "µs", 1e6),
    _Source("ebpf_statements", ("role", "command"), SERVER, "{command}", "ms", MILLI),
)


def latency(
    runs: Sequence[tuple[int, int, Run]], sides: int
) -> tuple[tuple[Percentiles, ...], tuple[Distribution, ...]]:
    """Curves and histograms of `runs`, (place, side, run) each. Raises InputError of a broken log."""
    logs = {place: _log(run) for place, _, run in runs}
    reported = {place: (run.result or {}).get("transactions") or {} for place, _, run in runs}
    kinds = dict.fromkeys(kind for by_kind in (*logs.values(), *reported.values()) for kind in by_kind)
    percentiles, distributions = [], []
    for kind in kinds:
        curves, sources = [], set()
        sums: Sums = [None] * sides
        for place, side, _ in runs:
            counted = logs[place].get(kind)
            if counted and counted.total:
                curves.append(_curve(place, counted))
                sources.add("latency.hlog")
                _add(sums, side, counted)
            elif curve := _from_result(place, reported[place].get(kind) or {}):
                curves.append(curve)
                sources.add("result.json, a few quantiles")
        if curves:
            percentiles.append(Percentiles(kind, " and ".join(sorted(sources)), tuple(curves)))
        if ends := _span(sums):
            edges = _evenly(*ends)
            found = _merged(sums, edges)
            distributions.append(Distribution(f"latency-{kind}", "latency", kind, "ms", MILLI, edges, *found))
    return tuple(percentiles), tuple(distributions)


def _log(run: Run) -> Mapping[str, LogHistogram]:
    path = run.path / "load/latency.hlog"
    return interval_log.read(path) if path.is_file() else {}


def _curve(place: int, counted: LogHistogram) -> Curve:
    """Quantiles evenly spaced on an axis of log(1 / (1 − share)), up to the share that one value is."""
    last = np.log10(max(10.0, float(counted.total)))
    evenly = 1 - 10.0 ** -np.arange(0.0, last, 1 / CURVE_PER_DECADE)
    shares = np.unique(np.round(np.concatenate([evenly, [0.5, 0.95]]), 9))
    return Curve(place, shares, counted.quantiles(shares))


def _from_result(place: int, kind: Mapping[str, Any]) -> Curve | None:
    quantiles = kind.get("latency_ms") or {}
    known = {share: quantiles.get(name) for name, share in QUANTILES.items()}
    shares = {share: value / MILLI for share, value in known.items() if isinstance(value, int | float)}
    if len(shares) < 2:
        return None
    return Curve(place, np.array(list(shares)), np.array(list(shares.values()), dtype=np.float64))


def of_ebpf(measured: Sequence[Sequence[Measured]]) -> tuple[Distribution, ...]:
    """Histograms of all eBPF tables of the runs, the most of a table that can be read at a glance."""
    found = []
    for source in SOURCES:
        by_title: dict[str, Sums] = {}
        for side, run in [(side, run) for side, runs in enumerate(measured) for run in runs]:
            for (probe, *names), histogram in run.quantities.histograms.items():
                entity = dict(zip(source.keys, names, strict=False))
                if probe == source.probe and histogram.total and source.fixed.items() <= entity.items():
                    title = source.title.format(**entity)
                    if probe == "ebpf_sched" and entity["state"] != "run queue":
                        title = OFF_CPU + title
                    counted = LogHistogram(histogram.counts.astype(np.int64), histogram.bounds * source.unit)
                    _add(by_title.setdefault(title, [None] * len(measured)), side, counted)
        totals = {title: sum(one.total for one in sums if one) for title, sums in by_title.items()}
        frequent = [title for title, total in totals.items() if total >= LEAST]
        frequent.sort(key=lambda title: title.startswith(OFF_CPU))
        for title in frequent[:MOST]:
            sums = by_title[title]
            ends = _span(sums)
            edges = _every_other(next(one.edges for one in sums if one), *ends) if ends else np.empty(0)
            # else all values are in one or two buckets
            if len(edges) >= LEAST_EDGES:
                key, probe = f"{source.probe}-{title}", source.probe
                merged = _merged(sums, edges)
                found.append(Distribution(key, probe, title, source.shown, source.factor, edges, *merged))
    return tuple(found)


def _add(sums: Sums, side: int, counted: LogHistogram) -> None:
    sums[side] = counted if (before := sums[side]) is None else before.plus(counted)


def _span(sums: Sums) -> tuple[float, float] | None:
    """Ends of all filled buckets; None of nothing.

    A lower end of zero becomes half of the upper one, and an infinite upper end twice the lower one: the axis
    is logarithmic.
    """
    lows, highs = [], []
    for one in filter(None, sums):
        filled = np.flatnonzero(one.counts)
        low, high = float(one.edges[filled[0]]), float(one.edges[filled[-1] + 1])
        lows.append(low if low > 0 else float(one.edges[filled[0] + 1]) / 2)
        highs.append(high if np.isfinite(high) else 2 * float(one.edges[filled[-1]]))
    return (min(lows), max(highs)) if lows else None


def _evenly(low: float, high: float) -> Floats:
    """Edges that are equally wide on a logarithmic axis, around `low` and `high`."""
    first = np.floor(np.log10(low) * BUCKETS_PER_DECADE)
    last = max(first + 1, np.ceil(np.log10(high) * BUCKETS_PER_DECADE))
    edges: Floats = 10.0 ** (np.arange(first, last + 1) / BUCKETS_PER_DECADE)
    return edges


def _every_other(edges: Floats, low: float, high: float) -> Floats:
    """Every second of the given edges around `low` and `high`, so that no fine bucket is divided."""
    finite = edges[np.isfinite(edges) & (edges > 0)][::2]
    first = max(0, int(np.searchsorted(finite, low, "right")) - 1)
    last = min(len(finite) - 1, int(np.searchsorted(finite, high, "left")))
    return finite[first : max(last, first + 1) + 1]


def _merged(sums: Sums, edges: Floats) -> tuple[tuple[Floats | None, ...], tuple[int, ...]]:
    """Shares float64[m] of each side between `edges` float64[m + 1], None where there is none; totals.

    A fine bucket across an edge is divided by width; values outside go to the first or the last bucket.
    """
    shares: list[Floats | None] = []
    for one in sums:
        if one is None:
            shares.append(None)
            continue
        below = np.concatenate([[0.0], np.cumsum(one.counts, dtype=np.float64)])
        cumulated = np.interp(edges, np.where(np.isinf(one.edges), 2 * one.edges[-2], one.edges), below)
        cumulated[0], cumulated[-1] = 0.0, below[-1]
        shares.append(np.diff(cumulated) / max(below[-1], 1.0))
    return tuple(shares), tuple(one.total if one else 0 for one in sums)
