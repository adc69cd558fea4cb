"""Sums the counters of each role's threads between their first and last read in the window.

A thread that started in the window counts from zero, one that ended until its last read: its last interval is
not counted, and a note reports that threads ended.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir
import numpy as np

from loadprint.metrics.sources import Source, reused_pids
from loadprint.reading.columns import THREAD_UNITS
from loadprint.reading.queries import Columns, number


def threads(source: Source) -> None:
    """Switches, CPU time and run-queue delay as `threads.<role>.<field>`; `busiest` thread in cores."""
    path = source.run.table(source.window.role, "threads")
    if path is None or "threads" not in source.window.middle_ns:
        source.out.mark_missing("threads", source.window.why_missing("threads"))
        return
    ends: dict[str, ir.Value] = {}
    for name in THREAD_UNITS:
        column = number(ibis._[name])
        ends |= {f"{name}_0": column.argmin(ibis._.tick), f"{name}_1": column.argmax(ibis._.tick)}
    again = reused_pids(source)
    rows = source.store.fetch(
        path,
        lambda t: t.group_by("role", "pid", "tid", life=_life(t, again)).agg(
            born=number(ibis._.tick.min()), seen=number(ibis._.tick.max()), **ends
        ),
        between=source.window.ends("threads"),
    )
    if len(rows["born"]) == 0:
        source.out.mark_missing("threads", "no thread was read in the window")
        return
    begin, end = rows["born"].min(), rows["seen"].max()
    for role in sorted(set(rows["role"].tolist())):
        chosen = rows["role"] == role
        _sum_role(source, role, {name: values[chosen] for name, values in rows.items()}, begin, end)


def _life(threads: ir.Table, again: list[tuple[float, float]]) -> ir.Value:
    """Number of the process of a row among those with its pid, from 0."""
    life: ir.Value = ibis.literal(0)
    for pid, tick in again:
        life = life + ibis.ifelse((number(threads.pid) == pid) & (threads.tick >= int(tick)), 1, 0)
    return life


def _sum_role(source: Source, role: str, rows: Columns, begin: float, end: float) -> None:
    seconds = source.seconds("threads", np.array([begin, end]))
    if seconds <= 0:
        source.out.mark_missing(f"threads.{role}", "threads were read only once in the window")
        return
    for name, unit in THREAD_UNITS.items():
        before = np.where(rows["born"] == begin, rows[f"{name}_0"], 0.0)
        risen = rows[f"{name}_1"] - before
        risen = np.where(risen < 0, rows[f"{name}_1"], risen)  # a new thread with the same tid
        if np.isnan(risen).all():
            source.out.mark_missing(
                f"threads.{role}.{name}", "the kernel does not report this field for these threads"
            )
            continue
        total = float(np.nansum(risen))
        source.out.put(f"threads.{role}.{name}", total * unit / seconds, total, cut=unit < 1)
        if name == "on_cpu_ns":
            source.out.put(f"threads.{role}.busiest", float(np.nanmax(risen)) * unit / seconds)
    source.out.put(f"threads.{role}.number", float(len(rows["born"])))
    ended = int((rows["seen"] < end).sum())
    if ended:
        source.out.notes.append(f"{role} threads ended in the window; their last interval is not counted")
