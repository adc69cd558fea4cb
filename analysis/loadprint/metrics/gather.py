"""Gathers the quantities of one run from the recorder's tables and the load generator's results."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.files import Catalogue, catalogue
from loadprint.errors import InputError
from loadprint.metrics import load_inside, sources, sources_hardware, sources_limits, sources_mysql
from loadprint.metrics.connection_time import connection_time
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.recorded import recorded
from loadprint.metrics.scraped import scraped
from loadprint.metrics.sources import Source
from loadprint.metrics.sources_ebpf import ebpf, programs, scheduler
from loadprint.metrics.sources_ledger import ledger
from loadprint.metrics.sources_profile import Profile, profile
from loadprint.metrics.sources_spikes import spikes
from loadprint.metrics.status import status, without_probe
from loadprint.metrics.threads import threads
from loadprint.numbers import brief
from loadprint.reading.clocks import SAME_CLOCK, Clocks, clocks
from loadprint.reading.cpusets import cpuset
from loadprint.reading.queries import Store
from loadprint.reading.recording import LOAD, Run
from loadprint.reading.time_series import Series
from loadprint.reading.window import Window, measure_window
from loadprint.series.intervals import Intervals
from loadprint.series.throughput import intervals
from loadprint.statistics import gaps

MIN_FOR_P999 = 10_000
MIN_SECONDS = 5  # for a coefficient of variation
NO_RECORDER = "no recorder ran: <role>/ticks.parquet is missing"


@dataclass(frozen=True)
class Measured:
    """A run with its quantities; a CPU set is None if it was not given on a shared host.

    `events_per_second` are the rates of all transaction
    types together, at steps of `step_s` seconds through the measure phase; NaN where an interval is missing.
    `profile` has the samples of stacks in the window.
    """

    run: Run
    quantities: Quantities
    server_cpus: tuple[int, ...] | None
    load_cpus: tuple[int, ...] | None
    window: Window | None
    events_per_second: NDArray[np.float64]
    step_s: float = 1.0
    clocks: Clocks = SAME_CLOCK
    profile: Profile | None = None

    @property
    def operation(self) -> str:
        """Name of one operation of the workload."""
        declared = (self.run.result or {}).get("operation") or self.run.meta.get("operation")
        return str(declared or "event")

    @property
    def shared_host(self) -> bool:
        """Whether server and load ran on one host, so that host-wide counters include both."""
        return self.run.shares_host


def gather(
    run: Run,
    store: Store,
    *,
    brief: bool = False,
    charted: bool = False,
    rows: Catalogue | None = None,
) -> Measured:
    """Read the quantities of one run; `brief`: only CPU, processes, threads and scheduler, for sweeps.

    `charted`: with all series, else only those of the load and of MySQL.
    `rows` are those of the catalogue if none are given.
    Raises InputError with the file that cannot be used.
    """
    window = measure_window(run, run.roles[0], store) if run.roles else None
    out, known = Quantities(window.segments if window else 1), rows or catalogue()
    reported = intervals(run, store)
    if reported is not None:
        _generator_series(reported, out)
    run, reported = load_inside.in_segments(run, reported, store)
    _generator(run, out, known)
    server_cpus = cpuset(run, "server")
    sampled, source, of_whole = None, None, run.segments is None
    if window is not None:
        source = sources.Source(run, window, store, out, charted)
        sampled = _server_side(source, known, server_cpus, brief=brief, of_whole=of_whole)
    else:
        out.mark_missing("", NO_RECORDER)  # of all other names
        _of_server(run, known, out, of_whole=of_whole)
    rates = reported.samples("events") if reported and "events" in reported.totals else np.empty(0)
    step = reported.usual if reported else 1.0
    _steadiness(rates, step, out)
    load_cpus = cpuset(run, LOAD)
    if LOAD in run.roles:
        apart = sources.Source(run, measure_window(run, LOAD, store), store, out, charted)
        _load_host(apart, known, load_cpus)
    else:
        _load_side(run, out, load_cpus, source)
    return Measured(run, out, server_cpus, load_cpus, window, rates, step, clocks(run, store), sampled)


def _server_side(
    source: Source, known: Catalogue, cpus: Sequence[int] | None, *, brief: bool, of_whole: bool
) -> Profile | None:
    run, role, out = source.run, source.window.role, source.out
    sources.cpu(source, "server", cpus)
    sources.process(source)
    threads(source)
    programs(source)
    if brief:
        scheduler(source)
        return None
    sources.host(source)
    sources.cpu(source, "host", None)
    sources_hardware.siblings(source, cpus)
    sources_hardware.frequency(source, "server", cpus)
    sources_hardware.perf(source, "server", cpus)
    sources_hardware.energy(source)
    sources.interrupts(source, "server", cpus)
    sources_limits.cgroup(source, "server")
    sources_limits.allowances(source)
    sources_limits.volumes(source)
    ebpf(source)
    recorded(source, known)
    out.mark_missing("nic.none", "only lo carried traffic: the connections use a unix socket, or loopback")
    out.mark_missing("disk.none", "no disk of the server was used")
    out.mark_missing("nic.", "this side does not have this interface")
    scraped(source, known.scraped)
    sources.storage(source, known.columns["storage"])
    samples = profile(source)
    sources_mysql.misses(source)
    _of_server(run, known, out, of_whole=of_whole)
    sources_mysql.constant_capacity(source)
    if of_whole:  # a part of the phase has no latency
        if run.table(role, "mysql"):
            spikes(out)
        ledger(source)
    return samples


def _of_server(run: Run, known: Catalogue, out: Quantities, *, of_whole: bool) -> None:
    """Add the server's counters by its status, where no probe read them, and named formulas."""
    seconds = out.get("load.seconds")
    if of_whole and seconds:
        names = {name for name in known.columns["mysql"] if f"mysql.{name}" in known.counted}
        without_probe(run, names, seconds.rate, out)
    _named(out)


