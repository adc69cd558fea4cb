"""The kernel's figures by concurrency, and whether they agree with the terms that a fit supports.

Contention appears as threads that wait for locks, coherency as more CPU for the same operation. A run queue
that grows on busy CPUs means that the CPUs are the limit, regardless of the terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import SweepCell
from loadprint.commands.usl.conclusions import number
from loadprint.statistics.several import rank_correlation
from loadprint.tables.rows import evaluate
from loadprint.tables.run_metrics import DISK, NIC, metrics, sections

GROWS = 1.5  # × from the least to the largest N
STEADILY = 0.7  # rank correlation with N
WAITING = 0.1  # of the added connections
BUSY_CPUS = 90.0  # %


@dataclass(frozen=True)
class GrowthFigure:
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
    figures: tuple[GrowthFigure, ...]
    sentences: tuple[str, ...]


# header and row by key
FIGURES = {
    "runq_p99": ("runq p99", "runq_p99"),
    "runq": ("in runq", "run_delay_server"),
    "lock": ("on a lock", "waiting_lock"),
    "switches": ("switches/op", "switches_per_operation"),
    "cpu": ("CPU/op", "server_cpu_per_operation"),
    "busy": ("CPUs busy", "cpu_server_utilisation"),
}


def growth(measured: Mapping[float, SweepCell], terms: Sequence[str]) -> Growth | None:
    """Figures of the cells by N and their agreement with a fit's `terms`; None without cells."""
    if not measured:
        return None
    n = tuple(sorted(measured))
    runs = [run for at in n for run in measured[at].runs]
    figures = {}
    titles = {metric.key: title for title, rows in sections(DISK, NIC).items() for metric in rows}
    for key, (head, row) in FIGURES.items():
        metric = metrics()[row]
        means = [measured[at].mean(cells.row(row)) for at in n]
        values = tuple(None if mean is None else mean * metric.factor for mean in means)
        reason = ""
        if all(mean is None for mean in means):
            reason = evaluate(metric, runs[0])[1] if runs else "there is no run"
        trend = _trend(n, values)
        figures[key] = GrowthFigure(
            key, head, f"{metric.label} [{titles[row]}]", metric.shown, values, *trend, reason
        )
    return Growth(n, tuple(figures.values()), tuple(_sentences(n, figures, terms)))


def _trend(n: Sequence[float], values: Sequence[float | None]) -> tuple[float | None, bool]:
    measured = [(at, value) for at, value in zip(n, values, strict=True) if value is not None]
    if len(measured) < 3 or measured[0][1] <= 0:
        return None, False
    factor = measured[-1][1] / measured[0][1]
    steady = rank_correlation([at for at, _ in measured], [value for _, value in measured])
    return factor, factor >= GROWS and steady is not None and steady >= STEADILY


def _sentences(
    n: Sequence[float], figures: Mapping[str, GrowthFigure], terms: Sequence[str]
) -> Iterator[str]:
    span = f"from N = {n[0]:g} to {n[-1]:g}"
    growing = [f"{figure.head} {number(figure.factor or 0)} ×" for figure in figures.values() if figure.grows]
    yield f"Grows {span}: {', '.join(growing)}." if growing else f"None of these figures grows {span}."
    if absent := [figure.head for figure in figures.values() if figure.reason]:
        yield f"Not recorded: {', '.join(absent)}."
    if "contention" in terms:
        yield _contention(n, figures)
    cpu, busy = figures["cpu"], figures["busy"].values[-1]
    if "coherency" in terms:
        agrees = "is not confirmed by CPU per operation"
        if cpu.grows:
            agrees = f"agrees: an operation uses {number(cpu.factor or 0)} × the CPU"
        elif cpu.reason:
            agrees = f"cannot be checked: {cpu.reason}"
        yield f"Coherency {agrees}."
    if not terms:
        yield "The fit supports no term, so there is nothing to agree with."
    if busy is not None and busy >= BUSY_CPUS and (figures["runq"].grows or figures["runq_p99"].grows):
        yield "The server's CPUs are busy and its run queue grows: throughput is limited by CPU."


def _contention(n: Sequence[float], figures: Mapping[str, GrowthFigure]) -> str:
    lock, first, last = figures["lock"], figures["lock"].values[0], figures["lock"].values[-1]
    if first is not None and last is not None and n[-1] > n[0]:
        waiting = (last - first) / (n[-1] - n[0])
        if waiting >= WAITING:
            return f"Contention agrees: {100 * waiting:.0f} % of the added connections wait for a lock."
    if lock.reason:
        handovers = "; switches per operation grow, as they do with lock handovers"
        hint = handovers if figures["switches"].grows else ""
        return f"Contention cannot be compared with lock waits, which were not recorded{hint}."
    if lock.grows:
        little = f"{100 * WAITING:.0f} % of the added connections"
        return f"Contention is not confirmed by lock waits, which grow by less than {little}."
    return "Contention is not confirmed by lock waits, which do not grow with N."
