"""Reads the states of the server's connection threads: the parts of an operation's latency.

The probe `ebpf_states` records the time in each state. A rate of it is a mean number of threads: divided by
operations per second it is the time in the state per operation (Little's law).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import ibis

from loadprint.metrics.ledger_parts import parts
from loadprint.metrics.sources import SERVER, Source
from loadprint.metrics.sources_ebpf import ends, increases, seconds_between
from loadprint.reading.columns import NANOSECOND
from loadprint.reading.queries import number

PROBE = "ebpf_states"
KEYS = ("role", "threads", "state")
ON_CPU = "on CPU"
CLIENT = "client"
NO_CONNECTION = "no connection"
RECORDER = 1.0  # its connection to the server
LOGS = {"redo log": "redo", "binary log": "binlog"}
# states with a row; all others are `other`
STATES = {
    "run queue": "run_queue",
    "throttled": "throttled",
    "stolen": "stolen",
    "lock": "lock",
    "sending": "sending",
    "sleep": "sleep",
}
IN_SERVER = (
    "user",
    "system",
    *("run_queue", "throttled", "stolen"),
    *("data_read", "data_write", "redo", "binlog"),
    *("lock", "sending", "sleep", "other"),
)
NO_THREADS = (
    "no thread of the server waited for one client: the server has a thread pool, or had no connections"
)
POOL = "the server has a thread pool (thread_handling = {}): its threads serve no single connection"
PER_CONNECTION = {"one-thread-per-connection", "no-threads"}
NO_COUNT = "neither the server nor the generator reports the number of connections"
NO_LATENCY = "the generator did not report the mean latency of its transactions"


def ledger(source: Source) -> None:
    """Threads in each state as `ledger.<state>`, by IN_SERVER; their sum as `ledger.server`.

    `ledger.latency` is the mean number of operations in progress as the client sees it,
    `ledger.unexplained` the connections less all states, and `ledger.client` the rest of the latency: the
    network and the client. ledger_parts.py adds parts of them.
    """
    out = source.out
    handling = ((source.run.server or {}).get("variables") or {}).get("thread_handling")
    if handling and handling not in PER_CONNECTION:
        # a thread that receives a login waits for it alone, and serves any connection later
        out.mark_missing("ledger.", POOL.format(handling))
        return
    if SERVER in out.missing:
        out.mark_missing("ledger.", out.missing[SERVER])
        return
    rates = _rates(source)
    if rates is None:
        return
    for name in IN_SERVER:
        out.put(f"ledger.{name}", rates.get(name, 0.0))
    server = math.fsum(rates.get(name, 0.0) for name in IN_SERVER)
    out.put("ledger.server", server)
    _locks(source, rates.get("lock", 0.0))
    parts(source)
    connections, in_progress = _connections(source), _in_progress(source.run.result or {})
    if in_progress is None:
        reason = "load/result.json is missing" if source.run.result is None else NO_LATENCY
        out.mark_missing("ledger.latency", reason)
        out.mark_missing("ledger.client", reason)
    else:
        out.put("ledger.latency", in_progress)
    if connections is None:
        out.mark_missing("ledger.unexplained", NO_COUNT)
        out.mark_missing("ledger.client", f"it cannot be separated from what is unexplained: {NO_COUNT}")
        return
    unexplained = connections - server - rates.get(CLIENT, 0.0)
    out.put("ledger.unexplained", unexplained)
    if in_progress is not None:
        out.put("ledger.client", in_progress - server - unexplained)


def _rates(source: Source) -> dict[str, float] | None:
    """Mean number of connection threads by word of IN_SERVER, and CLIENT; None without them."""
    figures = {name: number(ibis._[name]) for name in ("time_ns", "user_ns", "system_ns")}
    rows = ends(source, PROBE, KEYS, figures)
    if rows is None:
        source.out.mark_missing("ledger.", source.window.why_missing(PROBE))
        return None
    seconds = seconds_between(source, PROBE)
    rates: dict[str, float] = {}
    for (role, threads, state), risen in increases(rows, KEYS, tuple(figures)):
        if (role, threads) != ("server", "connection") or state == NO_CONNECTION:
            continue
        if risen["time_ns"] < 0:
            source.out.mark_missing("ledger.", f"{PROBE} was reset in the window")
            return None
        for word, time in _split(state, risen).items():
            rates[word] = rates.get(word, 0.0) + time * NANOSECOND / seconds
    if not any(rates.values()):
        source.out.mark_missing("ledger.", NO_THREADS)
        return None
    return rates


def _split(state: str, risen: Mapping[str, float]) -> dict[str, float]:
    """Time by word of a row. The kernel's user and system times are samples: they only divide the time."""
    time = risen["time_ns"]
    if state == ON_CPU:
        ticks = risen["user_ns"] + risen["system_ns"]
        user = time * risen["user_ns"] / ticks if ticks > 0 else time
        return {"user": user, "system": time - user}
    if state == CLIENT:
        return {CLIENT: time}
    how, _, kind = state.partition(" ")
    if state not in STATES and how in {"read", "write", "flush"} and kind != "other file":
        return {LOGS.get(kind, "data_read" if how == "read" else "data_write"): time}
    return {STATES.get(state, "other"): time}


def _locks(source: Source, futex: float) -> None:
    """Divide the waits on futexes by the server's own time of row lock waits."""
    rows = source.out.get("mysql.row_lock_ms")
    if rows is None:
        reason = f"{source.out.why('mysql.row_lock_ms')}; it is in the row of mutexes and conditions"
        source.out.mark_missing("ledger.row_lock", reason)
        source.out.put("ledger.mutex", futex)
        return
    row_lock = min(rows.rate, futex)
    source.out.put("ledger.row_lock", row_lock)
    source.out.put("ledger.mutex", futex - row_lock)


def _connections(source: Source) -> float | None:
    """Connections of the load: the generator's threads, else those that the server counts.

    The server also counts idle connections, whose states do not end in the window, and the recorder's.
    """
    threads = (source.run.result or {}).get("threads")
    if isinstance(threads, int | float):
        return float(threads)
    counted = source.out.get("mysql.threads_connected.mean")
    return None if counted is None else counted.rate - RECORDER


def _in_progress(result: Mapping[str, Any]) -> float | None:
    """Mean number of operations in progress: their latencies ÷ the seconds."""
    kinds: Iterable[Mapping[str, Any]] = (result.get("transactions") or {}).values()
    seconds, total = result.get("seconds"), 0.0
    for kind in kinds:
        count, mean = kind.get("count"), (kind.get("latency_ms") or {}).get("mean")
        if not isinstance(count, int | float) or (count and not isinstance(mean, int | float)):
            return None
        total += count * (mean or 0.0) / 1e3
    return total / seconds if total and isinstance(seconds, int | float) and seconds > 0 else None
