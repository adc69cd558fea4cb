"""What the catalogue cannot declare of MySQL's counters: variables, how misses changed, checkpoint spikes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.reading import redo_log
from loadprint.reading.recording import Run
from loadprint.reading.time_series import Series
from loadprint.series.spikes import EVENTS, STALL, find, flush_burst, why_no_burst, why_no_spikes

CAPACITY = "mysql.redo_capacity"
FEWEST = 8  # intervals
PAGES = ("mysql.Innodb_buffer_pool_reads", "mysql.Innodb_buffer_pool_read_requests")


def variables(run: Run, names: Collection[str], out: Quantities) -> None:
    """The server's numeric variables as `variables.<name>`."""
    given = run.server.variables
    for name in names:
        if (value := redo_log.number(given.get(name))) is not None:
            out.put(f"variables.{name}", value)


def misses(source: Source) -> None:
    """Buffer pool miss ratio in the first and the last third of the window, as `mysql.miss_ratio.<third>`."""
    reads, requests = (source.out.series.get(name) for name in PAGES)
    if reads is None or requests is None:
        return
    inside = np.flatnonzero(reads.inside)
    if len(inside) < FEWEST:
        return
    inside = inside[np.isfinite(reads.values + requests.values)[inside]]
    for third, places in zip(("first", "", "last"), np.array_split(inside, 3), strict=True):
        missed, asked = (float(np.sum((series.values * series.half)[places])) for series in (reads, requests))
        if third and asked > 0:
            source.out.put(f"mysql.miss_ratio.{third}", missed / asked)


def constant_capacity(source: Source) -> None:
    """The course of a redo capacity that is only a variable: before MySQL 8.0.30, and in MariaDB."""
    capacity, grid = source.out.get(CAPACITY), source.window.grids.get("mysql")
    if capacity and grid is not None:
        constant = np.full(len(grid.seconds), capacity.rate)
        source.out.add_series(CAPACITY, Series(grid.seconds, constant, 0.0, grid.measured))


def spikes(out: Quantities) -> None:
    """Add `mysql.flush_burst` and `mysql.checkpoint_spikes`, the number of spikes that stalled the load."""
    series = out.series
    burst = flush_burst(series)
    if burst is None:
        out.mark_missing("mysql.flush_burst", why_no_burst(series))
    else:
        out.put("mysql.flush_burst", burst)
    if reason := why_no_spikes(series) or ("" if EVENTS in series else "there is no throughput series"):
        out.mark_missing("mysql.checkpoint_spikes", reason)
    else:
        out.put("mysql.checkpoint_spikes", float(sum(spike.what == STALL for spike in find(series))))
