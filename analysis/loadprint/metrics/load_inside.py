"""Replaces the totals of a load by those of its intervals that are entirely inside the segments of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from loadprint.reading.clocks import Alignment, align
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.time_series import segments_of
from loadprint.series.intervals import Intervals

NEAR = 1e-3  # s: the stamps of an interval are taken a little after those of its segment
# what the load is; all else in result.json counts the whole measure phase
KEPT = (
    *("workload", "generator", "generator_version", "operation", "status", "reason", "mode", "protocol"),
    *("connections", "options", "threads", "workers", "rate", "servers", "flags", "tls", "compression"),
)
NO_INTERVALS = "it is a total of the whole measure phase, without intervals"


def in_segments(run: Run, reported: Intervals | None, store: Store) -> tuple[Run, Intervals | None]:
    """The run with the figures of the load in its segments, and the intervals inside; else as they are.

    `seconds` are those of the intervals; a figure without intervals is absent.
    """
    if run.segments is None or run.result is None:
        return run, reported
    result: dict[str, Any] = {name: run.result[name] for name in KEPT if name in run.result}
    measure = run.phase("measure")
    if reported is not None and measure is not None:
        clock = align(run, run.roles[0], store) if run.roles else Alignment()
        spans = [[(clock.here(edge) - measure.begin_ns) / 1e9 for edge in span] for span in run.segments]
        near = [(begin - NEAR, end + NEAR) for begin, end in spans]
        reported = reported.some(segments_of(reported.begins, reported.ends, near) >= 0)
        if (seconds := float(reported.lengths.sum())) > 0:
            sums = {name: float(counts.sum()) for name, counts in reported.totals.items()}
            result |= {"seconds": seconds} | {
                name: total for name, total in sums.items() if np.isfinite(total)
            }
    return replace(run, result=result), reported
