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
WRITTEN = ("data_write", "redo", "binlog")
# not in the sum: the rows that they are parts of, the last of which they follow, and their labels
PARTS = {
    "disk_read_queue": (("data_read",), "all disk reads, queue"),
    "disk_read_device": (("data_read",), "all disk reads, device"),
    "disk_write_queue": (WRITTEN, "all disk writes, queue"),
    "disk_write_device": (WRITTEN, "all disk writes, device"),
    "disk_flush": (WRITTEN, "all disk flushes"),
    "round_trip": (("client",), "all TCP round trips"),
}
ALL_REQUESTS = (
    "all requests to the disks with the server's files, by eBPF: also those of background threads and other "
    "programs, so it can be more than its row"
)
WRITES = f"below data write, redo log and binary log together; {ALL_REQUESTS}"
NOTES = {
    LATENCY: "of an operation, divided among its statements or commits; the rows below add up to it",
    "mutex": "waits on futexes except row locks: latches, group commit, the log writer, thread barriers",
    "row_lock": "by the server's Innodb_row_lock_time, at most the time on futexes",
    "client": "the client's latency less the time in the server: network, kernel and client",
    UNEXPLAINED: "connections × time less all recorded states of the connection threads",
    "disk_read_queue": ALL_REQUESTS,
    "disk_read_device": ALL_REQUESTS,
    "disk_write_queue": WRITES,
    "disk_write_device": WRITES,
    "disk_flush": WRITES,
    "round_trip": "statements × the mean smoothed RTT of the server's connections; the client's kernel may "
    "acknowledge a result only with the next statement",
}


def key(name: str, work: Denominator) -> str:
    """Key of a row."""
    return f"time_{name}_per_{work.per}"


def ledger_metrics(work: Denominator) -> tuple[Metric, ...]:
    """Rows of one denominator; the first is the sum of the others that are not parts."""
    rows = []
    for name, label in ROWS.items():
        rows.append(_row(work, name, label))
        rows += [
            replace(_row(work, part, of_part), part=True)
            for part, (whole, of_part) in PARTS.items()
            if whole[-1] == name
        ]
    return tuple(rows)


def _row(work: Denominator, name: str, label: str) -> Metric:
    row = Metric(
        key(name, work),
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
