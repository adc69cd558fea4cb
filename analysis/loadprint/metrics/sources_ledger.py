"""Reads the parts of an operation's latency: the states of the load's and the server's connection threads.

The probe `ebpf_states` records the time in each state. A rate of it is a mean number of threads: divided by
operations per second it is the time in the state per operation (Little's law).
"""

from __future__ import annotations

import math

from loadprint.metrics import thread_states
from loadprint.metrics.closures import PAUSE_QUEUE, closures
from loadprint.metrics.ledger_accounting import NOT_ACCOUNTED, accounts_stolen
from loadprint.metrics.ledger_parts import parts
from loadprint.metrics.sources import SERVER, Source

CLIENT = "client"
NO_CONNECTION = "no connection"
RECORDER = 1.0  # its connection to the server
LOGS = {"redo log": "redo", "binary log": "binlog"}
# states with a row; all others are `other`
STATES = {
    thread_states.ON_CPU: "system",
    "run queue": "run_queue",
    PAUSE_QUEUE: "run_queue",
    "throttled": "throttled",
    "stolen": "stolen",
    "lock": "lock",
    "sending": "sending",
    "sleep": "sleep",
    "stopped": "stopped",
    "memory": "memory",
    "page fault": "memory",
}
IN_SERVER = (
    "user",
    "system",
    *("run_queue", "throttled", "stolen"),
    *("data_read", "data_write", "redo", "binlog"),
    *("memory", "lock", "sending", "sleep", "stopped", "other"),
)
NO_THREADS = (
    "no thread of the server waited for one client: the server has a thread pool, or had no connections"
)
POOL = "the server has a thread pool (thread_handling = {}): its threads serve no single connection"
PER_CONNECTION = {"one-thread-per-connection", "no-threads"}
NO_COUNT = "neither the server nor the generator reports the number of connections"


def ledger(source: Source) -> None:
    """Threads in each state as `ledger.<state>`, by IN_SERVER; their sum as `ledger.server`.

    `ledger.not_recorded` is `ledger.connections` less all their states. closures.py adds the client's
    states, the network, and what is unexplained at both ends; ledger_parts.py adds parts of the rows.
    """
    server = _server(source)
    closures(source)
    if server is not None:
        parts(source)


def _server(source: Source) -> float | None:
    """The states of the server's connection threads; None with a reason."""
    out = source.out
    handling = ((source.run.server or {}).get("variables") or {}).get("thread_handling")
    if handling and handling not in PER_CONNECTION:
        # a thread that receives a login waits for it alone, and serves any connection later
        out.mark_missing("ledger.", POOL.format(handling))
        return None
    if SERVER in out.missing:
        out.mark_missing("ledger.", out.missing[SERVER])
        return None
    states = thread_states.rates(source, "server")
    if not states or set(states) <= {NO_CONNECTION}:
        out.mark_missing("ledger.", NO_THREADS)
        return None
    rates = dict.fromkeys(IN_SERVER, 0.0)
    for state, threads in states.items():
        if state not in {NO_CONNECTION, CLIENT, thread_states.USER}:
            rates[_word(state)] += threads
    user = states.get(thread_states.USER, 0.0)
    rates["system"], rates["user"] = rates["system"] - user, user
    for name, threads in rates.items():
        out.put(f"ledger.{name}", threads)
    if not rates["stolen"] and not accounts_stolen(source):
        del out.values["ledger.stolen"]
        out.mark_missing("ledger.stolen", NOT_ACCOUNTED)
    server = math.fsum(rates.values())
    out.put("ledger.server", server)
    connections = _connections(source)
    if connections is None:
        out.mark_missing("ledger.not_recorded", NO_COUNT)
    else:
        out.put("ledger.connections", connections)
        out.put("ledger.not_recorded", connections - server - states.get(CLIENT, 0.0))
    return server


def _word(state: str) -> str:
    """The row of a state; all time on the CPU is `system` until the user time is taken from it."""
    how, _, kind = state.partition(" ")
    if state not in STATES and how in {"read", "write", "flush"} and kind != "other file":
        return LOGS.get(kind, "data_read" if how == "read" else "data_write")
    return STATES.get(state, "other")


def _connections(source: Source) -> float | None:
    """Connections of the load: the generator's threads, else those that the server counts.

    The server also counts idle connections, whose states do not end in the window, and the recorder's.
    """
    threads = (source.run.result or {}).get("threads")
    if isinstance(threads, int | float):
        return float(threads)
    counted = source.out.get("mysql.threads_connected")
    return None if counted is None else counted.rate - RECORDER
