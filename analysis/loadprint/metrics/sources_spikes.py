"""Adds the checkpoint spikes of a run as quantities."""

from __future__ import annotations

from collections.abc import Mapping

from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.series.series import Series, run_series
from loadprint.series.spikes import EVENTS, SERIES, STALL, find, flush_burst, why_no_burst, why_no_spikes


def spikes(run: Run, store: Store, out: Quantities, known: Mapping[str, Series] | None = None) -> None:
    """Add `mysql.flush_burst` and `mysql.checkpoint_spikes`, the number of spikes that stalled the load.

    `known` are the run's series, at least SERIES, if the caller has read them already.
    """
    series = run_series(run, store, SERIES) if known is None else known
    burst = flush_burst(series)
    if burst is None:
        out.mark_missing("mysql.flush_burst", why_no_burst(series))
    else:
        out.put("mysql.flush_burst", burst)
    if reason := why_no_spikes(series) or ("" if EVENTS in series else "there is no throughput series"):
        out.mark_missing("mysql.checkpoint_spikes", reason)
    else:
        out.put("mysql.checkpoint_spikes", float(sum(spike.what == STALL for spike in find(series))))
