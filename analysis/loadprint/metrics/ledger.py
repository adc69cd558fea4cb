"""The parts of an operation's latency: the states of the load's and the server's connection threads.

The probe `ebpf_states` records the time in each state. A rate of it is a mean number of threads: divided by
operations per second it is the time in the state per operation (Little's law). Two sums can fail, at the
client, and between the client and the server:

    client: latency = backlog + on CPU + run queue + other + waiting for the server + unexplained
    between the ends: waiting for the server = states of the server − overlap + network + unexplained

The generator measures latency and backlog, `ebpf_states` the states at both ends, and `ebpf_exchanges`
network and overlap, of sampled exchanges. Parts of rows are from other probes: requests to the disks, row
locks, TCP round trips. They are of the whole host, the whole server or all connections: a part can exceed its
row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from loadprint.catalogue.formula import figure
from loadprint.metrics.ebpf import ROUND_TRIPS, increases, readings
from loadprint.metrics.host import SERVER
from loadprint.metrics.rates import Source
from loadprint.reading.columns import NANOSECOND
from loadprint.reading.names import LOAD
from loadprint.reading.queries import doubles
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import LoadResult, TransactionType
from loadprint.reading.server_disks import namespace, server_disks
from loadprint.reading.window import measure_window

PROBE = "ebpf_states"
KEYS = ("role", "threads", "state")
ON_CPU = "on CPU"
PAUSE_QUEUE = "run queue after pause"
USER = "user"  # the part of ON_CPU in user mode
FIGURES = ("time_ns", "user_ns", "system_ns")
CLIENT = "client"
NO_CONNECTION = "no connection"
RECORDER = 1.0  # its connection to the server
LOGS = {"redo log": "redo", "binary log": "binlog"}
# states with a row; all others are `other`
STATES = {
    ON_CPU: "system",
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
NOT_ACCOUNTED = (
    "this kernel accounts neither interrupts (CONFIG_IRQ_TIME_ACCOUNTING) nor stolen time (no steal clock): "
    "they are in the rows on CPU"
)
TRIP = figure("mean", f"{ROUND_TRIPS}.buckets")
# operations and stages of ebpf_block
REQUESTS = {
    "disk_read_queue": ("read.queue",),
    "disk_read_device": ("read.device",),
    "disk_write_queue": ("write.queue", "write_fua.queue"),
    "disk_write_device": ("write.device", "write_fua.device"),
    "disk_flush": ("flush.queue", "flush.device"),
}
EXCHANGES = "ebpf_exchanges"
BOTH = "both"  # ends of the connections are on the recorder's host
FEWEST = 30  # exchanges, for a mean
# what a generator's threads do between two operations
PAUSES = {"lock", "sleep", "no connection", PAUSE_QUEUE}
NOT_IN_OPERATIONS = PAUSES | {USER}  # that is a part of another state
CLIENT_ROWS = {"on CPU": "client_cpu", "run queue": "client_queue", "client": "waiting"}
OF_CLIENT = ("client_cpu", "client_queue", "client_other", "waiting")
NO_LATENCY = "the generator did not report the mean latency of its transactions"
NO_RESULT = "load/result.json is missing"
NO_WAIT = "the generator does not report how long its operations waited for a connection"
NO_RECORDER = "no recorder ran on the load's host"
NO_LOAD_THREADS = (
    "no thread of the load waits for one connection: the client is an event loop or written in Go, or its "
    "processes are not watched"
)
OLD = "recorded by an older version, without the probe ebpf_exchanges"
FEW = (
    f"fewer than {FEWEST} exchanges were sampled in the window: {{}}; the load's connections pass another "
    "program, or are few"
)
REMOTE = "the load is on another host: the times of both ends are not of one clock"


def _rates(source: Source, role: str) -> dict[str, float] | None:
    """Mean number of a role's connection threads in each state; `user` is also a part of `on CPU`.

    The kernel's user and system times are samples: they only divide the time. Empty without such threads;
    None, with the reason, if the states were not recorded.
    """
    rows = readings(source, PROBE, KEYS, doubles(FIGURES))
    if rows is None:
        # the quantities that are missing without the states of a role
        names = "ledger." if role == "server" else f"ledger.{role}_threads"
        source.out.mark_missing(names, source.window.why_missing(PROBE))
        return None
    seconds, amounts = source.seconds(PROBE), dict[str, float]()
    for (of_role, threads, state), risen in increases(source, PROBE, rows, KEYS, FIGURES):
        if (of_role, threads) != (role, "connection"):
            continue
        amounts[state] = risen["time_ns"] * source.unit(f"{PROBE}.time_ns") / seconds
        if state == ON_CPU:
            ticks = risen["user_ns"] + risen["system_ns"]
            amounts[USER] = amounts[state] * (risen["user_ns"] / ticks if ticks > 0 else 1.0)
    return amounts if any(amounts.values()) else {}


def ledger(source: Source) -> None:
    """Threads in each state as `ledger.<state>`, by IN_SERVER; their sum as `ledger.server`.

    `ledger.not_recorded` is `ledger.connections` less all their states. `_closures` adds the client's
    states, the network, and what is unexplained at both ends; the others mean requests in progress by
    REQUESTS, also `row_lock` and `round_trip`.
    """
    server = _server(source)
    _closures(source)
    if server is not None:
        _disks(source)
        _row_locks(source)
        _round_trips(source)


def _server(source: Source) -> float | None:
    """The states of the server's connection threads; None with a reason."""
    out = source.out
    handling = source.run.server.variables.get("thread_handling")
    if handling and handling not in PER_CONNECTION:
        # a thread that receives a login waits for it alone, and serves any connection later
        out.mark_missing("ledger.", POOL.format(handling))
        return None
    if SERVER in out.missing:
        out.mark_missing("ledger.", out.missing[SERVER])
        return None
    states = _rates(source, "server")
    if not states or set(states) <= {NO_CONNECTION}:
        out.mark_missing("ledger.", NO_THREADS)
        return None
    rates = dict.fromkeys(IN_SERVER, 0.0)
    for state, threads in states.items():
        if state not in {NO_CONNECTION, CLIENT, USER}:
            rates[_word(state)] += threads
    user = states.get(USER, 0.0)
    rates["system"], rates["user"] = rates["system"] - user, user
    for name, threads in rates.items():
        out.put(f"ledger.{name}", threads)
    if not rates["stolen"] and not _accounts_stolen(source):
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
    if (threads := source.run.result.threads) is not None:
        return float(threads)
    counted = source.out.get("mysql.threads_connected")
    return None if counted is None else counted.rate - RECORDER


