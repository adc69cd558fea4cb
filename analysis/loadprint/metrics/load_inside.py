"""Replaces the totals of a load by those of its intervals that are entirely inside the segments of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from loadprint.reading import latencies
from loadprint.reading.latencies import LatencyHistogram
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.window import inside_segments
from loadprint.series.intervals import Intervals

# what the load is; all else in result.json counts the whole measure phase
KEPT = (
    *("workload", "generator", "generator_version", "operation", "status", "reason", "mode", "protocol"),
    *("connections", "options", "threads", "workers", "rate", "servers", "flags", "tls", "compression"),
)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
NO_INTERVALS = "it is a total of the whole measure phase, without intervals"


def in_segments(run: Run, reported: Intervals | None, store: Store) -> tuple[Run, Intervals | None]:
    """The run with the figures of the load in its segments, and the intervals inside; else as they are.

    `seconds` are those of the intervals; a figure without intervals is absent.
    """
    if run.segments is None or run.result is None:
        return run, reported
    result: dict[str, Any] = {name: run.result[name] for name in KEPT if name in run.result}
    if reported is not None:
        reported = reported.some(inside_segments(run, store, reported.begins, reported.ends))
        if (seconds := float(reported.lengths.sum())) > 0:
            sums = {name: float(counts.sum()) for name, counts in reported.totals.items()}
            result |= {"seconds": seconds} | {
                name: total for name, total in sums.items() if np.isfinite(total)
            }
    by_type = latencies.read(run, store)
    if by_type:
        result["latency_ms"] = _latency(latencies.added(list(by_type.values())))
        result["transactions"] = {
            kind: {"count": counted.total, "latency_ms": _latency(counted)}
            for kind, counted in by_type.items()
        }
    return replace(run, result=result), reported


def _latency(counted: LatencyHistogram) -> dict[str, float]:
    """As in result.json, in ms."""
    values = counted.quantiles(np.array(list(QUANTILES.values())))
    figures = {"min": counted.minimum, "mean": counted.mean, "max": counted.maximum}
    figures |= dict(zip(QUANTILES, values.tolist(), strict=True))
    return {name: 1e3 * value for name, value in figures.items()}
