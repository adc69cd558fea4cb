"""Which reader makes series of which probe's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loadprint.series import host as series_host
from loadprint.series import server as series_server
from loadprint.series.table import Found, Table

Reader = tuple[str, tuple[str, ...], Callable[[Table], Iterator[Found]], bool]


def probes_of(side: str) -> list[Reader]:
    """Probe, the first words of its keys, its reader, and whether it tells CPU sets apart."""
    listed: list[Reader] = [
        ("cpu", (f"cpu.{side}",), series_host.cpu, True),
        ("cpu", ("host",), series_host.host, False),
        ("interrupts", ("interrupts",), series_host.interrupts, True),
        ("softirqs", ("softirqs",), series_host.interrupts, True),
        ("disk", ("disk",), series_host.disk, False),
        ("nic", ("nic",), series_host.nic, False),
        ("tcp", ("tcp",), series_host.tcp, False),
        ("pressure", ("pressure",), series_host.pressure, False),
        ("process", ("process",), series_server.process, False),
        ("threads", ("threads",), series_server.threads, False),
        ("memory", ("memory",), series_host.memory, False),
        ("mysql", ("mysql",), series_server.mysql, False),
    ]
    listed += [
        (probe, (probe.removeprefix("ebpf_"),), series_server.histogram, False)
        for probe in series_server.HISTOGRAMS
    ]
    listed += [
        (probe, (probe.removeprefix("ebpf_"),), series_server.counts, False) for probe in series_server.COUNTS
    ]
    return listed
