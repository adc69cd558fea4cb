"""Lists the measurements of `ansible/ceilings.yml`, and parses the output of their tools.

Formats: fio(1) `--output-format=json`, iperf3(1) `--json`, sockperf's and sysbench's text,
perf-bench(1) `--format=simple`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from loadprint.reading import strict_json

BYTES, COUNT = "B/s", "1/s"
MEBIBYTE = 2.0**20
SWITCHES_PER_PIPE = 2  # one operation of `perf bench sched pipe` goes there and back


class MeasuredRepeat(NamedTuple):
    """One repeat. `latency_s` contains `mean`, `p50` and `p99`, as far as the tool prints them."""

    value: float
    latency_s: tuple[tuple[str, float], ...] = ()


def read(measure: str, text: str) -> MeasuredRepeat:
    """Parse the output of a measure's tool: the value in base units, and the latency if it prints one.

    Raises ValueError with what is missing.
    """
    try:
        measured = MEASURES[measure].read(text)
    except (KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"not an output of the tool: {error}") from None
    if not math.isfinite(measured.value) or measured.value <= 0:
        raise ValueError("the tool completed no operation")
    latency = dict(measured.latency_s)
    if min(latency.values(), default=0) < 0 or latency.get("p50", 0) > latency.get("p99", math.inf):
        raise ValueError("its latencies contradict each other: one is negative, or p50 exceeds p99")
    return measured


def _fio(way: str, figure: str) -> Callable[[str], MeasuredRepeat]:
    def reader(text: str) -> MeasuredRepeat:
        # fio may print notes before the object
        document = strict_json.loads(text[text.index("{") :])
        job = document["jobs"][0]
        if job.get("error"):
            raise ValueError(f"fio ended with error {job['error']}")
        return MeasuredRepeat(float(job[way][figure]), _quantiles(job[way]["clat_ns"]))

    return reader


def _synced(text: str) -> MeasuredRepeat:
    """Parse writes per second, each with its fdatasync; the latency is that of fdatasync."""
    writes = _fio("write", "iops")(text)
    job = strict_json.loads(text[text.index("{") :])["jobs"][0]
    return MeasuredRepeat(writes.value, _quantiles(job["sync"]["lat_ns"]))


def _quantiles(latency: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    shares = latency.get("percentile") or {}
    named = {"mean": latency.get("mean"), "p50": shares.get("50.000000"), "p99": shares.get("99.000000")}
    return tuple((name, value / 1e9) for name, value in named.items() if value)


def _iperf(text: str) -> MeasuredRepeat:
    document = strict_json.loads(text)
    if document.get("error"):
        raise ValueError(f"iperf3: {document['error']}")
    return MeasuredRepeat(float(document["end"]["sum_received"]["bits_per_second"]) / 8)


def _sockperf(text: str) -> MeasuredRepeat:
    """Parse round trips in sockperf's valid duration; its latency is half a round trip."""
    duration, sent = _figure(text, r"\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=(\d+)")
    patterns = {"mean": r"avg-latency=([\d.]+)"} | {
        f"p{share}": rf"percentile {share}\.000 =\s*([\d.]+)" for share in (50, 99)
    }
    latency = ((name, 2e-6 * _figure(text, pattern)[0]) for name, pattern in patterns.items())
    return MeasuredRepeat(sent / duration, tuple(latency))


def _memory(text: str) -> MeasuredRepeat:
    return MeasuredRepeat(_figure(text, r"transferred \(([\d.]+) MiB/sec\)")[0] * MEBIBYTE)


def _primes(text: str) -> MeasuredRepeat:
    return MeasuredRepeat(_figure(text, r"events per second:\s*([\d.]+)")[0])


def _pipes(text: str) -> MeasuredRepeat:
    """Add up the CPUs; each line is `operations seconds` of one CPU."""
    lines = [tuple(map(float, line.split())) for line in text.splitlines() if line.strip()]
    if any(len(line) != 2 or line[1] <= 0 for line in lines):
        raise ValueError("the time of a CPU is missing")
    return MeasuredRepeat(sum(SWITCHES_PER_PIPE * operations / seconds for operations, seconds in lines))


def _figure(text: str, pattern: str) -> tuple[float, ...]:
    figures = re.search(pattern, text)
    if figures is None:
        # some tools exit with 0 after a failure, and print a message
        raise ValueError(f"no figure in the output; last line: {last_line(text) or 'none'}")
    return tuple(map(float, figures.groups()))


def last_line(text: str) -> str:
    """Return the last line that is not blank, or an empty text."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


class Measure(NamedTuple):
    """One ceiling. `quantity` is a name of metrics/quantities.py, except where `row` is False.

    `{nic}` is replaced by the measured interface. `read` finds its value in the output of the tool.
    """

    id: str
    label: str
    quantity: str
    read: Callable[[str], MeasuredRepeat]
    row: bool = True

    @property
    def unit(self) -> str:
        """The base unit of the value."""
        return BYTES if self.quantity.endswith(("_bytes", "_sectors")) else COUNT


MEASURES = {
    measure.id: measure
    for measure in (
        Measure(
            "read_bandwidth", "sequential read, 1 MiB", "disk.data.read_sectors", _fio("read", "bw_bytes")
        ),
        Measure(
            "write_bandwidth", "sequential write, 1 MiB", "disk.data.write_sectors", _fio("write", "bw_bytes")
        ),
        Measure("read_iops", "random reads, 16 KiB", "disk.data.reads", _fio("read", "iops")),
        Measure("write_iops", "random writes, 16 KiB", "disk.data.writes", _fio("write", "iops")),
        Measure("flushes", "write + fdatasync, one thread", "disk.data.serial_syncs", _synced, row=False),
        Measure("flushes_all", "write + fdatasync, 8 threads", "mysql.fsyncs", _synced),
        Measure("receive_bandwidth", "network, load to server", "nic.{nic}.rx_bytes", _iperf),
        Measure("send_bandwidth", "network, server to load", "nic.{nic}.tx_bytes", _iperf),
        Measure("round_trips", "TCP round trips, one by one", "network.round_trips", _sockperf, row=False),
        Measure("memory_read", "memory read, one thread", "memory.thread.read_bytes", _memory, row=False),
        Measure(
            "memory_write", "memory written, one thread", "memory.thread.write_bytes", _memory, row=False
        ),
        Measure("memory_read_all", "memory read, all threads", "memory.read_bytes", _memory, row=False),
        Measure("memory_write_all", "memory written, all threads", "memory.write_bytes", _memory, row=False),
        Measure("switches", "context switches, all CPUs", "host.ctxt", _pipes),
        Measure("cpu_events", "prime searches, one thread", "cpu.thread.events", _primes, row=False),
        Measure("cpu_events_all", "prime searches, all threads", "cpu.events", _primes, row=False),
    )
}
