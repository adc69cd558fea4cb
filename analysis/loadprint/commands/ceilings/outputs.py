"""Parses the output of each tool: the value in base units, and the latency if the tool prints it.

Formats: fio(1) `--output-format=json`, iperf3(1) `--json`, sockperf's and sysbench's text,
perf-bench(1) `--format=simple`.
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
    """One repeat. `latency_s` contains `mean`, `p50` and `p99`, as far as the tool prints them."""

    value: float
    latency_s: tuple[tuple[str, float], ...] = ()


def read(measure: str, text: str) -> Measured:
    """Parse the output of the tool of a measure. Raises ValueError with what is missing."""
    try:
        measured = READERS[measure](text)
    except (KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"not an output of the tool: {error}") from None
    if not math.isfinite(measured.value) or measured.value <= 0:
        raise ValueError("the tool completed no operation")
    return measured


def _fio(way: str, figure: str) -> Callable[[str], Measured]:
    def reader(text: str) -> Measured:
        # fio may print notes before the object
        document = documents.loads(text[text.index("{") :])
        job = document["jobs"][0]
        if job.get("error"):
            raise ValueError(f"fio ended with error {job['error']}")
        return Measured(float(job[way][figure]), _quantiles(job[way]["clat_ns"]))

    return reader


def _synced(text: str) -> Measured:
    """Parse writes per second, each with its fdatasync; the latency is that of fdatasync."""
    writes = _fio("write", "iops")(text)
    job = documents.loads(text[text.index("{") :])["jobs"][0]
    return Measured(writes.value, _quantiles(job["sync"]["lat_ns"]))


def _quantiles(latency: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    shares = latency.get("percentile") or {}
    named = {"mean": latency.get("mean"), "p50": shares.get("50.000000"), "p99": shares.get("99.000000")}
    return tuple((name, value / 1e9) for name, value in named.items() if value)


def _iperf(text: str) -> Measured:
    document = documents.loads(text)
    if document.get("error"):
        raise ValueError(f"iperf3: {document['error']}")
    return Measured(float(document["end"]["sum_received"]["bits_per_second"]) / 8)


def _sockperf(text: str) -> Measured:
    """Parse round trips in sockperf's valid duration; its latency is half a round trip."""
    duration, sent = _figure(text, r"\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=(\d+)")
    patterns = {"mean": r"avg-latency=([\d.]+)"} | {
        f"p{share}": rf"percentile {share}\.000 =\s*([\d.]+)" for share in (50, 99)
    }
    latency = ((name, 2e-6 * _figure(text, pattern)[0]) for name, pattern in patterns.items())
    return Measured(sent / duration, tuple(latency))


def _memory(text: str) -> Measured:
    return Measured(_figure(text, r"transferred \(([\d.]+) MiB/sec\)")[0] * MEBIBYTE)


def _primes(text: str) -> Measured:
    return Measured(_figure(text, r"events per second:\s*([\d.]+)")[0])


def _pipes(text: str) -> Measured:
    """Add up the CPUs; each line is `operations seconds` of one CPU."""
    lines = [tuple(map(float, line.split())) for line in text.splitlines() if line.strip()]
    if any(len(line) != 2 or line[1] <= 0 for line in lines):
        raise ValueError("the time of a CPU is missing")
    return Measured(sum(SWITCHES_PER_PIPE * operations / seconds for operations, seconds in lines))


def _figure(text: str, pattern: str) -> tuple[float, ...]:
    figures = re.search(pattern, text)
    if figures is None:
        # some tools exit with 0 after a failure, and print a message
        raise ValueError(f"no figure in the output; last line: {last_line(text) or 'none'}")
    return tuple(map(float, figures.groups()))


def last_line(text: str) -> str:
    """Return the last line that is not blank, or an empty text."""
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
