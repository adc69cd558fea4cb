"""What each tool prints, read: the value in base units, and the latency where the tool tells it.

Formats: fio(1) `--output-format=json`, iperf3(1) `--json`, sockperf's and sysbench's text, perf-bench(1)
`--format=simple`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadprint.reading import documents

MEBIBYTE = 2.0**20
SWITCHES_PER_PIPE = 2  # one operation of `perf bench sched pipe` goes there and back


@dataclass(frozen=True)
class Measured:
    """One repeat. `latency_s` by its name (`mean`, `p50`, `p99`); empty where the tool does not tell it."""

    value: float
    latency_s: tuple[tuple[str, float], ...] = ()


def read(measure: str, text: str) -> Measured:
    """Read what the tool of a measure printed. Raises ValueError saying what is not there."""
    try:
        found = READERS[measure](text)
    except (KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"the output is not the tool's: {error}") from None
    if not math.isfinite(found.value) or found.value <= 0:
        raise ValueError("nothing was done in this time")
    return found


def _fio(way: str, figure: str) -> Callable[[str], Measured]:
    def reader(text: str) -> Measured:
        # notes may stand before the object
        document = documents.loads(text[text.index("{") :])
        job = document["jobs"][0]
        if job.get("error"):
            raise ValueError(f"fio ended with error {job['error']}")
        return Measured(float(job[way][figure]), _quantiles(job[way]["clat_ns"]))

    return reader


def _synced(text: str) -> Measured:
    """Writes a second, each with its fdatasync; fio tells the latency of the latter."""
    found = _fio("write", "iops")(text)
    job = documents.loads(text[text.index("{") :])["jobs"][0]
    return Measured(found.value, _quantiles(job["sync"]["lat_ns"]))


def _quantiles(told: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    shares = told.get("percentile") or {}
    found = {"mean": told.get("mean"), "p50": shares.get("50.000000"), "p99": shares.get("99.000000")}
    return tuple((name, value / 1e9) for name, value in found.items() if value)


def _iperf(text: str) -> Measured:
    document = documents.loads(text)
    if document.get("error"):
        raise ValueError(f"iperf3: {document['error']}")
    return Measured(float(document["end"]["sum_received"]["bits_per_second"]) / 8)


def _sockperf(text: str) -> Measured:
    """Round trips within sockperf's valid duration; it calls half of one the latency."""
    duration, sent = _figure(text, r"\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=(\d+)")
    told = {"mean": r"avg-latency=([\d.]+)"} | {
        f"p{share}": rf"percentile {share}\.000 =\s*([\d.]+)" for share in (50, 99)
    }
    latency = ((name, 2e-6 * _figure(text, pattern)[0]) for name, pattern in told.items())
    return Measured(sent / duration, tuple(latency))


def _memory(text: str) -> Measured:
    return Measured(_figure(text, r"transferred \(([\d.]+) MiB/sec\)")[0] * MEBIBYTE)


def _primes(text: str) -> Measured:
    return Measured(_figure(text, r"events per second:\s*([\d.]+)")[0])


def _pipes(text: str) -> Measured:
    """Sum over CPUs; a line is `operations seconds`, one CPU's."""
    lines = [tuple(map(float, line.split())) for line in text.splitlines() if line.strip()]
    if any(len(line) != 2 or line[1] <= 0 for line in lines):
        raise ValueError("a CPU told no time")
    return Measured(sum(SWITCHES_PER_PIPE * operations / seconds for operations, seconds in lines))


def _figure(text: str, pattern: str) -> tuple[float, ...]:
    found = re.search(pattern, text)
    if found is None:
        # a tool that exits with 0 and says that it failed is judged by what it says
        raise ValueError(f"it told no figure, and last: {last_line(text) or 'nothing'}")
    return tuple(map(float, found.groups()))


def last_line(text: str) -> str:
    """The last line with something on it; empty where there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


READERS: dict[str, Callable[[str], Measured]] = {
    "read_bandwidth": _fio("read", "bw_bytes"),
    "write_bandwidth": _fio("write", "bw_bytes"),
    "read_iops": _fio("read", "iops"),
    "write_iops": _fio("write", "iops"),
    "flushes": _synced,
    "flushes_all": _synced,
    "receive_bandwidth": _iperf,
    "send_bandwidth": _iperf,
    "round_trips": _sockperf,
    "memory_read": _memory,
    "memory_write": _memory,
    "memory_read_all": _memory,
    "memory_write_all": _memory,
    "switches": _pipes,
    "cpu_events": _primes,
    "cpu_events_all": _primes,
}
