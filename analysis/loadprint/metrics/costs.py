"""Costs per unit of work: CPU, switches, disk and network by operation, statement, commit or CPU-second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadprint.metrics.derived import SERVER_SWITCHES, Metric, View
from loadprint.metrics.derived_hardware import IPC, MISSES, WHOLE_PACKAGE
from loadprint.metrics.derived_mysql import ROWS_READ

SERVER_CPU = ("process.server.utime", "process.server.stime")
HEADLINES = ("server_cpu", "switches", "disk_write_kb", "net_tx", "statements")
YIELDS = ("statements", "commits")
FEW = (*HEADLINES, *YIELDS, "net_rx")
DETAILS = (
    "voluntary_switches",
    "rows_read",
    "rows_changed",
    "pages_flushed",
    "row_lock_wait",
    "cache_misses",
)
LOAD_CPU = ("process.load.utime", "process.load.stime")


@dataclass(frozen=True)
class Work:
    """A denominator: `per` is its word in keys, `quantity` what counts it."""

    per: str
    quantity: str
    title: str


@dataclass(frozen=True)
class Where:
    """What is charged to a side: its disk and interface, switches of host or server threads.

    `there` are the quantities that any side has, for rows that need a probe which is not always there;
    `plain` is whether all usual rows are in every view, or only the few by which sides differ most.
    """

    disk: str | None
    nic: str | None
    host_switches: bool
    there: frozenset[str] = frozenset()
    plain: bool = True
    statements: str = "load.queries"
    commits: str = "load.commits"


@dataclass(frozen=True)
class Probed:
    """A row that is shown where a side has its source; without `units` it is shown in bytes."""

    key: str
    label: str
    source: str
    units: tuple[str, str] | None = ("1", "")
    footnote: str = ""
    mixed_flavours_footnote: str = ""


SYSTEM = (
    Probed("voluntary_switches", "voluntary switches, server", SERVER_SWITCHES[0]),
    Probed("syscalls", "system calls, server", "syscalls.server.all"),
    Probed("syncs", "fsync and fdatasync, server", "syscalls.server.sync"),
    Probed("instructions", "instructions, server's CPUs", "perf.server.instructions", footnote=IPC),
    Probed("cache_misses", "cache misses, server's CPUs", "perf.server.cache_misses", footnote=MISSES),
    # mJ for each operation are J for each thousand
    Probed("energy", "energy of the packages", "energy.package", ("J", "mJ"), WHOLE_PACKAGE),
)
SERVER = (
    Probed("redo", "redo written", "mysql.redo", None),
    Probed("fsyncs", "fsyncs of InnoDB", "mysql.fsyncs"),
    Probed("pages_flushed", "pages flushed", "mysql.pages_flushed"),
    Probed("rows_read", "rows read", "mysql.rows_read", mixed_flavours_footnote=ROWS_READ),
    Probed("rows_changed", "rows inserted, updated, deleted", "mysql.rows_written"),
    Probed("row_lock_wait", "waiting for row locks", "mysql.row_lock_ms", ("s", "µs")),
)
OPERATION = Work("operation", "load.events", "Cost per operation")
# of what a generator does not tell, all sides are taken from the server's own count
STATEMENTS = (
    Work("statement", "load.queries", "Cost per client statement"),
    Work("statement", "status.Questions", "Cost per client statement (the server's Questions)"),
)
COMMITS = (
    Work("commit", "load.commits", "Cost per commit"),
    Work("commit", "status.Com_commit", "Cost per commit (the server's Com_commit)"),
)
OTHER_WORK = (
    Work("CPU-second", "process.server.cpu", "Per CPU-second of the server process"),
    Work("row_read", "mysql.rows_read", "Cost per row read"),
    Work("row_written", "mysql.rows_written", "Cost per row inserted, updated or deleted"),
)


def cost_metrics(work: Work, where: Where) -> tuple[Metric, ...]:
    """Rows of one denominator; a side without disk or interface has the rows with nothing in them."""
    disk, nic = where.disk or "none", where.nic or "none"
    switches = ("host.ctxt",) if where.host_switches else SERVER_SWITCHES
    scope = "whole host" if where.host_switches else "server threads"
    rows = [
        _cost(work, "switches", f"context switches, {scope}", ("1", ""), *switches),
        *_probed(work, where, SYSTEM),
        _cost(work, "interrupts", "interrupts, server's CPUs", ("1", ""), "interrupts.server"),
        _cost(work, "disk_reads", "disk reads", ("1", ""), f"disk.{disk}.reads"),
        _cost(work, "disk_writes", "disk writes", ("1", ""), f"disk.{disk}.writes"),
        _cost(work, "disk_flushes", "disk flushes", ("1", ""), f"disk.{disk}.flushes"),
        _cost(work, "disk_read_kb", "disk read", ("B", "kB"), f"disk.{disk}.read_sectors"),
        _cost(work, "disk_write_kb", "disk written", ("B", "kB"), f"disk.{disk}.write_sectors"),
        *_probed(work, where, SERVER),
        _cost(work, "net_rx", "network received", _traffic(work), f"nic.{nic}.rx_bytes"),
        _cost(work, "net_tx", "network sent", _traffic(work), f"nic.{nic}.tx_bytes"),
    ]
    everything = (*(_yield(work, where) if work.per == "CPU-second" else _cpu(work)), *rows)
    return tuple(replace(row, view=_view(row, work, where)) for row in everything)


def _view(row: Metric, work: Work, where: Where) -> View:
    key = row.key.removesuffix(f"_per_{work.per}")
    if key in DETAILS or work.per.startswith("row_") or (work.per == "CPU-second" and key not in YIELDS):
        return "all"
    return "always" if where.plain or key in FEW else "all"


def _traffic(work: Work) -> tuple[str, str]:
    return ("B", "kB" if work.per == "CPU-second" else "B")


def _cpu(work: Work) -> list[Metric]:
    return [
        _cost(work, "server_cpu", "server CPU", ("s", "µs"), *SERVER_CPU),
        _cost(work, "server_user", "server CPU, user", ("s", "µs"), SERVER_CPU[0]),
        _cost(work, "server_system", "server CPU, system", ("s", "µs"), SERVER_CPU[1]),
        _cost(work, "load_cpu", "load CPU", ("s", "µs"), *LOAD_CPU),
    ]


def _probed(work: Work, where: Where, rows: Sequence[Probed]) -> list[Metric]:
    """Rows of what not every recording has."""
    return [
        replace(
            _cost(work, row.key, row.label, row.units or _traffic(work), row.source),
            footnote=row.footnote,
            mixed_flavours_footnote=row.mixed_flavours_footnote,
        )
        for row in rows
        if row.source in where.there
    ]


def _yield(work: Work, where: Where) -> list[Metric]:
    """What a CPU-second of the server buys; more is better."""
    return [
        replace(
            _cost(work, "statements", "client statements", ("1", ""), where.statements),
            better="higher",
        ),
        replace(_cost(work, "commits", "commits", ("1", ""), where.commits), better="higher"),
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
