"""Maps the key of a series to its label and unit in plots."""

from __future__ import annotations

import re
from functools import cache

RULES: tuple[tuple[str, str, str], ...] = (
    (r"load\.events", "operations", "1/s"),
    (r"load\.queries", "client statements", "1/s"),
    (r"load\.latency_p95", "latency p95 (of the slowest type)", "s"),
    (r"load\.backlog", "transactions due, not started", "1"),
    (r"load\.concurrency", "transactions in progress", "1"),
    (r"load\.(.+)", "{0}", "1/s"),
    (r"cpu\.(\w+)\.(\w+)", "CPU {1}, {0}'s set", "cores"),
    (r"host\.ctxt", "context switches, whole host", "1/s"),
    (r"host\.intr", "interrupts, whole host", "1/s"),
    (r"host\.processes", "forks, whole host", "1/s"),
    (r"host\.(\w+)", "{0}, whole host", "1/s"),
    (r"(interrupts|softirqs)\.(\w+)", "{0}, {1}'s CPUs", "1/s"),
    (r"disk\.(.+)\.weighted_ms", "{0}: requests in flight", "1"),
    (r"disk\.(.+)\.io_ms", "{0}: share of time busy", "1"),
    (r"disk\.(.+)\.(read|write|discard)_sectors", "{0}: bytes, {1}", "B/s"),
    (r"disk\.(.+)\.(\w+)_ms", "{0}: time of {1} requests", "s/s"),
    (r"disk\.(.+)\.(\w+)", "{0}: {1}", "1/s"),
    (r"nic\.(.+)\.(rx|tx)_bytes", "{0}: bytes, {1}", "B/s"),
    (r"nic\.(.+)\.(rx|tx)_(\w+)", "{0}: {2}, {1}", "1/s"),
    (r"tcp\.(\w+)", "TCP {0}", "1/s"),
    (r"pressure\.(\w+)_(some|full)", "pressure, {0} {1}", "1"),
    (r"process\.(\w+)\.cpu", "{0} process CPU", "cores"),
    (r"process\.(\w+)\.utime", "{0} process CPU, user", "cores"),
    (r"process\.(\w+)\.stime", "{0} process CPU, system", "cores"),
    (r"process\.(\w+)\.rss", "{0} process, resident memory", "B"),
    (r"process\.(\w+)\.(\w+)_bytes", "{0} process, bytes {1}", "B/s"),
    (r"process\.(\w+)\.(\w+)", "{0} process, {1}", "1/s"),
    (r"threads\.(\w+)\.on_cpu_ns", "{0} threads on a CPU", "cores"),
    (r"threads\.(\w+)\.run_delay_ns", "{0} threads waiting for a CPU", "s/s"),
    (r"threads\.(\w+)\.switches", "context switches, {0} threads", "1/s"),
    (r"threads\.(\w+)\.voluntary_ctxt_switches", "voluntary switches, {0} threads", "1/s"),
    (r"threads\.(\w+)\.nonvoluntary_ctxt_switches", "involuntary switches, {0} threads", "1/s"),
    (r"memory\.(\w+)", "memory: {0}", "B"),
    (r"mysql\.checkpoint_age", "redo since the checkpoint", "B"),
    (r"mysql\.redo_capacity", "redo capacity", "B"),
    (r"mysql\.redo", "redo written", "B/s"),
    (r"mysql\.pages_flushed", "pages flushed", "1/s"),
    (r"mysql\.(dirty_pages|data_pages|history|threads_running)", "{0}", "1"),
    (r"mysql\.(\w+)_ms", "{0}, time", "s/s"),
    (r"mysql\.(\w+)", "{0}", "1/s"),
    (r"sched\.(\w+)\.run queue\.sum", "{0} threads waiting for a CPU (eBPF)", "s/s"),
    (r"sched\.(\w+)\.(.+)\.sum", "{0} threads off CPU: {1}", "s/s"),
    (r"sched\.(\w+)\.(.+)\.count", "{0} threads, waits: {1}", "1/s"),
    (r"block\.(.+)\.(\w+)\.(\w+)\.sum", "{0}: time of {1}, {2}", "s/s"),
    (r"block\.(.+)\.(\w+)\.(\w+)\.count", "{0}: {1}, {2}", "1/s"),
    (r"(irq|syscall_latency|statements)\.(.+)\.sum", "{0} {1}: time", "s/s"),
    (r"(irq|syscall_latency|statements)\.(.+)\.count", "{0} {1}", "1/s"),
    (r"(switches|syscalls)\.(.+)\.(\w+)", "{0}, {1}: {2}", "1/s"),
)


def label_of(key: str) -> tuple[str, str]:
    """Label and unit of a key; the key itself, without a unit, if no rule matches."""
    for pattern, label, unit in _rules(key.partition(".")[0]):
        if match := pattern.fullmatch(key):
            return label.format(*match.groups()).replace("_", " "), unit
    return key, ""


@cache
def _rules(kind: str) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """The compiled rules for keys that start with a word: few comparisons need them all."""
    return tuple(
        (re.compile(pattern), label, unit)
        for pattern, label, unit in RULES
        if kind in pattern.partition(r"\.")[0].strip("()").split("|")
    )
