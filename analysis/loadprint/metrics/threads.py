"""Sums the counters of each role's threads over the window.

Of a thread that ended, the last interval is not counted, and a note reports that threads ended.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from loadprint.metrics.sources import Source, reused_pids, summed_rises
from loadprint.reading.columns import THREAD_FIELDS
from loadprint.reading.counters import rises
from loadprint.reading.queries import Columns, by_entity, listed, sums


def threads(source: Source) -> None:
    """Switches, CPU time and run-queue delay as `threads.<role>.<field>`; `busiest` thread in cores."""
    path = source.run.table(source.window.role, "threads")
    if path is None or "threads" not in source.window.middle_ns:
        source.out.mark_missing("threads", source.window.why_missing("threads"))
        return
    _series(source)
    again = reused_pids(source)
    first, last = source.window.ends("threads")
    rows = source.store.fetch(path, _of_threads(again, first), between=(first, last))
    if len(rows["seen"]) == 0:
        source.out.mark_missing("threads", "no thread was read in the window")
        return
    seconds, end = source.seconds("threads", first, last), rows["seen"].max()
    for role in sorted(set(rows["role"].tolist())):
        chosen = rows["role"] == role
        _sum_role(source, role, {name: values[chosen] for name, values in rows.items()}, seconds, end)


def _series(source: Source) -> None:
    """Courses of the role's threads together."""
    if not source.charted:
        return
    query = summed_rises(THREAD_FIELDS, ("role", "pid", "tid"), born_at_zero=True)
    rows, grid = source.rows("threads", query, whole=True), source.window.grids["threads"]
    for role, series in by_entity(rows, "role") if rows is not None else ():
        for name in THREAD_FIELDS:
            unit = source.unit("threads", name)
            course = grid.rises(series["tick"], series[f"since {name}"], series[name], unit)
            source.out.add_series(f"threads.{role}.{name}", course)


def _of_threads(again: list[tuple[float, float]], first: int) -> str:
    """Increase of each thread's counters, and the first and last tick at which it and they were read.

    `life` is the number of the process of a row among those with its pid, from 0.
    """
    entity = ("role", "pid", "tid", "life")
    lives = [f"(pid = {pid:.0f} AND tick >= {tick:.0f})::INT" for pid, tick in again]
    table = f"(SELECT *, {' + '.join(['0', *lives])} AS life FROM t)"
    known = {name: f"CASE WHEN {name} IS NOT NULL THEN tick END" for name in THREAD_FIELDS}
    columns = listed(
        {"begin": "min(tick)::DOUBLE", "seen": "max(tick)::DOUBLE", **sums(THREAD_FIELDS)}
        | {f"first {name}": f'min(coalesce("since {name}", {at}))::DOUBLE' for name, at in known.items()}
        | {f"last {name}": f"max({at})::DOUBLE" for name, at in known.items()}
    )
    keys = ", ".join(entity)
    return (
        f"SELECT {keys}, {columns}"
        f" FROM ({rises(table, THREAD_FIELDS, entity, str(first))}) GROUP BY {keys} ORDER BY {keys}"
    )


def _sum_role(source: Source, role: str, rows: Columns, seconds: float, end: float) -> None:
    if seconds <= 0:
        source.out.mark_missing(f"threads.{role}", "threads were read only once in the window")
        return
    at = partial(source.times, "threads")
    lived = at(rows["seen"]) - at(rows["begin"])
    for name in THREAD_FIELDS:
        counted = at(rows[f"last {name}"]) - at(rows[f"first {name}"])
        # 1 but for a counter that was not read at both ends
        shares = np.divide(lived, counted, out=np.ones_like(lived), where=(counted > 0) & (lived > 0))
        risen, unit = rows[name] * shares, source.unit("threads", name)
        if np.isnan(risen).all():
            source.out.mark_missing(
                f"threads.{role}.{name}", "the kernel does not report this field for these threads"
            )
            continue
        total = float(np.nansum(risen))
        source.out.put(f"threads.{role}.{name}", total * unit / seconds, total, cut=unit < 1)
        if name == "on_cpu_ns":
            source.out.put(f"threads.{role}.busiest", float(np.nanmax(risen)) * unit / seconds)
    source.out.put(f"threads.{role}.number", float(len(rows["seen"])))
    ended = int((rows["seen"] < end).sum())
    if ended:
        source.out.notes.append(f"{role} threads ended in the window; their last interval is not counted")
