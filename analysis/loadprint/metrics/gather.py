"""Gathers the quantities of one run from the recorder's tables and the load generator's results."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.files import Catalogue, catalogue
from loadprint.metrics import hardware, host, limits, load, mysql
from loadprint.metrics.ebpf import ebpf, programs, scheduler
from loadprint.metrics.ledger import ledger
from loadprint.metrics.mysql import spikes
from loadprint.metrics.profile import Profile, profile
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.metrics.recorded import recorded
from loadprint.metrics.scraped import scraped
from loadprint.metrics.threads import threads
from loadprint.metrics.turns import since_thaw, turns
from loadprint.metrics.waiting import waiting
from loadprint.reading.clocks import SAME_CLOCK, Clocks, clocks
from loadprint.reading.cpusets import cpuset
from loadprint.reading.names import LOAD
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.window import Window, measure_window, measured_times
from loadprint.series.throughput import intervals

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
        return self.run.result.operation or self.run.meta.operation or "event"

    @property
    def seconds(self) -> float | None:
        """The measured time: the load's, or the recorder's if the load does not count by turns."""
        counted = self.quantities.rate("load.seconds")
        return self.window.seconds if counted is None and self.window else counted


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
    out, declared = Quantities(window.segments if window else 1), rows or catalogue()
    reported = intervals(run, store)
    at = np.empty(0)
    if reported is not None:
        at = measured_times(run, store, reported.begins, reported.ends)
        load.courses(reported, at, out)
    whole = run
    run, reported = load.in_segments(run, reported, np.isfinite(at), store)
    load.totals(run, out, declared)
    if run.segments is not None:
        load.explain(whole, out, declared)
    if run.turns and reported is not None and "queries" in reported.totals:
        since_thaw(reported, out)
    server_cpus = cpuset(run, "server")
    sampled, source = None, None
    if window is not None:
        source = Source(run, window, store, out, charted)
        sampled = _server_side(source, declared, server_cpus, brief=brief)
    else:
        out.mark_missing("", NO_RECORDER)  # of all other names
        _of_server(run, declared, out)
    rates = reported.samples("events") if reported and "events" in reported.totals else np.empty(0)
    step = reported.usual if reported else 1.0
    load.steadiness(rates, step, out)
    load_cpus = cpuset(run, LOAD)
    if LOAD in run.roles:
        apart = Source(run, measure_window(run, LOAD, store), store, out, charted)
        _load_host(apart, declared, load_cpus)
    elif source is not None:
        _load_side(source, load_cpus)
    return Measured(run, out, server_cpus, load_cpus, window, rates, step, clocks(run, store), sampled)


def _server_side(
    source: Source, declared: Catalogue, cpus: Sequence[int] | None, *, brief: bool
) -> Profile | None:
    run, role, out = source.run, source.window.role, source.out
    of_whole = run.segments is None
    host.cpu(source, "server", cpus)
    host.process(source)
    threads(source)
    programs(source)
    waiting(source)
    if brief:
        scheduler(source)
        return None
    host.host(source)
    host.cpu(source, "host", None)
    hardware.siblings(source, cpus)
    hardware.frequency(source, "server", cpus)
    hardware.perf(source, "server", cpus)
    hardware.energy(source)
    host.interrupts(source, "server", cpus)
    limits.cgroup(source)
    limits.allowances(source)
    limits.volumes(source)
    ebpf(source)
    recorded(source, declared)
    turns(source)
    out.mark_missing("nic.none", "only lo carried traffic: the connections use a unix socket, or loopback")
    out.mark_missing("disk.none", "no disk of the server was used")
    out.mark_missing("nic.", "this side does not have this interface")
    scraped(source, declared.scraped)
    host.storage(source, declared.columns["storage"])
    samples = profile(source)
    mysql.misses(source)
    _of_server(run, declared, out)
    mysql.constant_capacity(source)
    if of_whole and run.table(role, "mysql"):
        spikes(out)
    # the latency of all operations: of a part of the phase it is not known
    if of_whole or run.slices:
        ledger(source)
    return samples


def _of_server(run: Run, declared: Catalogue, out: Quantities) -> None:
    """Add the server's counters by its status, where no probe read them, and named formulas."""
    seconds = out.get("load.seconds")
    if run.segments is None and seconds:
        names = {name for name in declared.columns["mysql"] if f"mysql.{name}" in declared.counted}
        load.without_probe(run, names, seconds.rate, out)
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


def _load_host(source: Source, declared: Catalogue, cpus: tuple[int, ...] | None) -> None:
    """Put the quantities of a load that has a recorder."""
    host.cpu(source, LOAD, cpus)
    host.process(source, LOAD)
    threads(source, LOAD)
    recorded(source, declared, LOAD)
    _named(source.out)


def _load_side(source: Source, cpus: tuple[int, ...] | None) -> None:
    """Put the CPU time of a load without a recorder; on a shared host it is in the server's tables."""
    if not source.run.shares_host:
        source.out.mark_missing(f"cpu.{LOAD}", "no recorder ran on the load's host")
    elif cpus is None:
        source.out.mark_missing(f"cpu.{LOAD}", "the load has no CPU set and shares the server's host")
    else:
        host.cpu(source, LOAD, cpus)
