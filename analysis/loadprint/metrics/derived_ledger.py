"""Declares the rows of the time ledger: the parts of the latency of an operation, statement or commit."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.costs import Denominator
from loadprint.metrics.derived import Metric

CLOSURE = 0.05  # largest share of the latency that may be unexplained

LATENCY = "latency"
UNEXPLAINED = "unexplained"
ROWS = {
    LATENCY: "mean latency, at the client",
    "user": "on CPU, user",
    "system": "on CPU, kernel",
    "run_queue": "run queue",
    "throttled": "throttled (quota)",
    "stolen": "stolen, interrupts",
    "data_read": "data read",
    "data_write": "data write",
    "redo": "redo log, write and flush",
    "binlog": "binary log, write and flush",
    "row_lock": "row lock",
    "mutex": "mutex or condition",
    "sending": "sending",
    "sleep": "sleep",
    "other": "other, in the server",
    "client": "network and client",
    UNEXPLAINED: "unexplained",
}
NOTES = {
    LATENCY: "the sum of the rows below it, in the mean; several statements of one operation add up",
    "mutex": "waits on futexes except row locks: latches, group commit, the log writer, thread barriers",
    "row_lock": "by the server's Innodb_row_lock_time, at most the time on futexes",
    "client": "the client's latency less the time in the server: network, kernel and client",
    UNEXPLAINED: "connections × time less all recorded states of the connection threads",
}


def ledger_metrics(work: Denominator) -> tuple[Metric, ...]:
    """Rows of one denominator; the first is the sum of the others."""
    return tuple(_row(work, name, label) for name, label in ROWS.items())


def _row(work: Denominator, name: str, label: str) -> Metric:
    row = Metric(
        f"time_{name}_per_{work.per}",
        label,
        "s",
        "µs",
        (f"ledger.{name}", work.quantity),
        lambda threads, rate: threads / rate,
        f"threads in this state / {work.quantity}",
        better="neither" if name == UNEXPLAINED else "lower",
        per_operation=work.per == "operation",
    )
    return replace(row, footnote=NOTES.get(name, ""))
