"""The kernel's figures by concurrency, and whether they agree with the terms that a fit supports.

Contention appears as threads that wait for locks, coherency as more CPU for the same operation. A run queue
that grows on busy CPUs means that the CPUs are the limit, regardless of the terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import Cell
from loadprint.commands.usl.conclusions import number
from loadprint.metrics.derived_cpu import CPU_STATES
from loadprint.metrics.gather import Measured
from loadprint.statistics.rank import rank_correlation

GROWS = 1.5  # × from the least to the largest N
STEADILY = 0.7  # rank correlation with N
WAITING = 0.1  # of the added connections
BUSY = 90.0
MICRO = 1e6


@dataclass(frozen=True)
class Figure:
    """A figure by N: `values` in `unit`, in the order of the N, None where it was not recorded.

    `factor` is last over first, None without both; `grows`: it rises with N.
    """

    key: str
    head: str
    label: str
    unit: str
    values: tuple[float | None, ...]
    factor: float | None
    grows: bool
    reason: str = ""


@dataclass(frozen=True)
class Growth:
    """All figures of a column by N, and the conclusions on its terms."""

    n: tuple[float, ...]
    figures: tuple[Figure, ...]
    sentences: tuple[str, ...]

    def figure(self, key: str) -> Figure:
        """One figure. Raises StopIteration where there is no such key."""
        return next(figure for figure in self.figures if figure.key == key)


def _busy(run: Measured) -> float | None:
    states = [run.quantities.get(f"cpu.server.{state}") for state in CPU_STATES]
    times = [state.rate for state in states if state is not None]
    if len(times) < len(CPU_STATES) or math.fsum(times) <= 0:
        return None
    not_busy = sum(
        time for state, time in zip(CPU_STATES, times, strict=True) if state in ("idle", "iowait", "steal")
    )
    return 100 * (1 - not_busy / math.fsum(times))


# key, header, label, unit, value, factor to the unit, quantity that has the reason for a missing value
FIGURES: tuple[tuple[str, str, str, str, Callable[[Measured], float | None], float, str], ...] = (
    (
        "runq_p99",
        "runq p99 µs",
        "run-queue latency p99 of server threads",
        "µs",
        cells.rate("sched.server.run queue.p99"),
        MICRO,
        "sched.server.run queue.p99",
    ),
    (
        "runq",
        "in runq",
        "server threads waiting in the run queue",
        "threads",
        cells.rate("threads.server.run_delay_ns"),
        1.0,
        "threads.server.run_delay_ns",
    ),
    (
        "lock",
        "on a lock",
        "server threads off CPU for a lock",
        "threads",
        cells.rate("sched.server.lock.sum"),
        1.0,
        "sched.server.lock.sum",
    ),
    (
        "switches",
        "switches/op",
        "switches of server threads per operation",
        "",
        cells.switches,
        1.0,
        "threads.server",
    ),
    ("cpu", "CPU/op µs", "server CPU per operation", "µs", cells.server_cpu, MICRO, "process.server"),
    ("busy", "CPUs busy %", "server's CPUs busy", "%", _busy, 1.0, "cpu.server"),
)


def growth(measured: Mapping[float, Cell], terms: Sequence[str]) -> Growth | None:
    """Figures of the cells by N and their agreement with a fit's `terms`; None without cells."""
    if not measured:
        return None
    n = tuple(sorted(measured))
    figures = []
    for key, head, label, unit, figure, factor, quantity in FIGURES:
        known = [measured[at].mean(figure) for at in n]
        values = tuple(None if value is None else value * factor for value in known)
        reason = "" if any(value is not None for value in values) else _why(measured, quantity)
        figures.append(Figure(key, head, label, unit, values, *_trend(n, values), reason))
    unjudged = Growth(n, tuple(figures), ())
    return Growth(n, unjudged.figures, tuple(_sentences(unjudged, terms)))


def _why(measured: Mapping[float, Cell], quantity: str) -> str:
    run = next((run for cell in measured.values() for run in cell.runs), None)
    return "there is no run" if run is None else run.quantities.why(quantity)


def _trend(n: Sequence[float], values: Sequence[float | None]) -> tuple[float | None, bool]:
    known = [(at, value) for at, value in zip(n, values, strict=True) if value is not None]
    if len(known) < 3 or known[0][1] <= 0:
        return None, False
    factor = known[-1][1] / known[0][1]
    steady = rank_correlation([at for at, _ in known], [value for _, value in known])
    return factor, factor >= GROWS and steady is not None and steady >= STEADILY


def _sentences(by_n: Growth, terms: Sequence[str]) -> list[str]:
    growing = [
        f"{figure.label} {number(figure.factor)} ×"
        for figure in by_n.figures
        if figure.grows and figure.factor
    ]
    span = f"from N = {by_n.n[0]:g} to {by_n.n[-1]:g}"
    sentences = [
        f"Grows {span}: {', '.join(growing)}." if growing else f"None of these figures grows {span}."
    ]
    absent = [figure.label for figure in by_n.figures if figure.reason]
    if absent:
        sentences.append(f"Not recorded: {', '.join(absent)}.")
    waiting, cpu = _waiting_share(by_n), by_n.figure("cpu")
    if "contention" in terms:
        sentences.append(_contention(by_n, waiting))
    if "coherency" in terms:
        agrees = (
            f"agrees: an operation uses {number(cpu.factor or 0)} × the CPU"
            if cpu.grows
            else _unconfirmed(cpu)
        )
        sentences.append(f"Coherency {agrees}.")
    if not terms:
        sentences.append("The fit supports no term, so there is nothing to agree with.")
    if _saturated(by_n):
        sentences.append("The server's CPUs are busy and its run queue grows: throughput is limited by CPU.")
    return sentences


def _contention(by_n: Growth, waiting: float | None) -> str:
    lock, switches = by_n.figure("lock"), by_n.figure("switches")
    if waiting is not None and waiting >= WAITING:
        return f"Contention agrees: {100 * waiting:.0f} % of the added connections wait for a lock."
    if lock.reason:
        hint = "; switches per operation grow, as they do with lock handovers" if switches.grows else ""
        return f"Contention cannot be compared with lock waits, which were not recorded{hint}."
    return "Contention is not confirmed by lock waits, which do not grow with N."


def _unconfirmed(figure: Figure) -> str:
    return f"cannot be checked: {figure.reason}" if figure.reason else "is not confirmed by CPU per operation"


def _waiting_share(by_n: Growth) -> float | None:
    """Share of the connections added since the least N that wait for a lock."""
    lock = by_n.figure("lock").values
    if lock[0] is None or lock[-1] is None or by_n.n[-1] <= by_n.n[0]:
        return None
    return (lock[-1] - lock[0]) / (by_n.n[-1] - by_n.n[0])


def _saturated(by_n: Growth) -> bool:
    busy = by_n.figure("busy").values[-1]
    queued = by_n.figure("runq").grows or by_n.figure("runq_p99").grows
    return busy is not None and busy >= BUSY and queued