def _named(out: Quantities) -> None:
    """Add the named formulas of the catalogue, and their courses."""
    for name, formula in catalogue().names.items():
        resolved = out.resolved(formula)
        with contextlib.suppress(ZeroDivisionError):
            if (value := out.value(resolved)) is not None:
                out.put(name, value)
        out.mark_missing(name, out.why_not(resolved) or f"nothing to divide by: {out.divisor(resolved)} is 0")
        if course := out.course(formula):
            out.add_series(name, course)


def _load_host(source: Source, known: Catalogue, cpus: tuple[int, ...] | None) -> None:
    """Put the quantities of a load that has a recorder."""
    sources.cpu(source, LOAD, cpus)
    sources.process(source)
    threads(source)
    recorded(source, known, LOAD)
    _named(source.out)


def _load_side(run: Run, out: Quantities, cpus: tuple[int, ...] | None, source: Source | None) -> None:
    """Put the CPU time of a load without a recorder; on a shared host it is in the server's tables.

    `source` is that of the server, None if no recorder ran.
    """
    if source is None:
        return
    elif not run.shares_host:
        out.mark_missing(f"cpu.{LOAD}", "no recorder ran on the load's host")
    elif cpus is None:
        out.mark_missing(f"cpu.{LOAD}", "the load has no CPU set and shares the server's host")
    else:
        sources.cpu(source, LOAD, cpus)


def _generator(run: Run, out: Quantities, known: Catalogue) -> None:
    """Totals of result.json as rates, latencies in seconds."""
    if run.result is None:
        out.mark_missing("load", "load/result.json is missing")
        out.mark_missing("latency", "load/result.json is missing")
        out.mark_missing("connections.", "load/result.json is missing")
        return
    seconds = run.result.get("seconds")
    if run.segments is not None and seconds is None:
        out.missing |= dict.fromkeys(("load", "latency", "connections."), load_inside.NO_INTERVALS)
        return
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise InputError(
            run.path / "load" / "result.json", "`seconds` is not a positive number", "record the run again"
        )
    for name in ("events", "queries", "reads", "writes", "others", "commits", "rows", "errors", "reconnects"):
        total = run.result.get(name)
        if isinstance(total, int | float):
            out.put(f"load.{name}", total / seconds, None)
        else:
            out.mark_missing(f"load.{name}", f"the load generator does not count {name}")
    latency = run.result.get("latency_ms") or {}
    timed = sum((kind or {}).get("count") or 0 for kind in (run.result.get("transactions") or {}).values())
    for name in known.columns["latency"]:
        value = latency.get(name)
        if name == "p999" and timed < MIN_FOR_P999:
            out.mark_missing(
                "latency.p999",
                f"the run has fewer than {MIN_FOR_P999:,} transactions, so fewer than ten beyond p99.9",
            )
        elif isinstance(value, int | float) and math.isfinite(value):
            out.put(f"latency.{name}", value / 1e3, None)
        else:
            out.mark_missing(f"latency.{name}", "the generator did not report it")
    out.put("load.seconds", float(seconds))
    _failures(run.result, float(seconds), out)
    connection_time(run.result, float(seconds), out)
    _generator_specific(run.result, out)
    if run.segments is not None:
        out.missing |= dict.fromkeys(out.missing, load_inside.NO_INTERVALS)
    status(run, known.columns["status"], float(seconds), out)
    sources_mysql.variables(run, known.columns["variables"], out)