def _accounts_stolen(source: Source) -> bool:
    """Whether no stolen time means that there was none.

    The clock of the run queue excludes interrupts if the kernel is built for it, and stolen time if there is
    a steal clock, which has counted since the boot.
    """
    if source.run.fingerprint(source.window.role).cpu_accounting.get("irq_time") == "y":
        return True
    rows = source.rows("cpu", "SELECT tick, steal::DOUBLE AS steal FROM t WHERE cpu = 'all'")
    return rows is not None and bool(np.nanmax(rows["steal"], initial=0.0) > 0)


def _disks(source: Source) -> None:
    """The requests to all disks that have files of the server; a multipath disk's are those of its paths."""
    out = source.out
    wanted = server_disks(source.run.fingerprint(source.window.role))
    recorded = {device for device, *_ in out.entities["ebpf_block"]}
    devices = [name for name in sorted(recorded) if (namespace(name) or name) in wanted]
    if not devices:
        unknown = "the fingerprint does not list the disks of the server's files"
        reason = "ebpf_block has no rows of the disks of the server's files" if wanted else unknown
        out.mark_missing("ledger.disk_", reason if recorded else source.window.why_missing("ebpf_block"))
        return
    for word, requests in REQUESTS.items():
        names = (f"ebpf_block.{disk}.{request}.sum_ns" for disk in devices for request in requests)
        out.put(f"ledger.{word}", _sum(source, names))


def _sum(source: Source, names: Iterable[str]) -> float:
    return sum(quantity.rate for name in names if (quantity := source.out.get(name)))


def _row_locks(source: Source) -> None:
    """Row lock waits in progress in the whole server, by its own clock."""
    waits = source.out.get("mysql.row_lock_ms")
    if waits is None:
        source.out.mark_missing("ledger.row_lock", source.out.why("mysql.row_lock_ms"))
    else:
        source.out.put("ledger.row_lock", waits.rate)


def _round_trips(source: Source) -> None:
    """Client statements × the mean round-trip time: each waits for one round trip."""
    out = source.out
    trip, statements = out.get(TRIP), out.get("load.queries") or out.get("server.questions")
    if trip is None or statements is None:
        out.mark_missing("ledger.round_trip", out.why("load.queries" if trip else TRIP))
    else:
        out.put("ledger.round_trip", trip.rate * statements.rate)


def _closures(source: Source) -> None:
    """Both sums, as mean numbers of threads; `ledger.server` is that of the states of the server.

    `ledger.latency`, `.backlog`, those of OF_CLIENT, `.client_unexplained`, `.network`, `.overlap` (negative:
    it is subtracted) and `.unexplained`. Without the probe no row is computed from a recording of an older
    version, whose run queue contains that of pauses.
    """
    out, result = source.out, source.run.result
    _latency(source, result)
    probes = {*source.window.read, *source.window.unavailable, *source.window.failures}
    if EXCHANGES not in probes:
        for name in (*OF_CLIENT, "client_unexplained", "network", "overlap", "unexplained"):
            out.mark_missing(f"ledger.{name}", OLD)
        return
    _client(source)
    _exchanges(source)
    _close(source, "unexplained", {"server": -1, "waiting": 1, "network": -1, "overlap": -1})


