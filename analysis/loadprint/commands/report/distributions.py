"""Latency by transaction type, and the histograms of the eBPF probes over the measure phase.

Latency is from load/latency.parquet where a run has one, else from the few quantiles of load/result.json, and
without a histogram. A histogram is of one side, all repeats added up; its fine buckets are merged for a
logarithmic axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from loadprint.commands.report.charts import KB
from loadprint.metrics.gather import Measured
from loadprint.metrics.load import QUANTILES
from loadprint.reading import latencies
from loadprint.reading.columns import NANOSECOND
from loadprint.reading.histograms import Histogram
from loadprint.reading.latencies import LatencyHistogram
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import TransactionType
from loadprint.rendering.report_data import Curve, Distribution, Floats, Percentiles

CURVE_PER_DECADE = 24  # points of a curve between 90 % and 99 %, and so on
MILLI = 1e3
LEAST = 20  # values for a meaningful shape
MOST = 14  # histograms of a probe
LEAST_FILLED = 3
BUCKETS_PER_DECADE = 30
OFF_CPU = "off-CPU: "
Sums = list[Histogram | None]  # of each side
NO_TABLE = "result.json, a few quantiles: there is no latency.parquet"

# By table: heading of its histograms, its entity columns, title of one, and the unit that is shown
SOURCES = {
    "ebpf_sched": ("Scheduler: server's threads", ("role", "state"), "{state}", "µs"),
    "ebpf_block": (
        "Block I/O, from driver to completion",
        ("device", "operation", "stage"),
        "{device}: {operation}",
        "ms",
    ),
    "ebpf_block_size": ("Block I/O, sizes", ("device", "operation"), "{device}: size of a {operation}", "kB"),
    "ebpf_syscall_latency": ("System calls of the server", ("role", "syscall"), "{syscall}", "µs"),
    "ebpf_statements": ("Statements, inside the server", ("role", "command"), "{command}", "ms"),
}
CHOSEN = {"role": "server", "stage": "device"}  # of the entities
FACTORS = {"µs": 1e6, "ms": MILLI, "kB": 1 / KB}  # from base units


def latency(
    runs: Sequence[tuple[int, int, Run]], sides: int, store: Store
) -> tuple[tuple[Percentiles, ...], tuple[Distribution, ...]]:
    """Curves and histograms of `runs`, (place, side, run) each. Raises InputError of a broken table."""
    recorded = {place: latencies.read(run, store) for place, _, run in runs}
    # that of a part of the run is not known
    reported: dict[int, dict[str, TransactionType]] = {
        place: {} if run.segments else run.result.transactions for place, _, run in runs
    }
    kinds = dict.fromkeys(kind for place in recorded for kind in (*recorded[place], *reported[place]))
    percentiles: list[Percentiles] = []
    distributions: list[Distribution] = []
    for kind in kinds:
        curves, sources = [], set()
        repeats: list[list[LatencyHistogram]] = [[] for _ in range(sides)]
        for place, side, _ in runs:
            if counted := recorded[place].get(kind):
                curves.append(_curve(place, counted))
                sources.add("latency.parquet")
                repeats[side].append(counted)
            elif curve := _from_result(place, reported[place].get(kind, TransactionType())):
                curves.append(curve)
                sources.add(NO_TABLE)
        if curves:
            percentiles.append(Percentiles(kind, " and ".join(sorted(sources)), tuple(curves)))
        distributions += _of_latency(
            kind, [latencies.added(repeat) if repeat else None for repeat in repeats]
        )
    return tuple(percentiles), tuple(distributions)


def _of_latency(kind: str, sums: Sequence[LatencyHistogram | None]) -> Iterator[Distribution]:
    """The histogram of all sides on a logarithmic axis; none where all values are in one or two buckets.

    A bucket counts where it begins: the bins are a hundred times as wide. A lower end of zero becomes half of
    the upper one.
    """
    filled = [one for one in sums if one]
    if not filled or len(np.unique(np.concatenate([one.lowers for one in filled]))) < LEAST_FILLED:
        return
    low = min(max(float(one.lowers[0]), float(one.uppers[0]) / 2) for one in filled)
    high = max(float(one.uppers[-1]) for one in filled)
    count = max(2, math.ceil(BUCKETS_PER_DECADE * math.log10(high / low)))
    edges = np.geomspace(low, high, count + 1)
    shares: list[Floats | None] = []
    for one in sums:
        if one is None:
            shares.append(None)
            continue
        bins = np.searchsorted(edges, one.lowers, side="right") - 1
        counts = np.bincount(bins.clip(0, count - 1), one.counts, count)
        shares.append(counts / one.total)
    totals = tuple(one.total if one else 0 for one in sums)
    yield Distribution(f"latency-{kind}", "latency", kind, "ms", MILLI, edges, tuple(shares), totals)


def _curve(place: int, counted: LatencyHistogram) -> Curve:
    """Quantiles evenly spaced on an axis of log(1 / (1 − share)), up to the share that one value is."""
    last = min(9.0, np.log10(max(10.0, float(counted.total))))  # shares are rounded to nine digits
    evenly = 1 - 10.0 ** -np.arange(0.0, last, 1 / CURVE_PER_DECADE)
    shares = np.unique(np.round(np.concatenate([evenly, [0.5, 0.95]]), 9))
    return Curve(place, shares, counted.quantiles(shares))


def _from_result(place: int, kind: TransactionType) -> Curve | None:
    quantiles = kind.latency_ms
    shares = {share: quantiles[name] / MILLI for name, share in QUANTILES.items() if name in quantiles}
    if len(shares) < 2:
        return None
    return Curve(place, np.array(list(shares)), np.array(list(shares.values()), dtype=np.float64))


def of_ebpf(measured: Sequence[Sequence[Measured]]) -> tuple[Distribution, ...]:
    """Histograms of all eBPF tables of the runs, the most of a table that can be read at a glance."""
    distributions: list[Distribution] = []
    for probe, (_, keys, name, shown) in SOURCES.items():
        unit = 1.0 if shown == "kB" else NANOSECOND
        by_title: dict[str, Sums] = {}
        for side, run in [(side, run) for side, runs in enumerate(measured) for run in runs]:
            for (table, *names), histogram in run.quantities.histograms.items():
                entity = dict(zip(keys, names, strict=False))
                chosen = all(entity.get(key, value) == value for key, value in CHOSEN.items())
                if table == probe and histogram.total and chosen:
                    title = name.format(**entity)
                    if probe == "ebpf_sched" and title != "run queue":
                        title = OFF_CPU + title
                    counted = Histogram(histogram.counts, histogram.bounds * unit)
                    _add(by_title.setdefault(title, [None] * len(measured)), side, counted)
        totals = {title: sum(one.total for one in sums if one) for title, sums in by_title.items()}
        frequent = [title for title, total in totals.items() if total >= LEAST]
        frequent.sort(key=lambda title: title.startswith(OFF_CPU))
        for title in frequent[:MOST]:
            of = (f"{probe}-{title}", probe, title)
            distributions += _merged(*of, (shown, FACTORS[shown]), by_title[title])
    return tuple(distributions)


def _add(sums: Sums, side: int, counted: Histogram) -> None:
    if before := sums[side]:
        longer, shorter = sorted((before, counted), key=lambda histogram: len(histogram.counts), reverse=True)
        counts = longer.counts.copy()
        counts[: len(shorter.counts)] += shorter.counts
        counted = Histogram(counts, longer.bounds)
    sums[side] = counted


def _merged(
    key: str, section: str, title: str, shown: tuple[str, float], sums: Sums
) -> Iterator[Distribution]:
    """The histogram of all sides, two fine buckets in one; none where all values are in one or two.

    A lower end of zero becomes half of the upper one, and an infinite upper end twice the lower one.
    """
    counted = [one for one in sums if one]
    if not counted:
        return
    fine = max((one.bounds for one in counted), key=len).copy()
    fine[-1] = min(fine[-1], 2 * fine[-2])
    fine[0] = max(fine[0], fine[1] / 2)
    filled = np.concatenate([np.flatnonzero(one.counts) for one in counted])
    low, high = int(filled.min()), int(filled.max()) + 1
    if high - low < LEAST_FILLED or fine[low] <= 0:
        return
    places = np.unique(np.arange(low // 2 * 2, high + 2, 2).clip(max=len(fine) - 1))
    shares: list[Floats | None] = []
    for one in sums:
        if one is None:
            shares.append(None)
            continue
        below = np.concatenate([[0.0], np.cumsum(one.counts, dtype=np.float64)])
        shares.append(np.diff(below[places.clip(max=len(one.counts))]) / max(below[-1], 1.0))
    totals = tuple(one.total if one else 0 for one in sums)
    yield Distribution(key, section, title, *shown, fine[places], tuple(shares), totals)
