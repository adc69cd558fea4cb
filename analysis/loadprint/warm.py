"""How warm the server was when its window began, by its own counters, against what the campaign promised.

Warm is a state: how many redo capacities the warm-up wrote, and how much of the buffer pool was still free.
It cannot see what a counter that this server lacks would have told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadprint.recording import Run


def redo_capacities_written(run: Run) -> float | None:
    """Redo written by the warm-up over the redo capacity, from LSNs; None where the server does not tell."""
    server = run.server or {}
    before, after = server.get("status_warmup") or {}, server.get("status_begin") or {}
    capacity = _capacity(server.get("variables") or {})
    for name in ("Innodb_redo_log_current_lsn", "Innodb_lsn_current"):  # MySQL 8.0.30, MariaDB 10.5
        first, last = _number(before.get(name)), _number(after.get(name))
        if first is not None and last is not None and capacity:
            return (last - first) / capacity
    return None


def free_buffer_share(run: Run) -> float | None:
    """Share of the buffer pool's pages that were free when the window began, 0 to 1."""
    status = (run.server or {}).get("status_begin") or {}
    free = _number(status.get("Innodb_buffer_pool_pages_free"))
    total = _number(status.get("Innodb_buffer_pool_pages_total"))
    return free / total if free is not None and total else None


def reached(runs: Sequence[Run]) -> str:
    """What the repeats of a side had reached when their windows began; empty where no server told."""
    redo = [value for run in runs if (value := redo_capacities_written(run)) is not None]
    free = [value for run in runs if (value := free_buffer_share(run)) is not None]
    told = []
    if redo:
        told.append(f"redo {' / '.join(f'{value:.2f}' for value in redo)} of its capacity")
    if free:
        told.append(f"buffer pool {100 * (1 - sum(free) / len(free)):.0f} % in use")
    return ", ".join(told)


def broken_promise(runs: Sequence[Run], promised: float | None) -> str:
    """The sentence that says a repeat wrote less redo than the campaign promised; empty where all kept it."""
    written = [value for run in runs if (value := redo_capacities_written(run)) is not None]
    if not promised or not written or min(written) >= promised:
        return ""
    return f"a warm-up wrote only {min(written):.2f} of the redo capacity, the campaign promises {promised:g}"


def _capacity(variables: dict[str, Any]) -> float | None:
    capacity = _number(variables.get("innodb_redo_log_capacity"))
    if capacity is None:
        size = _number(variables.get("innodb_log_file_size"))
        # one file since MariaDB 10.5, which dropped the variable
        files = _number(variables.get("innodb_log_files_in_group")) or 1
        capacity = size * files if size is not None else None
    return capacity


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
