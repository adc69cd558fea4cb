"""Declares the charts over time of a report and fills them from the series of every run.

`{disk}` and `{nic}` are replaced by the name of a device. Charts of zeros are listed, not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.metrics.devices import Device
from loadprint.reading.time_series import Series
from loadprint.rendering.report_data import Course, Line

KB, MIB = 1024.0, 1048576.0  # bytes: kB as sar prints it, and as the table does
FACTORS = {"kB/s": 1 / KB, "MiB": 1 / MIB, "ms": 1e3, "%": 1e2}  # from base units
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


@dataclass(frozen=True)
class Wanted:
    """A chart with a line per run: the sum of the series `needs`, or the first by the second (`share`)."""

    section: str
    key: str
    title: str
    shown: str
    needs: tuple[str, ...]
    share: bool = False
    note: str = ""


# CPU time without idle; guest is part of user
PARTS = {
    "user": ("user", "nice"),
    "system": ("system",),
    "interrupts": ("irq", "softirq"),
    "steal": ("steal",),
    "iowait": ("iowait",),
}
STACKS = {"server": "Server's set", "load": "Load's set"}
HIGHEST = "of the transaction type with the highest p95"
LINES = (
    Wanted("throughput", "operations", "Operations", "/s", ("load.events",)),
    Wanted("throughput", "latency_p95", "Latency p95 per second", "ms", ("load.latency_p95",), note=HIGHEST),
    Wanted("throughput", "backlog", "Backlog: due, not started", "", ("load.backlog",)),
)
DISK = (
    Wanted("disk", "read", "Read", "kB/s", ("disk.{disk}.read_sectors",)),
    Wanted("disk", "written", "Written", "kB/s", ("disk.{disk}.write_sectors",)),
    Wanted("disk", "reads", "Reads", "/s", ("disk.{disk}.reads",)),
    Wanted("disk", "writes", "Writes", "/s", ("disk.{disk}.writes",)),
    Wanted("disk", "flushes", "Flushes", "/s", ("disk.{disk}.flushes",)),
    Wanted("disk", "r_await", "r_await", "ms", ("disk.{disk}.read_ms", "disk.{disk}.reads"), share=True),
    Wanted("disk", "w_await", "w_await", "ms", ("disk.{disk}.write_ms", "disk.{disk}.writes"), share=True),
    Wanted("disk", "f_await", "f_await", "ms", ("disk.{disk}.flush_ms", "disk.{disk}.flushes"), share=True),
    Wanted("disk", "in_flight", "Requests in flight", "", ("disk.{disk}.weighted_ms",)),
)
NETWORK = (
    Wanted("network", "received", "Received", "kB/s", ("nic.{nic}.rx_bytes",)),
    Wanted("network", "sent", "Sent", "kB/s", ("nic.{nic}.tx_bytes",)),
    Wanted(
        "network", "packets", "Packets, both ways", "/s", ("nic.{nic}.rx_packets", "nic.{nic}.tx_packets")
    ),
)
WAITING = "Server threads waiting for"
MORE = (
    Wanted(
        "kernel", "switches_server", "Context switches, server threads", "/s", ("threads.server.switches",)
    ),
    Wanted("kernel", "switches", "Context switches, whole host", "/s", ("host.ctxt",)),
    Wanted("kernel", "interrupts", "Interrupts, server's CPUs", "/s", ("interrupts.server",)),
    Wanted("kernel", "softirqs", "Softirqs, server's CPUs", "/s", ("softirqs.server",)),
    Wanted("waiting", "wait_cpu", f"{WAITING} a CPU", "", ("sched.server.run queue.sum",)),
    Wanted("waiting", "wait_lock", f"{WAITING} a lock (futex)", "", ("sched.server.lock.sum",)),
    Wanted("waiting", "wait_io", f"{WAITING} block I/O", "", ("sched.server.block I/O.sum",)),
    Wanted("memory", "rss", "Server process, resident", "MiB", ("process.server.rss",)),
    Wanted("memory", "dirty", "Dirty page cache", "MiB", ("memory.Dirty",)),
    Wanted("memory", "writeback", "Page cache in writeback", "MiB", ("memory.Writeback",)),
    Wanted("memory", "available", "Available", "MiB", ("memory.MemAvailable",)),
    Wanted("pressure", "psi_cpu", "Some task waited for CPU", "%", ("pressure.cpu_some",)),
    Wanted("pressure", "psi_io", "Some task waited for I/O", "%", ("pressure.io_some",)),
    Wanted("pressure", "psi_io_full", "All tasks waited for I/O", "%", ("pressure.io_full",)),
    Wanted("pressure", "psi_memory", "Some task waited for memory", "%", ("pressure.memory_some",)),
    Wanted("mysql", "dirty_pages", "Dirty pages", "", ("mysql.dirty_pages",)),
    Wanted("mysql", "checkpoint_age", "Checkpoint age", "MiB", ("mysql.checkpoint_age",)),
    Wanted("mysql", "pages_flushed", "Pages flushed", "/s", ("mysql.pages_flushed",)),
    Wanted("mysql", "redo", "Redo written", "kB/s", ("mysql.redo",)),
    Wanted("mysql", "fsyncs", "fsyncs of InnoDB", "/s", ("mysql.fsyncs",)),
    Wanted("mysql", "threads_running", "Threads running", "", ("mysql.threads_running",)),
    Wanted("mysql", "history", "History list", "", ("mysql.history",)),
)
Sampled = tuple[int, int, Mapping[str, Series]]  # a run's position in the report, that of its side, series


def courses(
    sampled: Sequence[Sampled],
    disks: Sequence[Device],
    nics: Sequence[Device],
    sets: Mapping[str, tuple[str, float | None]],
) -> tuple[tuple[Course, ...], tuple[str, ...]]:
    """All charts with values, and the titles of those that are zero throughout.

    `sets` has the name and number of cores of the CPU sets `server` and `load`.
    """
    every = [_lines(chart, sampled) for chart in LINES]
    for side, title in STACKS.items():
        name, cores = sets.get(side, ("", None))
        lines = tuple(line for place, _, series in sampled for line in _parts(side, place, series))
        named = f"{title} ({name})" if name else title
        every.append(Course(f"cpu_{side}", "cpu", named, "cores", 1.0, lines, tuple(PARTS), cores))
    for kind, charts, devices in (("disk", DISK, disks), ("nic", NETWORK, nics)):
        alone = len(devices) == 1
        every += [_lines(chart, sampled, kind, device, alone=alone) for device in devices for chart in charts]
    every += [_lines(chart, sampled) for chart in MORE]
    known = [course for course in every if course.lines]
    zero = [not any(np.nan_to_num(line.values).any() for line in course.lines) for course in known]
    return (
        tuple(course for course, still in zip(known, zero, strict=True) if not still),
        tuple(course.title for course, still in zip(known, zero, strict=True) if still),
    )


def _lines(
    chart: Wanted,
    sampled: Sequence[Sampled],
    kind: str = "",
    device: Device | None = None,
    *,
    alone: bool = True,
) -> Course:
    """A line per run; of a disk or interface, whose name may differ from side to side."""
    lines = []
    for place, side, series in sampled:
        name = device.per_side[side] if device else kind
        needs = [need.format(**{kind: name}) for need in chart.needs] if device else chart.needs
        if (name or not device) and (line := _line(chart, needs, place, series)):
            lines.append(line)
    title = chart.title if alone or not device else f"{device.name}: {chart.title}"
    key = f"{kind}_{device.name}_{chart.key}" if device else chart.key
    factor = FACTORS.get(chart.shown, 1.0)
    return Course(key, chart.section, title, chart.shown, factor, tuple(lines), note=chart.note)


def _line(chart: Wanted, needs: Sequence[str], run: int, of_run: Mapping[str, Series]) -> Line | None:
    known = [of_run[need] for need in needs if need in of_run]
    if len(known) < len(needs) or len({len(series.values) for series in known}) > 1:
        return None
    if chart.share:
        part, whole = (series.values for series in known)
        values = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    else:
        values = np.sum([series.values for series in known], axis=0)
    return Line(run, known[0].seconds, values, half=known[0].half)


def _parts(side: str, run: int, of_run: Mapping[str, Series]) -> Iterator[Line]:
    for part, states in PARTS.items():
        summed = [of_run[name] for state in states if (name := f"cpu.{side}.{state}") in of_run]
        if summed:
            values = np.sum([series.values for series in summed], axis=0)
            yield Line(run, summed[0].seconds, values, part, summed[0].half)
