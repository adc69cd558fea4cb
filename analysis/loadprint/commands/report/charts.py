"""Declares the charts over time of a report: titles, units and series.

`time_charts.py` fills them. `{disk}` and `{nic}` are replaced by the name of a device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loadprint.rendering.report_data import Floats

Recipe = Callable[..., Floats]
KB, MIB = 1024.0, 1048576.0  # bytes: kB as sar prints it, and as the table does


def total(*parts: Floats) -> Floats:
    """Sum of series, NaN where one of them is missing."""
    values: Floats = np.sum(parts, axis=0)
    return values


def share(part: Floats, whole: Floats) -> Floats:
    """One series divided by another; NaN where the divisor is 0."""
    values: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return values


@dataclass(frozen=True)
class Wanted:
    """A chart with a line per run: the sum of the series `needs`, or the result of `recipe`."""

    key: str
    section: str
    title: str
    shown: str
    factor: float
    needs: tuple[str, ...]
    recipe: Recipe = total
    note: str = ""


@dataclass(frozen=True)
class Stack:
    """A chart of stacked parts: part → the series of its sum."""

    key: str
    section: str
    title: str
    side: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]


SECTIONS: dict[str, str] = {
    "throughput": "Throughput and latency",
    "cpu": "CPU",
    "disk": "Disk",
    "network": "Network",
    "kernel": "Switches and interrupts",
    "waiting": "Off-CPU and run queue, by eBPF",
    "memory": "Memory",
    "pressure": "Pressure stalls",
    "mysql": "Inside MySQL",
}


def _states(side: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parts of busy and lost CPU time, without idle; guest is part of user."""
    names = {
        "user": ("user", "nice"),
        "system": ("system",),
        "interrupts": ("irq", "softirq"),
        "steal": ("steal",),
        "iowait": ("iowait",),
    }
    return tuple((part, tuple(f"cpu.{side}.{name}" for name in fields)) for part, fields in names.items())


STACKS = (
    Stack("cpu_server", "cpu", "Server's set", "server", _states("server")),
    Stack("cpu_load", "cpu", "Load's set", "load", _states("load")),
)
LINES = (
    Wanted("operations", "throughput", "Operations", "/s", 1.0, ("load.events",)),
    Wanted(
        "latency_p95",
        "throughput",
        "Latency p95 per second",
        "ms",
        1e3,
        ("load.latency_p95",),
        note="of the transaction type with the highest p95",
    ),
    Wanted("backlog", "throughput", "Backlog: due, not started", "", 1.0, ("load.backlog",)),
)
DISK = (
    Wanted("read", "disk", "Read", "kB/s", 1 / KB, ("disk.{disk}.read_sectors",)),
    Wanted("written", "disk", "Written", "kB/s", 1 / KB, ("disk.{disk}.write_sectors",)),
    Wanted("reads", "disk", "Reads", "/s", 1.0, ("disk.{disk}.reads",)),
    Wanted("writes", "disk", "Writes", "/s", 1.0, ("disk.{disk}.writes",)),
    Wanted("flushes", "disk", "Flushes", "/s", 1.0, ("disk.{disk}.flushes",)),
    Wanted("r_await", "disk", "r_await", "ms", 1e3, ("disk.{disk}.read_ms", "disk.{disk}.reads"), share),
    Wanted("w_await", "disk", "w_await", "ms", 1e3, ("disk.{disk}.write_ms", "disk.{disk}.writes"), share),
    Wanted("f_await", "disk", "f_await", "ms", 1e3, ("disk.{disk}.flush_ms", "disk.{disk}.flushes"), share),
    Wanted("in_flight", "disk", "Requests in flight", "", 1.0, ("disk.{disk}.weighted_ms",)),
)
NETWORK = (
    Wanted("received", "network", "Received", "kB/s", 1 / KB, ("nic.{nic}.rx_bytes",)),
    Wanted("sent", "network", "Sent", "kB/s", 1 / KB, ("nic.{nic}.tx_bytes",)),
    Wanted(
        "packets",
        "network",
        "Packets, both ways",
        "/s",
        1.0,
        ("nic.{nic}.rx_packets", "nic.{nic}.tx_packets"),
    ),
)
MORE = (
    Wanted(
        "switches_server",
        "kernel",
        "Context switches, server threads",
        "/s",
        1.0,
        ("threads.server.switches",),
    ),
    Wanted("switches", "kernel", "Context switches, whole host", "/s", 1.0, ("host.ctxt",)),
    Wanted("interrupts", "kernel", "Interrupts, server's CPUs", "/s", 1.0, ("interrupts.server",)),
    Wanted("softirqs", "kernel", "Softirqs, server's CPUs", "/s", 1.0, ("softirqs.server",)),
    Wanted(
        "wait_cpu", "waiting", "Server threads waiting for a CPU", "", 1.0, ("sched.server.run queue.sum",)
    ),
    Wanted(
        "wait_lock",
        "waiting",
        "Server threads waiting for a lock (futex)",
        "",
        1.0,
        ("sched.server.lock.sum",),
    ),
    Wanted(
        "wait_io", "waiting", "Server threads waiting for block I/O", "", 1.0, ("sched.server.block I/O.sum",)
    ),
    Wanted("rss", "memory", "Server process, resident", "MiB", 1 / MIB, ("process.server.rss",)),
    Wanted("dirty", "memory", "Dirty page cache", "MiB", 1 / MIB, ("memory.Dirty",)),
    Wanted("writeback", "memory", "Page cache in writeback", "MiB", 1 / MIB, ("memory.Writeback",)),
    Wanted("available", "memory", "Available", "MiB", 1 / MIB, ("memory.MemAvailable",)),
    Wanted("psi_cpu", "pressure", "Some task waited for CPU", "%", 1e2, ("pressure.cpu_some",)),
    Wanted("psi_io", "pressure", "Some task waited for I/O", "%", 1e2, ("pressure.io_some",)),
    Wanted("psi_io_full", "pressure", "All tasks waited for I/O", "%", 1e2, ("pressure.io_full",)),
    Wanted("psi_memory", "pressure", "Some task waited for memory", "%", 1e2, ("pressure.memory_some",)),
    Wanted("dirty_pages", "mysql", "Dirty pages", "", 1.0, ("mysql.dirty_pages",)),
    Wanted("checkpoint_age", "mysql", "Checkpoint age", "MiB", 1 / MIB, ("mysql.checkpoint_age",)),
    Wanted("pages_flushed", "mysql", "Pages flushed", "/s", 1.0, ("mysql.pages_flushed",)),
    Wanted("redo", "mysql", "Redo written", "kB/s", 1 / KB, ("mysql.redo",)),
    Wanted("fsyncs", "mysql", "fsyncs of InnoDB", "/s", 1.0, ("mysql.fsyncs",)),
    Wanted("threads_running", "mysql", "Threads running", "", 1.0, ("mysql.threads_running",)),
    Wanted("history", "mysql", "History list", "", 1.0, ("mysql.history",)),
)
