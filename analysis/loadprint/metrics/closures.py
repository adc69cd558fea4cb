"""The two sums of the time ledger that can fail: at the client, and between the client and the server.

    client: latency = backlog + on CPU + run queue + other + waiting for the server + unexplained
    between the ends: waiting for the server = states of the server − overlap + network + unexplained

The generator measures latency and backlog. `ebpf_states` measures the states of the load's threads and of the
server's. `ebpf_exchanges` measures network and overlap, of sampled exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadprint.metrics import thread_states
from loadprint.metrics.sources import Source
from loadprint.metrics.sources_ebpf import increases, readings
from loadprint.reading.columns import NANOSECOND
from loadprint.reading.queries import doubles
from loadprint.reading.recording import LOAD, Run
from loadprint.reading.window import measure_window

EXCHANGES = "ebpf_exchanges"
BOTH = "both"  # ends of the connections are on the recorder's host
FEWEST = 30  # exchanges, for a mean
PAUSE_QUEUE = "run queue after pause"
# what a generator's threads do between two operations
PAUSES = {"lock", "sleep", "no connection", PAUSE_QUEUE}
NOT_IN_OPERATIONS = PAUSES | {thread_states.USER}  # that is a part of another state
CLIENT_ROWS = {"on CPU": "client_cpu", "run queue": "client_queue", "client": "waiting"}
CLIENT = ("client_cpu", "client_queue", "client_other", "waiting")

NO_LATENCY = "the generator did not report the mean latency of its transactions"
NO_RESULT = "load/result.json is missing"
NO_WAIT = "the generator does not report how long its operations waited for a connection"
NO_RECORDER = "no recorder ran on the load's host"
NO_THREADS = (
    "no thread of the load waits for one connection: the client is an event loop or written in Go, or its "
    "processes are not watched"
)
OLD = "recorded by an older version, without the probe ebpf_exchanges"
FEW = (
    f"fewer than {FEWEST} exchanges were sampled in the window: {{}}; the load's connections pass another "
    "program, or are few"
)
REMOTE = "the load is on another host: the times of both ends are not of one clock"


def closures(source: Source) -> None:
    """Both sums, as mean numbers of threads; `ledger.server` is that of the states of the server.

    `ledger.latency`, `.backlog`, those of CLIENT, `.client_unexplained`, `.network`, `.overlap` (negative: it
    is subtracted) and `.unexplained`. Without the probe no row is computed from a recording of an older
    version, whose run queue contains that of pauses.
    """
    out, result = source.out, source.run.result
    _latency(source, result or {})
    known = {*source.window.read, *source.window.unavailable, *source.window.failures}
    if EXCHANGES not in known:
        for name in (*CLIENT, "client_unexplained", "network", "overlap", "unexplained"):
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


def _latency(source: Source, result: Mapping[str, Any]) -> None:
    """Mean number of operations in progress, and of those that are due and have not started."""
    out, kinds = source.out, [kind or {} for kind in (result.get("transactions") or {}).values()]
    seconds = _seconds(source.run)
    latency = _in_progress(seconds, kinds, "latency")
    if latency is None or not latency:
        out.mark_missing("ledger.latency", NO_RESULT if source.run.result is None else NO_LATENCY)
    else:
        out.put("ledger.latency", latency)
    backlog = _in_progress(seconds, kinds, "wait") if result.get("rate") else 0.0
    if backlog is None:
        out.mark_missing("ledger.backlog", NO_WAIT)
    else:
        out.put("ledger.backlog", backlog)


def _seconds(run: Run) -> float:
    """Length of the measure phase, by the clock of its host and not the one in the results."""
    phase = run.phase("measure")
    return 0.0 if phase is None or phase.end_ns is None else (phase.end_ns - phase.begin_ns) * NANOSECOND


def _in_progress(seconds: float, kinds: list[Mapping[str, Any]], what: str) -> float | None:
    """Counts × mean times ÷ the seconds; None if a mean is missing."""
    total = 0.0
    for kind in kinds:
        count = kind.get("count")
        mean = (kind.get("latency_ms") or {}).get("mean") if what == "latency" else kind.get("wait_ms_mean")
        if not isinstance(count, int | float) or (count and not isinstance(mean, int | float)):
            return None
        total += count * (mean or 0.0) / 1e3
    return total / seconds if seconds > 0 else None


def _client(source: Source) -> None:
    """The states of the load's threads during operations."""
    out, sums = source.out, dict.fromkeys(CLIENT, 0.0)
    of_host = _of_load(source)
    rates = of_host and thread_states.rates(of_host, LOAD)
    if not rates:
        unknown = out.why("ledger.load_threads") if rates is None else NO_THREADS
        why = NO_RECORDER if of_host is None else unknown
        for name in (*CLIENT, "client_unexplained"):
            out.mark_missing(f"ledger.{name}", why)
        return
    for state, threads in rates.items():
        if state not in NOT_IN_OPERATIONS:
            sums[CLIENT_ROWS.get(state, "client_other")] += threads
    for name, threads in sums.items():
        out.put(f"ledger.{name}", threads)
    terms = {"latency": 1, "backlog": -1} | dict.fromkeys(CLIENT, -1)
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
