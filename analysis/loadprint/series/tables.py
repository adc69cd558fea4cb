"""Which reader makes series of which probe's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loadprint.series import host as series_host
from loadprint.series import server as series_server
from loadprint.series.table import Found, Table


@dataclass(frozen=True)
class Reader:
    """Makes series of one probe's table, whose keys begin with `prefix`.

    `of` says what it tells apart: `cpus` by CPU set, `role` by role (the second word of its keys), or neither
    (`host`): such a table is the server's alone.
    """

    probe: str
    prefix: str
    read: Callable[[Table], Iterator[Found]]
    of: str


def readers(side: str) -> list[Reader]:
    """All readers; `side` is whose CPU set is read."""
    return [
        Reader("cpu", f"cpu.{side}", series_host.cpu, "cpus"),
        Reader("cpu", "host", series_host.host, "host"),
        Reader("interrupts", f"interrupts.{side}", series_host.interrupts, "cpus"),
        Reader("softirqs", f"softirqs.{side}", series_host.interrupts, "cpus"),
        Reader("disk", "disk", series_host.disk, "host"),
        Reader("nic", "nic", series_host.nic, "host"),
        Reader("tcp", "tcp", series_host.tcp, "host"),
        Reader("pressure", "pressure", series_host.pressure, "host"),
        Reader("process", "process", series_server.process, "role"),
        Reader("threads", "threads", series_server.threads, "role"),
        Reader("memory", "memory", series_host.memory, "host"),
        Reader("mysql", "mysql", series_server.mysql, "host"),
        *(_ebpf(probe, series_server.histogram, keys) for probe, keys in series_server.HISTOGRAMS.items()),
        *(_ebpf(probe, series_server.counts, keys) for probe, (keys, _) in series_server.COUNTS.items()),
    ]


def _ebpf(probe: str, read: Callable[[Table], Iterator[Found]], keys: tuple[str, ...]) -> Reader:
    return Reader(probe, probe.removeprefix("ebpf_"), read, "role" if keys[0] == "role" else "host")
