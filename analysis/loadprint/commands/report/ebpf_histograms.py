"""eBPF histograms over the measure phase, per side, all repeats added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadprint.commands.report import buckets
from loadprint.commands.report.charts import KB
from loadprint.metrics.gather import Measured
from loadprint.reading.histograms import Histogram
from loadprint.rendering.report_data import Distribution

NANO = 1e-9
LEAST = 20  # values for a meaningful shape
MOST = 14
LEAST_EDGES = 4


@dataclass(frozen=True)
class _Source:
    """A table, its entity columns, fixed values of some of them, and the title of a histogram."""

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
        "ebpf_block_size",
        ("device", "operation"),
        {},
        "{device}: size of a {operation}",
        1.0,
        "kB",
        1 / KB,
    ),
    _Source("ebpf_syscall_latency", ("role", "syscall"), {"role": "server"}, "{syscall}", NANO, "µs", 1e6),
    _Source("ebpf_statements", ("role", "command"), {"role": "server"}, "{command}", NANO, "ms", 1e3),
)
OFF_CPU = "off-CPU: "


def distributions(measured: Sequence[Sequence[Measured]]) -> tuple[Distribution, ...]:
    """Histograms of all eBPF tables of the runs."""
    return tuple(chart for source in SOURCES for chart in _charts(source, measured))


def _charts(source: _Source, measured: Sequence[Sequence[Measured]]) -> list[Distribution]:
    sums: dict[str, list[Histogram | None]] = {}
    for side, run in [(side, run) for side, runs in enumerate(measured) for run in runs]:
        for title, histogram in _of_run(source, run).items():
            per_side = sums.setdefault(title, [None] * len(measured))
            before = per_side[side]
            per_side[side] = (
                histogram if before is None else Histogram(before.counts + histogram.counts, before.bounds)
            )
    frequent = [title for title, histogram in sums.items() if _total(histogram) >= LEAST]
    frequent.sort(key=lambda title: title.startswith(OFF_CPU))
    charts = [_chart(source, title, sums[title]) for title in frequent[:MOST]]
    return [chart for chart in charts if chart is not None]


def _chart(source: _Source, title: str, sums: Sequence[Histogram | None]) -> Distribution | None:
    """None where all values are in one or two buckets."""
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


def _total(histograms: Sequence[Histogram | None]) -> int:
    return sum(one.total for one in histograms if one)


def _of_run(source: _Source, run: Measured) -> dict[str, Histogram]:
    """Histograms of one run's window by title."""
    histograms: dict[str, Histogram] = {}
    for (probe, *names), histogram in run.quantities.histograms.items():
        entity = dict(zip(source.keys, names, strict=False))
        if probe == source.probe and histogram.total and source.fixed.items() <= entity.items():
            histograms[_title(source, entity)] = histogram
    return histograms


def _title(source: _Source, entity: Mapping[str, str]) -> str:
    if source.probe == "ebpf_sched" and entity["state"] != "run queue":
        return OFF_CPU + entity["state"]
    return source.title.format(**entity)
