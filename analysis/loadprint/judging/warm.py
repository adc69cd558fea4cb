"""Checks whether the server was warm at the start of the window, by its counters and the campaign's promise.

Warm is a state: the redo capacities that the warm-up wrote, or its checkpoint cycles; whether the buffer pool
was still filling in the window; whether its miss ratio was level there. A side that was not warm is shown
without a verdict. A check is skipped if the server lacks its counter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loadprint import numbers
from loadprint.judging.steady import exempt, lengthened
from loadprint.metrics.gather import Measured
from loadprint.reading import redo_log
from loadprint.reading.documents import Scalar
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import PromisedWarmth
from loadprint.reading.time_series import phases
from loadprint.statistics.trend import Floats

FULL_REDO, FULL_CYCLES = 2.0, 3  # required of a writing workload if its campaign promises nothing
FILLED = 0.05  # share of the buffer pool that may be filled in the window
MISSES = 1e-3  # of requests; fewer misses are irrelevant
LEVEL = 1.5  # the first third may have this many times the misses of the last third


def redo_capacities_written(measured: Measured) -> float | None:
    """Redo written by the warm-up over the redo capacity; None if one of them is unknown.

    From LSNs in SHOW GLOBAL STATUS, else from those that the MySQL probe recorded, else an upper bound:
    Innodb_os_log_written.
    """
    server = measured.run.server
    before, after = server.status_warmup, server.status_begin
    capacity = redo_log.capacity(server.variables)
    if not capacity or not before or not after:
        return None
    written = redo_log.written(before, after)
    if written is None:
        written = _redo_recorded(measured)
    if written is None:
        written = redo_log.written(before, after, redo_log.UPPER_BOUND)
    return None if written is None else written / capacity


def _redo_recorded(measured: Measured) -> float | None:
    """Bytes of redo between the start of the first phase and that of `measure`, by the MySQL probe.

    Intervals count if their middle is in between; None if the probe missed one of them.
    """
    redo, spans = measured.quantities.series.get("mysql.redo"), phases(measured.run)
    if redo is None or not spans:
        return None
    chosen = (redo.seconds > spans[0].begin_s) & (redo.seconds < 0)
    written = float(np.sum((redo.values * 2 * redo.half)[chosen]))
    return written if chosen.any() and np.isfinite(written) else None


def free_buffer_share(run: Run, when: str = "status_begin") -> float | None:
    """Share of the buffer pool's pages that were free at a reading (the start of the window), 0 to 1."""
    status: Mapping[str, Scalar] = getattr(run.server, when)
    free = redo_log.number(status.get("Innodb_buffer_pool_pages_free"))
    total = redo_log.number(status.get("Innodb_buffer_pool_pages_total"))
    return free / total if free is not None and total else None


def reached(runs: Sequence[Measured]) -> str:
    """The state of a side's servers at the start of the windows; empty if not recorded."""
    written = [value for run in runs if (value := redo_capacities_written(run)) is not None]
    free = [value for run in runs if (value := free_buffer_share(run.run)) is not None]
    texts = []
    if written:
        texts.append(f"wrote {' / '.join(f'{value:.2f}' for value in written)} × the redo capacity")
    if free:
        texts.append(f"buffer pool {100 * (1 - sum(free) / len(free)):.0f} % in use")
    return ", ".join(texts)


def cold(name: str, runs: Sequence[Measured], promised: PromisedWarmth) -> str:
    """Why a side counts as not warm; empty if it was warm, or if nothing shows it.

    `promised` is the campaign's `warm`, empty outside of campaigns: then the full rule applies.
    """
    reasons = [broken_promise(runs, promised.redo_capacities_written)]
    reasons.append(_pool_above(runs, promised.free_buffer_pages))
    if not promised:
        reasons.append(_under_full_rule(runs))
    reasons += [_filling(runs), _missing(runs)]
    text = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
    return f"{name} was not warm ({text}): no verdict" if text else ""


