"""Declares the rows of the time ledger: the parts of the latency of an operation, statement or commit."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from loadprint.catalogue.files import Work
from loadprint.catalogue.formula import Formula, Name
from loadprint.catalogue.metric import Metric

CLOSURE = 0.05  # largest share of the latency that may be unexplained

LATENCY = "latency"
UNEXPLAINED = "unexplained"  # between the ends
CLIENT_UNEXPLAINED = "client_unexplained"
WAITING = "waiting"  # the sum of the rows BETWEEN
NETWORK = "network"
OVERLAP = "overlap"
NOT_RECORDED = "not_recorded"
AT_CLIENT = {
    "backlog": "backlog, from due to start",
    "client_cpu": "client, on CPU",
    "client_queue": "client, run queue",
    "client_other": "client, other",
    CLIENT_UNEXPLAINED: "unexplained, at the client",
}
BETWEEN = {
    "user": "on CPU, user",
    "system": "on CPU, kernel",
    "run_queue": "run queue",
    "throttled": "throttled (quota)",
    "stolen": "stolen, interrupts",
    "data_read": "data read",
    "data_write": "data write",
    "redo": "redo log, write and flush",
    "binlog": "binary log, write and flush",
    "memory": "memory (faults, reclaim)",
    "lock": "lock, mutex or condition",
    "sending": "sending",
    "sleep": "sleep",
    "stopped": "stopped",
    "other": "other, in the server",
    OVERLAP: "less overlap with the client",
    NETWORK: "network",
    UNEXPLAINED: "unexplained, between the ends",
}
ROWS = {
    LATENCY: "mean latency, at the client",
    **AT_CLIENT,
    WAITING: "waiting for the server",
    **BETWEEN,
    NOT_RECORDED: "thread time not recorded",
}
NOT_SUMMED = {WAITING, NOT_RECORDED}
WRITTEN = ("data_write", "redo", "binlog")
# not in the sum: the rows that they are parts of, the last of which they follow, and their labels
PARTS = {
    "disk_read_queue": (("data_read",), "all disk reads, queue"),
    "disk_read_device": (("data_read",), "all disk reads, device"),
    "disk_write_queue": (WRITTEN, "all disk writes, queue"),
    "disk_write_device": (WRITTEN, "all disk writes, device"),
    "disk_flush": (WRITTEN, "all disk flushes"),
    "row_lock": (("lock",), "all row lock waits"),
    "round_trip": ((NETWORK,), "all TCP round trips"),
}
ALL_REQUESTS = (
    "all requests to the disks with the server's files, by eBPF: also those of background threads and other "
    "programs, so it can be more than its row"
)
WRITES = f"below data write, redo log and binary log together; {ALL_REQUESTS}"
NOTES = {
    LATENCY: "of an operation, divided among its statements or commits; the rows below add up to it, without "
    "the wait for the server, whose parts follow it",
    "backlog": "of an open loop, by the generator",
    "client_cpu": "the load's threads, by eBPF; also the little that they do between operations",
    "client_queue": "the load's threads are runnable and have no CPU, not after a pause",
    CLIENT_UNEXPLAINED: "the generator's latency less its backlog and the states of its threads; negative "
    "in an open loop of short operations, by the CPU time between them",
    WAITING: "the load's threads are blocked until data of the server arrive; the rows below add up to it",
    OVERLAP: "subtracted: the server's threads work, but the client does not wait: it still sends, or has "
    "the answer; by sampled exchanges",
    NETWORK: "the client waits, and the request has not arrived or the answer has been sent; by sampled "
    "exchanges",
    UNEXPLAINED: "the wait of the load's threads less the states of the server's threads and the network",
    NOT_RECORDED: "connections × time less all recorded states of the server's connection threads; not in "
    "the sum",
    "stolen": "taken by the hypervisor, and by interrupts if the kernel is built with "
    "CONFIG_IRQ_TIME_ACCOUNTING; else interrupts are in the rows on CPU",
    "lock": "waits on futexes, caller unknown: row locks and other locks, latches, group commit, the log "
    "writer, SLEEP(); also on semaphores and locks of files",
    "row_lock": "by Innodb_row_lock_time, which counts all sessions and events of the server until they run "
    "again, so it can be more than its row",
    "disk_read_queue": ALL_REQUESTS,
    "disk_read_device": ALL_REQUESTS,
    "disk_write_queue": WRITES,
    "disk_write_device": WRITES,
    "disk_flush": WRITES,
    "round_trip": "statements × the mean smoothed RTT of the server's connections; the client's kernel may "
    "acknowledge a result only with the next statement",
}


def key(name: str, work: Work) -> str:
    """Key of a row."""
    return f"time_{name}_per_{work.per}"


def name_of(row: str) -> str:
    """The name in ROWS of the key of a row; empty for rows of other ledgers."""
    return row.removeprefix("time_").partition("_per_")[0] if row.startswith("time_") else ""


def terms(recorded: AbstractSet[str]) -> frozenset[str]:
    """Names of the rows that add up to the latency, of the names that are recorded.

    The wait for the server is one of them where not all of its parts are recorded, else its parts are.
    """
    divided = UNEXPLAINED in recorded or WAITING not in recorded
    left_out = NOT_SUMMED if divided else {NOT_RECORDED, *BETWEEN}
    return frozenset(recorded & ROWS.keys()) - left_out - {LATENCY}


def ledger_metrics(work: Work) -> tuple[Metric, ...]:
    """Rows of one denominator; the first is the sum of the others but NOT_SUMMED and parts."""
    rows = []
    for name, label in ROWS.items():
        rows.append(_row(work, name, label))
        rows += [
            replace(_row(work, part, of_part), part=True)
            for part, (whole, of_part) in PARTS.items()
            if whole[-1] == name
        ]
    return tuple(rows)


def _row(work: Work, name: str, label: str) -> Metric:
    row = Metric(
        key(name, work),
        label,
        "µs",
        Formula(Name(f"ledger.{name}")).per(work.formula),
        better="neither" if name in {UNEXPLAINED, CLIENT_UNEXPLAINED, NOT_RECORDED, OVERLAP} else "lower",
        per_operation=work.per == "operation",
        computed=f"threads in this state / {work.quantity}",
    )
    return replace(row, footnote=NOTES.get(name, ""))