def _close(source: Source, name: str, terms: Mapping[str, int]) -> None:
    """Put the rest of a sum; the reason of the first missing term if there is one."""
    out, signed = source.out, []
    for term, sign in terms.items():
        value = out.get(f"ledger.{term}")
        if value is None:
            out.mark_missing(f"ledger.{name}", out.why(f"ledger.{term}"))
            return
        signed.append(sign * value.rate)
    out.put(f"ledger.{name}", math.fsum(signed))


def _latency(source: Source, result: LoadResult) -> None:
    """Mean number of operations in progress, and of those that are due and have not started."""
    out, kinds = source.out, result.transactions.values()
    seconds = _seconds(source.run)
    latency = _in_progress(seconds, kinds, "latency")
    if latency is None or not latency:
        out.mark_missing("ledger.latency", NO_LATENCY if source.run.result else NO_RESULT)
    else:
        out.put("ledger.latency", latency)
    backlog = _in_progress(seconds, kinds, "wait") if result.rate else 0.0
    if backlog is None:
        out.mark_missing("ledger.backlog", NO_WAIT)
    else:
        out.put("ledger.backlog", backlog)


def _seconds(run: Run) -> float:
    """Length of the measure phase, by the clock of its host and not the one in the results.

    Of a side that alternates it is the time of the intervals in its turns, as its latencies are.
    """
    if run.slices:
        return run.result.seconds or 0.0
    phase = run.phase("measure")
    return 0.0 if phase is None or phase.end_ns is None else (phase.end_ns - phase.begin_ns) * NANOSECOND


def _in_progress(seconds: float, kinds: Collection[TransactionType], what: str) -> float | None:
    """Counts × mean times ÷ the seconds; None if a mean is missing."""
    total = 0.0
    for kind in kinds:
        mean = kind.latency_ms.get("mean") if what == "latency" else kind.wait_ms_mean
        if kind.count is None or (kind.count and mean is None):
            return None
        total += kind.count * (mean or 0.0) / 1e3
    return total / seconds if seconds > 0 else None


def _client(source: Source) -> None:
    """The states of the load's threads during operations."""
    out, sums = source.out, dict.fromkeys(OF_CLIENT, 0.0)
    of_host = _of_load(source)
    rates = of_host and _rates(of_host, LOAD)
    if not rates:
        unknown = out.why("ledger.load_threads") if rates is None else NO_LOAD_THREADS
        why = NO_RECORDER if of_host is None else unknown
        for name in (*OF_CLIENT, "client_unexplained"):
            out.mark_missing(f"ledger.{name}", why)
        return
    for state, threads in rates.items():
        if state not in NOT_IN_OPERATIONS:
            sums[CLIENT_ROWS.get(state, "client_other")] += threads
    for name, threads in sums.items():
        out.put(f"ledger.{name}", threads)
    terms = {"latency": 1, "backlog": -1} | dict.fromkeys(OF_CLIENT, -1)
    _close(source, "client_unexplained", terms)


def _of_load(source: Source) -> Source | None:
    """The recording that contains the load's threads, if there is one."""
    run = source.run
    if LOAD in run.roles:
        return Source(run, measure_window(run, LOAD, source.store), source.store, source.out)
    return source if run.shares_host else None


def _exchanges(source: Source) -> None:
    """Means of the sampled exchanges × the statements per second."""
    out = source.out
    names = ("exchanges", "network_ns", "overlap_ns")
    rows = readings(source, EXCHANGES, ("ends",), doubles(names))
    statements = out.get("load.queries") or out.get("server.questions")
    # one row at a tick
    measured = next(increases(source, EXCHANGES, rows, ("ends",), names), None) if rows is not None else None
    (of_ends,), risen = measured or (("",), dict.fromkeys(names, 0.0))
    reason = source.window.why_missing(EXCHANGES) if rows is None else ""
    if rows is not None and risen["exchanges"] < FEWEST:
        reason = FEW.format(round(risen["exchanges"]))
    if statements is None or reason:
        for name in ("network", "overlap"):
            out.mark_missing(f"ledger.{name}", reason or out.why("load.queries"))
        return
    scale = statements.rate * source.unit(f"{EXCHANGES}.network_ns") / risen["exchanges"]
    out.put("ledger.overlap", -risen["overlap_ns"] * scale)
    if of_ends == BOTH:
        out.put("ledger.network", risen["network_ns"] * scale)
    else:
        out.mark_missing("ledger.network", REMOTE)
