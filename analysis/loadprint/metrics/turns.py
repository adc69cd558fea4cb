"""Checks that the work of a side that alternates stayed in its turns: how it was frozen, what it left."""

from __future__ import annotations

import numpy as np

from loadprint.metrics.rates import Source
from loadprint.reading.counters import edges

LEFT = 0.01  # of the written bytes
STOPPED = "its processes were stopped by signals between its turns, not frozen by a control group"
LEFT_BEHIND = "of what it wrote was left to the kernel at the ends of its turns"
SPANS = "operations of the load had not ended when it was frozen"


def turns(source: Source) -> None:
    """Warn of a side whose work did not stay in its slices; nothing for a run that had all of the time.

    What is written into the page cache becomes dirty pages, and the kernel writes them when it likes, also
    while the side is frozen; their growth in the slices is compared with the bytes that the server wrote.
    """
    own = [each for each in source.run.slices if each.side == source.run.meta.side]
    if not own:
        return
    if any(each.by == "signal" for each in own):
        source.out.warnings.append(STOPPED)
    if unended := sum(each.in_event or 0 for each in own):
        source.out.warnings.append(f"{unended} {SPANS}")
    written = source.out.get("process.server.write_bytes")
    waiting = "metric IN ('Dirty', 'Writeback') GROUP BY tick"
    rows = source.rows("memory", f"SELECT tick, sum(value)::DOUBLE AS waiting FROM t WHERE {waiting}")
    if rows is None or written is None or not written.count:
        return
    first, last = edges(source.segments("memory", rows["tick"]))
    left = np.maximum(rows["waiting"][last] - rows["waiting"][first], 0.0).sum() * source.unit("memory.Dirty")
    if left > LEFT * written.count:
        source.out.warnings.append(f"{100 * left / written.count:.0f} % {LEFT_BEHIND}")