def remedy(runs: Sequence[Measured], promised: PromisedWarmth) -> str:
    """How to warm a side that was not warm.

    The length of the warm-up is known if only redo is missing: the warm-up writes it at a constant rate.
    """
    pool = _pool_above(runs, promised.free_buffer_pages)
    if pool or _filling(runs) or _missing(runs):
        return lengthened(runs, None)
    needed = promised.redo_capacities_written if promised else FULL_REDO
    further = 0.0
    for run in runs:
        written, spans = redo_capacities_written(run), phases(run.run)
        if not needed or written is None or written >= needed or not (promised or _writes(run)):
            continue
        if written <= 0 or not spans or spans[0].begin_s >= 0:
            return lengthened(runs, None)
        further = max(further, -spans[0].begin_s * (needed / written - 1))
    return lengthened(runs, further or None)


def broken_promise(runs: Sequence[Measured], promised: float | None) -> str:
    """The reason if a repeat wrote less redo than the campaign promised; empty if none did."""
    written = [value for run in runs if (value := redo_capacities_written(run)) is not None]
    if not promised or not written or min(written) >= promised:
        return ""
    return f"a warm-up wrote only {min(written):.2f} of the redo capacity, the campaign promises {promised:g}"


def checkpoint_cycles(age: Floats, capacity: float) -> int:
    """Falls of the checkpoint age (readings,) by half of its range or more.

    A range under a twentieth of the redo capacity has no cycles.
    """
    age = age[np.isfinite(age)]
    if len(age) < 3 or float(np.ptp(age)) < 0.05 * capacity:
        return 0
    half, cycles = float(np.ptp(age)) / 2, 0
    highest = lowest = float(age[0])
    falling = False
    for value in age.tolist():
        if falling:
            lowest = min(lowest, value)
            falling = value < lowest + half
            highest = value
        else:
            highest = max(highest, value)
            if value <= highest - half:
                falling, lowest, cycles = True, value, cycles + 1
    return cycles


def _pool_above(runs: Sequence[Measured], promised: float | None) -> str:
    free = [value for run in runs if (value := free_buffer_share(run.run)) is not None]
    if promised is None or not free or max(free) <= promised:
        return ""
    return f"{100 * max(free):.0f} % of the buffer pool was free, the campaign promises {100 * promised:g} %"


def _under_full_rule(runs: Sequence[Measured]) -> str:
    """Two redo capacities or three checkpoint cycles, of every repeat that writes."""
    for run in runs:
        written = redo_capacities_written(run)
        if written is None or written >= FULL_REDO or not _writes(run):
            continue
        cycles = _cycles(run)
        if cycles < FULL_CYCLES:
            return (
                f"{run.run.id} wrote {written:.2f} redo capacities and had {cycles} checkpoint cycles before "
                f"its window; a writing workload needs {FULL_REDO:g} or {FULL_CYCLES}"
            )
    return ""


def _writes(run: Measured) -> bool:
    """Whether the workload writes, by the server's counters if the client does not count it."""
    counted = run.run.result.writes
    changed = run.quantities.get("mysql.rows_written")
    return bool(counted) if counted is not None else changed is not None and changed.rate > 0


def _cycles(run: Measured) -> int:
    """Checkpoint cycles before the window, by the MySQL probe; 0 if it did not record."""
    age = run.quantities.series.get("mysql.checkpoint_age")
    capacity = redo_log.capacity(run.run.server.variables)
    if age is None or not capacity:
        return 0
    return checkpoint_cycles(age.values[age.seconds < 0], capacity)


def _filling(runs: Sequence[Measured]) -> str:
    """The reason if the buffer pool filled up in the window, other than by growing data."""
    for run in runs:
        before, after = (free_buffer_share(run.run, when) for when in ("status_begin", "status_end"))
        if before is not None and after is not None and not exempt(run) and before - after > FILLED:
            return f"{run.run.id} filled {100 * (before - after):.0f} % of its buffer pool in the window"
    return ""


def _missing(runs: Sequence[Measured]) -> str:
    """The reason if the miss ratio was still falling in the window: its first third over its last."""
    for run in runs:
        first, last = (run.quantities.get(f"mysql.miss_ratio.{third}") for third in ("first", "last"))
        if first and last and not exempt(run) and first.rate > max(MISSES, LEVEL * last.rate):
            shares = [numbers.percent(third.rate) for third in (first, last)]
            return (
                f"{run.run.id} missed {shares[0]} % of its page requests in the first third of "
                f"its window, {shares[1]} % in the last"
            )
    return ""
