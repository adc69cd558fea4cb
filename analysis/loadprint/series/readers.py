"""Lists the reader of each probe's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loadprint.reading import columns
from loadprint.series import host_series, server_series
from loadprint.series.probe_table import SeriesData, Table


@dataclass(frozen=True)
class Reader:
    """Reads the series of one probe's table; their keys start with `prefix`.

    `of` is the entity that it separates: `cpus` (CPU set), `role` (second word of its keys) or `host`
    (neither, only of the server's host).
    """

    probe: str
    prefix: str
    read: Callable[[Table], Iterator[SeriesData]]
    of: str


def readers(side: str) -> list[Reader]:
    """All readers; `side` selects the CPU set."""
    return [
        Reader("cpu", f"cpu.{side}", host_series.cpu, "cpus"),
        Reader("cpu", "host", host_series.host, "host"),
        Reader("interrupts", f"interrupts.{side}", host_series.interrupts, "cpus"),
        Reader("softirqs", f"softirqs.{side}", host_series.interrupts, "cpus"),
        Reader("disk", "disk", host_series.disk, "host"),
        Reader("nic", "nic", host_series.nic, "host"),
        Reader("tcp", "tcp", host_series.tcp, "host"),
        Reader("pressure", "pressure", host_series.pressure, "host"),
        Reader("process", "process", server_series.process, "role"),
        Reader("threads", "threads", server_series.threads, "role"),
        Reader("memory", "memory", host_series.memory, "host"),
        Reader("mysql", "mysql", server_series.mysql, "host"),
        *(_ebpf(probe, server_series.histogram, keys) for probe, keys in columns.EBPF_HISTOGRAMS.items()),
        *(_ebpf(probe, server_series.counts, keys) for probe, (keys, _) in columns.EBPF_COUNTERS.items()),
    ]


def _ebpf(probe: str, read: Callable[[Table], Iterator[SeriesData]], keys: tuple[str, ...]) -> Reader:
    return Reader(probe, probe.removeprefix("ebpf_"), read, "role" if keys[0] == "role" else "host")
