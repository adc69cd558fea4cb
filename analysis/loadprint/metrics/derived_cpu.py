"""Declares the rows of a CPU set: busy and idle time, kernel mode, and the processes of a side."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.derived import Metric, added, rate, with_view

CPU_STATES = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle")
CPU_LABELS = ("%usr", "%nice", "%sys", "%iowait", "%irq", "%soft", "%steal", "%idle")  # as in mpstat
IOWAIT = "iowait: the CPU was idle while an I/O was pending; a busy CPU has no iowait"
# busy = total - idle - iowait - steal; guest time is inside user (/proc/stat, proc(5))
KERNEL = ("system", "irq", "softirq")
BUSY = (*KERNEL, "user", "nice")
UTILISATION = "100 × {0+1+2+3+4} / {5}"  # of the times of BUSY


def share(*times: float) -> float:
    """Percentage of elapsed time × CPUs; `times` are those counted, and last the number of CPUs."""
    return 100 * sum(times[:-1]) / times[-1]


def times_of(side: str, *states: str) -> tuple[str, ...]:
    """Times of a set of CPUs in some states, and the number of its CPUs: the inputs of `share`."""
    return (*(f"cpu.{side}.{state}" for state in states), f"cpu.{side}.cores")


def cpu_metrics(side: str) -> tuple[Metric, ...]:
    """Rows of one CPU set; %usr includes guest time, as in /proc/stat (mpstat subtracts it).

    Of the load's set only the utilisation is in every view, of the whole host nothing.
    """
    utilisation, kernel_share, *states = _set_metrics(side)
    processes = _process_metrics(side)
    if side == "server":
        return utilisation, kernel_share, *states, *processes
    if side == "load":
        hidden = with_view("all", kernel_share, *states)
        return utilisation, *hidden, processes[0], *with_view("all", *processes[1:])
    return with_view("all", utilisation, kernel_share, *states)


def _set_metrics(side: str) -> tuple[Metric, ...]:
    plain = ("user", "system", "iowait", "idle")
    shares = tuple(
        Metric(
            f"cpu_{side}_{state}",
            label,
            "%",
            "%",
            times_of(side, state),
            share,
            "100 × {0} / {1}",
            footnote=IOWAIT if state == "iowait" else "",
            view="always" if state in plain else "nonzero",
        )
        for state, label in zip(CPU_STATES, CPU_LABELS, strict=True)
    )
    utilisation = Metric(
        f"cpu_{side}_utilisation",
        "utilisation",
        "%",
        "%",
        times_of(side, *BUSY),
        share,
        UTILISATION,
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
        "100 × {Δ0+1+2} / {Δ0+1+2+3+4}",
        coarse=len(KERNEL),
    )
    kernel = Metric(
        f"cpu_{side}_kernel",
        "kernel mode, of all time",
        "%",
        "%",
        times_of(side, *KERNEL),
        share,
        "100 × {0+1+2} / {3}",
        coarse=len(KERNEL),
        view="all",
    )
    return utilisation, kernel_share, *shares, kernel


def _process_metrics(side: str) -> tuple[Metric, ...]:
    """CPU time of a side's processes, the kernel's share of it, and their memory."""
    process = (f"process.{side}.utime", f"process.{side}.stime")
    cpu_time = Metric(
        f"process_{side}_cpu",
        f"{side} process CPU",
        "cores",
        "cores",
        process,
        added,
        "{0+1}",
        coarse=2,
    )
    system = Metric(
        f"process_{side}_system_share",
        f"kernel mode, of {side} process",
        "%",
        "%",
        process[::-1],
        lambda system, user: 100 * system / (user + system),
        "100 × {Δ0} / {Δ1+0}",
        view="all",
    )
    memory = rate(f"process_{side}_rss", f"{side} process RSS", "B", "kB", f"process.{side}.rss")
    return cpu_time, system, replace(memory, better="lower", view="all")
