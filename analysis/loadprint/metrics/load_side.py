"""Gathers the quantities of the load's hosts: CPUs, processes, threads and sockets, per host and together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadprint.metrics import sources, sources_limits
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.threads import threads
from loadprint.reading.cpusets import cpuset, user_hz
from loadprint.reading.load_hosts import FIRST
from loadprint.reading.queries import Store
from loadprint.reading.recording import Load, Run
from loadprint.reading.window import Window, measure_window

PARTS = ("cpu", "process", "threads", "sockets")  # first words of the quantities of a load
LARGEST = (f"threads.{FIRST}.busiest",)


@dataclass(frozen=True)
class LoadHost:
    """One load host: its CPU set, None if none was given on a shared host, and its quantities.

    The only load host of a run has all quantities of the run. One of several has those of its CPUs,
    processes, threads and sockets under the role `load`, and `load.events` and `latency.mean` of its part.
    """

    role: str
    host: str
    cpus: tuple[int, ...] | None
    quantities: Quantities
    result: Mapping[str, Any]
    fingerprint: Mapping[str, Any]


def load_hosts(run: Run, store: Store, out: Quantities, server_window: Window | None) -> tuple[LoadHost, ...]:
    """Read the quantities of all load hosts, and add those of all together to `out`.

    `server_window` is None if no recorder ran.
    """
    if len(run.loads) == 1:
        return (_only(run, store, out, server_window),)
    hosts = tuple(_of_host(run, load, store) for load in run.loads)
    _add(hosts, out)
    return hosts


def _only(run: Run, store: Store, out: Quantities, server_window: Window | None) -> LoadHost:
    """The only load host; on a shared host from the server's tables."""
    (load,) = run.loads
    host = _host(run, load, out)
    if load.role in run.roles:
        _recorded(run, load.role, store, out, host.cpus)
    elif server_window is not None and not run.shares_host:
        out.mark_missing(f"cpu.{FIRST}", "no recorder ran on the load's host")
    elif server_window is not None and host.cpus is None:
        out.mark_missing(f"cpu.{FIRST}", "the load has no CPU set and shares the server's host")
    elif server_window is not None:
        source = sources.Source(run, server_window, store, out)
        sources.cpu(source, FIRST, host.cpus, user_hz(run, "server"))
    return host


def _host(run: Run, load: Load, quantities: Quantities) -> LoadHost:
    return LoadHost(
        load.role,
        run.host(load.role),
        cpuset(run, load.role),
        quantities,
        load.result or {},
        run.fingerprint(load.role),
    )


def _of_host(run: Run, load: Load, store: Store) -> LoadHost:
    """One of several load hosts, with its own quantities."""
    host = _host(run, load, Quantities())
    if load.role in run.roles:
        _recorded(run, load.role, store, host.quantities, host.cpus)
    else:
        for part in PARTS:
            host.quantities.mark_missing(part, f"no recorder ran on {host.host}")
    seconds, events = host.result.get("seconds"), host.result.get("events")
    if isinstance(seconds, int | float) and seconds > 0 and isinstance(events, int | float):
        host.quantities.put("load.events", events / seconds)
    mean = (host.result.get("latency_ms") or {}).get("mean")
    if isinstance(mean, int | float):
        host.quantities.put("latency.mean", mean / 1e3)
    return host


def _recorded(run: Run, role: str, store: Store, out: Quantities, cpus: Sequence[int] | None) -> None:
    """Quantities of a load host's own recorder, which calls the load's processes `load` on every host."""
    source = sources.Source(run, measure_window(run, role, store), store, out)
    sources.cpu(source, FIRST, cpus, user_hz(run, role))
    sources.process(source, user_hz(run, role))
    threads(source)
    sources_limits.sockets(source, (FIRST,))


def _add(hosts: Sequence[LoadHost], out: Quantities) -> None:
    """Sums over the hosts of their CPUs, processes, threads and sockets; absent where one host lacks it."""
    names = dict.fromkeys(
        name
        for host in hosts
        for name in host.quantities.values
        if name.startswith(tuple(f"{part}.{FIRST}." for part in PARTS))
    )
    for name in names:
        parts = [host.quantities.get(name) for host in hosts]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            lacking = next(host for host, part in zip(hosts, parts, strict=True) if part is None)
            out.mark_missing(name, f"{lacking.host}: {lacking.quantities.why(name)}")
        elif name in LARGEST:
            out.put(name, max(part.rate for part in known))
        else:
            out.total(name, known)
    for host in hosts:
        out.warnings += [f"{host.host}: {text}" for text in host.quantities.warnings]
        out.notes += [f"{host.host}: {text}" for text in host.quantities.notes]
        for prefix, reason in host.quantities.missing.items():
            out.mark_missing(prefix, f"{host.host}: {reason}")
