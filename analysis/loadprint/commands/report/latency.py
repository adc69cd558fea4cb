"""Latency of each transaction type: a percentile curve per run, and a histogram per side.

From load/latency.hlog where a run has one, else from the few quantiles of load/result.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loadprint.commands.report import buckets
from loadprint.reading import interval_log
from loadprint.reading.interval_log import LogHistogram
from loadprint.reading.recording import Run
from loadprint.rendering.report_data import Curve, Distribution, Percentiles

PER_DECADE = 24  # points of a curve between 90 % and 99 %, and so on
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
MILLI = 1e3


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
        for place, _, _ in runs:
            if kind in logs[place] and logs[place][kind].total:
                curves.append(_curve(place, logs[place][kind]))
                sources.add("latency.hlog")
            elif curve := _from_result(place, reported[place].get(kind) or {}):
                curves.append(curve)
                sources.add("result.json, a few quantiles")
        if curves:
            percentiles.append(Percentiles(kind, " and ".join(sorted(sources)), tuple(curves)))
        counted = [(side, logs[place].get(kind)) for place, side, _ in runs]
        if histogram := _distribution(kind, counted, sides):
            distributions.append(histogram)
    return tuple(percentiles), tuple(distributions)


def _log(run: Run) -> Mapping[str, LogHistogram]:
    path = run.path / "load/latency.hlog"
    return interval_log.read(path) if path.is_file() else {}


def _curve(place: int, counted: LogHistogram) -> Curve:
    """Quantiles evenly spaced on an axis of log(1 / (1 − share)), up to the share that one value is."""
    last = np.log10(max(10.0, float(counted.total)))
    evenly = 1 - 10.0 ** -np.arange(0.0, last, 1 / PER_DECADE)
    shares = np.unique(np.round(np.concatenate([evenly, [0.5, 0.95]]), 9))
    return Curve(place, shares, counted.quantiles(shares))


def _from_result(place: int, kind: Mapping[str, Any]) -> Curve | None:
    quantiles = kind.get("latency_ms") or {}
    known = {share: quantiles.get(name) for name, share in QUANTILES.items()}
    shares = {share: value / MILLI for share, value in known.items() if isinstance(value, int | float)}
    if len(shares) < 2:
        return None
    return Curve(place, np.array(list(shares)), np.array(list(shares.values()), dtype=np.float64))


def _distribution(
    kind: str, logs: Sequence[tuple[int, LogHistogram | None]], sides: int
) -> Distribution | None:
    """Histogram of all repeats of each side, in buckets wide enough to see."""
    sums: list[LogHistogram | None] = [None] * sides
    for side, counted in logs:
        if counted is not None and counted.total:
            sums[side] = counted if (before := sums[side]) is None else before.plus(counted)
    fine = [(one.counts, one.edges) if one else None for one in sums]
    ends = buckets.span(fine)
    if ends is None:
        return None
    edges = buckets.evenly(*ends)
    shares, totals = buckets.onto(fine, edges)
    return Distribution(f"latency-{kind}", "latency", kind, "ms", MILLI, edges, shares, totals)