def _failures(result: dict[str, Any], seconds: float, out: Quantities) -> None:
    """Errors by number and retried events: `load.errors.<errno>`, `load.retries`."""
    for code, count in (result.get("errors_by_code") or {}).items():
        if isinstance(count, int | float):
            out.put(f"load.errors.{code}.count", count / seconds, None)
    retries = result.get("retries")
    if retries is None and result.get("generator") == "native":
        retries = result.get("errors")  # each error that does not end the run is retried
    _put(
        out,
        "load.retries",
        retries,
        "the generator does not report retries",
        1 / seconds,
    )


def _generator_series(reported: Intervals, out: Quantities) -> None:
    """Series of the generator's intervals: `load.events` …, and the backlog of an open loop."""
    middle, half = (reported.begins + reported.ends) / 2, reported.lengths / 2
    for name in reported.totals:
        out.add_series(f"load.{name}", Series(middle, reported.rates(name), half))
    for name, values in reported.states.items():
        unit = 1e-3 if name.endswith("_ms") else 1.0
        out.add_series(f"load.{name.removesuffix('_ms')}", Series(middle, values * unit, half))


def _steadiness(rates: NDArray[np.float64], step: float, out: Quantities) -> None:
    """Variation of the seconds: `load.cv`, sd / mean, and `load.worst_second`, min / median."""
    known = gaps.known(rates)
    if round(step) != 1:
        out.mark_missing("load.cv", f"the generator reports every {brief(step, 3)} s, not every second")
    elif len(known) < MIN_SECONDS or np.median(known) <= 0:
        out.mark_missing(
            "load.cv", f"the throughput series has fewer than {MIN_SECONDS} seconds, or no operations"
        )
    else:
        out.put("load.cv", float(known.std(ddof=1) / known.mean()))
        out.put("load.worst_second", float(known.min() / np.median(known)))
        return
    out.mark_missing("load.worst_second", out.missing["load.cv"])


def time_wait_after(result: dict[str, Any]) -> float | None:
    """Sockets in TIME_WAIT after an external generator ran, by its own report."""
    sockets = (result.get("details") or {}).get("sockets") or {}
    waits = (sockets.get("after") or {}).get("tcp_time_wait")
    return float(waits) if isinstance(waits, int | float) else None


def _generator_specific(result: dict[str, Any], out: Quantities) -> None:
    """Figures of some generators: rates of an open loop, details of the workload, latencies by type."""
    for name in ("rate", "achieved_rate", "backlog_max", "backlog_end"):
        _put(out, f"load.{name}", result.get(name), "the load ran in a closed loop")
    for name in ("nopm", "tpm"):
        _put(
            out,
            f"details.{name}",
            (result.get("details") or {}).get(name),
            f"the generator does not report {name}",
        )
    if (waiting := time_wait_after(result)) is not None:
        out.put("load.time_wait", waiting)
    out.mark_missing("type", "this side does not have this transaction type")
    for kind, reported in (result.get("transactions") or {}).items():
        for name, value in ((reported or {}).get("latency_ms") or {}).items():
            _put(out, f"type.{kind}.{name}", value, "no transaction of this type was timed", 1e-3)


def _put(out: Quantities, name: str, value: Any, reason: str, factor: float = 1.0) -> None:
    if isinstance(value, int | float) and math.isfinite(value):
        out.put(name, value * factor, None)
    else:
        out.mark_missing(name, reason)
