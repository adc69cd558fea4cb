"""Rows of a set of CPUs: busy and idle time, kernel mode, and the processes of a side."""

from __future__ import annotations

from loadprint.metrics.derived import Metric, added, with_view

CPU_STATES = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle")
CPU_LABELS = ("%usr", "%nice", "%sys", "%iowait", "%irq", "%soft", "%steal", "%idle")  # as mpstat names them
IOWAIT = "iowait: a CPU had nothing to run while an I/O was pending; a busy CPU shows none of it"
# busy = total - idle - iowait - steal; guest time is inside user (/proc/stat, proc(5))
KERNEL = ("system", "irq", "softirq")
BUSY = (*KERNEL, "user", "nice")


def busy_share(*times: float) -> float:
    """Share of all time, in percent, that is busy; `times` are BUSY and then the other states."""
    return 100 * sum(times[: len(BUSY)]) / sum(times)


def busy_first(side: str) -> tuple[str, ...]:
    """Times of a set of CPUs, those of BUSY first."""
    others = (state for state in CPU_STATES if state not in BUSY)
    return tuple(f"cpu.{side}.{state}" for state in (*BUSY, *others))


def cpu_metrics(side: str) -> tuple[Metric, ...]:
    """Rows of one CPU set; %usr holds guest time, as in /proc/stat (mpstat takes it out).

    Of the load's set only how busy it was is in every view, of the whole host nothing.
    """
    utilisation, kernel_share, *states = _set_metrics(side)
    own = _process_metrics(side)
    if side == "server":
        return utilisation, kernel_share, *states, *own
    if side == "load":
        return utilisation, *with_view("all", kernel_share, *states), own[0], *with_view("all", *own[1:])
    return with_view("all", utilisation, kernel_share, *states)


def _set_metrics(side: str) -> tuple[Metric, ...]:
    times = tuple(f"cpu.{side}.{state}" for state in CPU_STATES)
    plain = ("user", "system", "iowait", "idle")
    shares = tuple(
        Metric(
            f"cpu_{side}_{state}",
            label,
            "%",
            "%",
            (own, *(name for name in times if name != own)),
            lambda first, *rest: 100 * first / (first + sum(rest)),
            f"100 × {state} / all states",
            footnote=IOWAIT if state == "iowait" else "",
            view="always" if state in plain else "nonzero",
        )
        for state, label, own in zip(CPU_STATES, CPU_LABELS, times, strict=True)
    )
    utilisation = Metric(
        f"cpu_{side}_utilisation",
        "utilisation",
        "%",
        "%",
        busy_first(side),
        busy_share,
        "100 × (total − idle − iowait − steal) / total",
        headline=side == "server",
        coarse=len(BUSY),
    )
    kernel_share = Metric(
        f"cpu_{side}_kernel_share",
        "kernel mode, of busy",
        "%",
        "%",
        tuple(f"cpu.{side}.{state}" for state in BUSY),
        lambda *t: 100 * sum(t[: len(KERNEL)]) / sum(t),
        "100 × (system + irq + softirq) / busy",
        coarse=len(KERNEL),
    )
    return utilisation, kernel_share, *shares


def _process_metrics(side: str) -> tuple[Metric, ...]:
    """CPU time of a side's own processes: how much, and how much of it in the kernel."""
    process = (f"process.{side}.utime", f"process.{side}.stime")
    own = Metric(
        f"process_{side}_cpu",
        f"{side} process CPU",
        "cores",
        "cores",
        process,
        added,
        "Δ(utime + stime) / s",
        coarse=2,
    )
    system = Metric(
        f"process_{side}_system_share",
        f"kernel mode, of {side} process",
        "%",
        "%",
        process[::-1],
        lambda system, user: 100 * system / (user + system),
        "100 × Δstime / Δ(utime + stime)",
        view="all",
    )
    return own, system
