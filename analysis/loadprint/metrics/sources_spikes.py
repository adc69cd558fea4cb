"""Adds the checkpoint spikes of a run as quantities."""

from __future__ import annotations

from loadprint.metrics.quantities import Quantities
from loadprint.series.spikes import EVENTS, STALL, find, flush_burst, why_no_burst, why_no_spikes


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
