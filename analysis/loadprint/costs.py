"""Costs per unit of work: CPU, switches, disk and network by operation, statement, commit or CPU-second."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadprint.derived import SERVER_SWITCHES, Metric

SERVER_CPU = ("process.server.utime", "process.server.stime")
HEADLINES = ("server_cpu", "switches", "disk_write_kb", "net_tx", "statements")
SYSCALLS = ("syscalls.server.all", "syscalls.server.sync")
REDO = "mysql.redo"
LOAD_CPU = ("process.load.utime", "process.load.stime")


@dataclass(frozen=True)
class Work:
    """A denominator: `per` is its word in keys, `quantity` what counts it."""

    per: str
    quantity: str
    title: str


@dataclass(frozen=True)
class Where:
    """What is charged to a side: its disk and interface, switches of host or server threads, more."""

    disk: str | None
    nic: str | None
    host_switches: bool
    syscalls: bool = False
    redo: bool = False


OPERATION = Work("operation", "load.events", "Cost per operation")
OTHER_WORK = (
    Work("statement", "load.queries", "Cost per client statement"),
    Work("commit", "load.commits", "Cost per commit"),
    Work("CPU-second", "process.server.cpu", "Per CPU-second of the server process"),
)


def cost_metrics(work: Work, where: Where) -> tuple[Metric, ...]:
    """Rows of one denominator; a side without disk or interface has the rows with nothing in them."""
    disk, nic = where.disk or "none", where.nic or "none"
    switches = ("host.ctxt",) if where.host_switches else SERVER_SWITCHES
    scope = "whole host" if where.host_switches else "server threads"
    traffic = ("B", "kB" if work.per == "CPU-second" else "B")
    rows = [
        _cost(work, "switches", f"context switches, {scope}", ("1", ""), *switches),
        *(_syscalls(work) if where.syscalls else ()),
        _cost(work, "interrupts", "interrupts, server's CPUs", ("1", ""), "interrupts.server"),
        _cost(work, "disk_reads", "disk reads", ("1", ""), f"disk.{disk}.reads"),
        _cost(work, "disk_writes", "disk writes", ("1", ""), f"disk.{disk}.writes"),
        _cost(work, "disk_flushes", "disk flushes", ("1", ""), f"disk.{disk}.flushes"),
        _cost(work, "disk_read_kb", "disk read", ("B", "kB"), f"disk.{disk}.read_sectors"),
        _cost(work, "disk_write_kb", "disk written", ("B", "kB"), f"disk.{disk}.write_sectors"),
        *([_cost(work, "redo", "redo written", traffic, REDO)] if where.redo else ()),
        _cost(work, "net_rx", "network received", traffic, f"nic.{nic}.rx_bytes"),
        _cost(work, "net_tx", "network sent", traffic, f"nic.{nic}.tx_bytes"),
    ]
    return (*(_yield(work) if work.per == "CPU-second" else _cpu(work)), *rows)


def _cpu(work: Work) -> list[Metric]:
    return [
        _cost(work, "server_cpu", "server CPU", ("s", "µs"), *SERVER_CPU),
        _cost(work, "server_user", "server CPU, user", ("s", "µs"), SERVER_CPU[0]),
        _cost(work, "server_system", "server CPU, system", ("s", "µs"), SERVER_CPU[1]),
        _cost(work, "load_cpu", "load CPU", ("s", "µs"), *LOAD_CPU),
    ]


def _syscalls(work: Work) -> list[Metric]:
    return [
        _cost(work, "syscalls", "system calls, server", ("1", ""), SYSCALLS[0]),
        _cost(work, "syncs", "fsync and fdatasync, server", ("1", ""), SYSCALLS[1]),
    ]


def _yield(work: Work) -> list[Metric]:
    """What a CPU-second of the server buys; more is better."""
    return [
        replace(
            _cost(work, "statements", "client statements", ("1", ""), "load.queries"),
            better="higher",
        ),
        replace(_cost(work, "commits", "commits", ("1", ""), "load.commits"), better="higher"),
    ]


def _cost(work: Work, key: str, label: str, units: tuple[str, str], *needs: str) -> Metric:
    return Metric(
        f"{key}_per_{work.per}",
        label,
        *units,
        (*needs, work.quantity),
        lambda *values: sum(values[:-1]) / values[-1],
        f"({' + '.join(needs)}) / {work.quantity}",
        better="lower",
        headline=key in HEADLINES,
        per_operation=work.per == "operation",
        coarse=len(needs),
    )
