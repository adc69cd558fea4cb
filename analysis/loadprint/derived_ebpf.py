"""Rows from the eBPF tables; shown where a run has them."""

from __future__ import annotations

from dataclasses import replace

from loadprint.derived import Metric, rate

WAITING = (
    "mean number of threads in this state: the time they spent in it per second, threads that wait for work "
    "included; all states add up to the threads that are not on a CPU"
)
BUCKETS = "a quantile from a histogram: off by at most 6.25 %"
STATES = {
    "run queue": "run queue",
    "block I/O": "block I/O",
    "lock": "lock (futex)",
    "network": "network",
    "sleep": "timer (sleep)",
    "other": "other",
}


def _quantile(key: str, label: str, source: str, shown: str = "µs") -> Metric:
    row = replace(rate(key, label, "s", shown, source), formula="from Δbuckets", better="lower")
    return replace(row, footnote=BUCKETS)


def _waiting(state: str, label: str) -> Metric:
    key = f"waiting_{state.replace(' ', '_').replace('/', '').lower()}"
    row = rate(key, f"server threads in: {label}", "1", "", f"sched.server.{state}.sum")
    return replace(row, formula="Δsum_ns / ns", footnote=WAITING)


SCHEDULER = (
    _quantile("runq_p50", "run queue latency p50, server", "sched.server.run queue.p50"),
    _quantile("runq_p99", "run queue latency p99, server", "sched.server.run queue.p99"),
    *(_waiting(state, label) for state, label in STATES.items()),
    rate("voluntary_server", "voluntary switches, server", "1/s", "/s", "switches.server.voluntary"),
    rate("involuntary_server", "involuntary switches, server", "1/s", "/s", "switches.server.involuntary"),
    rate("migrations_server", "migrations, server", "1/s", "/s", "switches.server.migrations"),
)
SYSCALLS = (
    rate("syscalls_server", "system calls, server", "1/s", "/s", "syscalls.server.all"),
    rate("syncs_server", "fsync and fdatasync, server", "1/s", "/s", "syscalls.server.sync"),
    *(
        _quantile(f"{call}_p99", f"{call} p99, server", f"syscall_latency.server.{call}.p99", "ms")
        for call in ("fsync", "fdatasync", "pread64", "pwrite64")
    ),
)
INTERRUPTS = (
    rate("irq_hard", "hard interrupts, whole host", "cores", "cores", "irq.hard.sum"),
    rate("irq_net_rx", "NET_RX softirqs, whole host", "cores", "cores", "irq.NET_RX.sum"),
    rate("irq_block", "BLOCK softirqs, whole host", "cores", "cores", "irq.BLOCK.sum"),
)
EBPF = (*SCHEDULER, *SYSCALLS, *INTERRUPTS)

# beside the rows of a disk: what a mean hides
DISK = tuple(
    _quantile(f"disk_{{}}_{word}_{name}", f"{word} {name}", f"block.{{}}.{word}.device.{name}", "ms")
    for word in ("read", "write", "flush")
    for name in ("p50", "p99")
)
