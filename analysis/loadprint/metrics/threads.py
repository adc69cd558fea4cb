"""Sums the counters of each role's threads over the segments.

Of a thread that ended, the last interval is not counted, and a note reports that threads ended.
"""

from __future__ import annotations

from loadprint.metrics.host import reused_pids
from loadprint.metrics.rates import Source
from loadprint.reading.columns import THREAD_FIELDS
from loadprint.reading.queries import quote

NOT_READ = "the kernel does not report this field for these threads"


def threads(source: Source, only: str = "") -> None:
    """Switches, CPU time and run-queue delay as `threads.<role>.<field>`; `busiest` thread in cores.

    `only` one role, as in `host.process`.
    """
    rows = source.rows("threads", "SELECT DISTINCT tick, role FROM t")
    if rows is None:
        source.out.mark_missing("threads", source.window.why_missing("threads"))
        return
    roles = sorted(set(rows["role"].tolist()))
    if not roles:
        source.out.mark_missing("threads", "no thread was read in the window")
        return
    # the number of the process of a row among those with its pid, from 0
    lives = [f"(pid = {pid:.0f} AND tick >= {tick:.0f})::INT" for pid, tick in reused_pids(source)]
    thread = f"hash(pid, tid, {' + '.join(['0', *lives])})"
    for role in roles:
        if only in {"", role}:
            _sum_role(source, role, thread)


def _sum_role(source: Source, role: str, thread: str) -> None:
    names = {name: f"threads.{role}.{name}" for name in THREAD_FIELDS}
    summed = source.sum("threads", names, thread, f"role = {quote(role)}", threads=True, optional=NOT_READ)
    if not summed.number:
        source.out.mark_missing(f"threads.{role}", "threads were read only once in the window")
        return
    if "on_cpu_ns" in summed.largest:
        source.out.put(f"threads.{role}.busiest", summed.largest["on_cpu_ns"])
    source.out.put(f"threads.{role}.number", float(summed.members))
    if summed.ended:
        source.out.notes.append(f"{role} threads ended in the window; their last interval is not counted")
