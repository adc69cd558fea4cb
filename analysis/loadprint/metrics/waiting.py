"""Counts the threads of the server that are not on a CPU by what they wait for, as eBPF programs saw them."""

from __future__ import annotations

import numpy as np

from loadprint.metrics.rates import Source
from loadprint.reading.queries import together

PROBE, COLUMN = "ebpf_states", "time_ns"
RUNNING = {"on CPU", "stolen"}
# of the states of ebpf_states; all others are of files, and of pages that are read from them
KINDS = {
    "run_queue": ("run queue", "run queue after pause", "throttled"),
    "network": ("client", "sending", "network"),
    "lock": ("lock", "no connection"),
    "sleep": ("sleep",),
    "other": ("other", "stopped", "memory"),
}
FILES = "block_io"


def waiting(source: Source) -> None:
    """Add `waiting.<kind>`, mean numbers of threads with and without a connection; with series if charted."""
    values = "concat_ws('.', threads, state) AS name, state, time_ns::DOUBLE AS time_ns"
    rows = source.rows(PROBE, f"SELECT tick, {values} FROM t WHERE role = 'server'", whole=True)
    if rows is None or not len(rows["tick"]):
        source.out.mark_missing("waiting.", source.window.why_missing(PROBE))
        return
    grid = source.window.grids[PROBE]
    ticks = grid.ticks if source.charted else grid.ticks[grid.read]
    kind_of = {state: kind for kind, states in KINDS.items() for state in states}
    kinds = np.array(["" if state in RUNNING else kind_of.get(state, FILES) for state in rows["state"]])
    for kind in (*KINDS, FILES):
        name, chosen = f"waiting.{kind}", kinds == kind
        if not chosen.any():
            source.out.put(name, 0.0)
            continue
        of_kind = {column: rows[column][chosen] for column in ("tick", "name", COLUMN)}
        members = together(of_kind, "name", ticks).born_at_zero()
        source.counters(f"{PROBE}.{COLUMN}", name, members, COLUMN)
