"""Declares the cost rows: CPU, switches, disk and network per operation, statement, commit or CPU-second."""

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
    "load_system",
)
LOAD_CPU = ("process.load.utime", "process.load.stime")


@dataclass(frozen=True)
class Denominator:
    """A unit of work: `per` is its word in keys, `quantity` counts it."""

    per: str
    quantity: str
    title: str

    @property
    def name(self) -> str:
        """Its name in text."""
        return unit_name(self.per)


@dataclass(frozen=True)
class CostScope:
    """Sources of a side's costs: its disk and interface, switches of the host or of server threads.

    `available` are the quantities that any side has, for rows of optional probes. `plain`: all usual rows are
    in every view, else only those of FEW.
    """

    disk: str | None
    nic: str | None
    host_switches: bool
    available: frozenset[str] = frozenset()
    plain: bool = True
    statements: str = "load.queries"
    commits: str = "load.commits"


@dataclass(frozen=True)
class OptionalCost:
    """A row that is shown if a side has its source; without `units` it is in bytes."""

    key: str
    label: str
    source: str
    units: tuple[str, str] | None = ("1", "")
    footnote: str = ""
    mixed_flavours_footnote: str = ""


SYSTEM = (
    OptionalCost("voluntary_switches", "voluntary switches, server", SERVER_SWITCHES[0]),
    OptionalCost("syscalls", "system calls, server", "syscalls.server.all"),
    OptionalCost("syncs", "fsync and fdatasync, server", "syscalls.server.sync"),
    OptionalCost("instructions", "instructions, server's CPUs", "perf.server.instructions", footnote=IPC),
    OptionalCost("cache_misses", "cache misses, server's CPUs", "perf.server.cache_misses", footnote=MISSES),
    # mJ per operation are J per thousand
    OptionalCost("energy", "package energy", "energy.package", ("J", "mJ"), WHOLE_PACKAGE),
)
SERVER = (
    OptionalCost("redo", "redo written", "mysql.redo", None),
    OptionalCost("fsyncs", "fsyncs of InnoDB", "mysql.fsyncs"),
    OptionalCost("pages_flushed", "pages flushed", "mysql.pages_flushed"),
    OptionalCost("rows_read", "rows read", "mysql.rows_read", mixed_flavours_footnote=ROWS_READ),
    OptionalCost("rows_changed", "rows inserted, updated, deleted", "mysql.rows_written"),
    OptionalCost("row_lock_wait", "row lock waits", "mysql.row_lock_ms", ("s", "µs")),
)
OPERATION = Denominator("operation", "load.events", "Cost per operation")
# if a generator does not report a count, the server's counter is used for all sides
STATEMENTS = (
    Denominator("statement", "load.queries", "Cost per client statement"),
    Denominator("statement", "status.Questions", "Cost per client statement (the server's Questions)"),
)
COMMITS = (
    Denominator("commit", "load.commits", "Cost per commit"),
    Denominator("commit", "status.Com_commit", "Cost per commit (the server's Com_commit)"),
)
OTHER_WORK = (
    Denominator("CPU-second", "process.server.cpu", "Per CPU-second of the server process"),
    Denominator("row_read", "mysql.rows_read", "Cost per row read"),
    Denominator("row_written", "mysql.rows_written", "Cost per row inserted, updated or deleted"),
)


def unit_name(per: str) -> str:
    """The unit of work in text, by its word in keys: a statement is counted at the client."""
    return "client statement" if per == "statement" else per


def cost_metrics(work: Denominator, scope: CostScope) -> tuple[Metric, ...]:
    """Rows of one denominator; without a disk or interface its rows are empty."""
    disk, nic = scope.disk or "none", scope.nic or "none"
    switches = ("host.ctxt",) if scope.host_switches else SERVER_SWITCHES
    threads = "whole host" if scope.host_switches else "server threads"
    rows = [
        _cost(work, "switches", f"context switches, {threads}", ("1", ""), *switches),
        *_probed(work, scope, SYSTEM),
        _cost(work, "interrupts", "interrupts, server's CPUs", ("1", ""), "interrupts.server"),
        _cost(work, "disk_reads", "disk reads", ("1", ""), f"disk.{disk}.reads"),
        _cost(work, "disk_writes", "disk writes", ("1", ""), f"disk.{disk}.writes"),
        _cost(work, "disk_flushes", "disk flushes", ("1", ""), f"disk.{disk}.flushes"),
        _cost(work, "disk_read_kb", "disk read", ("B", "kB"), f"disk.{disk}.read_sectors"),
        _cost(work, "disk_write_kb", "disk written", ("B", "kB"), f"disk.{disk}.write_sectors"),
        *_probed(work, scope, SERVER),
        _cost(work, "net_rx", "network received", _traffic(work), f"nic.{nic}.rx_bytes"),
        _cost(work, "net_tx", "network sent", _traffic(work), f"nic.{nic}.tx_bytes"),
    ]
    everything = (*(_yield(work, scope) if work.per == "CPU-second" else _cpu(work)), *rows)
    return tuple(replace(row, view=_view(row, work, scope)) for row in everything)


def _view(row: Metric, work: Denominator, scope: CostScope) -> View:
    key = row.key.removesuffix(f"_per_{work.per}")
    if key in DETAILS or work.per.startswith("row_") or (work.per == "CPU-second" and key not in YIELDS):
        return "all"
    return "always" if scope.plain or key in FEW else "all"


def _traffic(work: Denominator) -> tuple[str, str]:
    return ("B", "kB" if work.per == "CPU-second" else "B")


def _cpu(work: Denominator) -> list[Metric]:
    return [
        _cost(work, "server_cpu", "server CPU", ("s", "µs"), *SERVER_CPU),
        _cost(work, "server_user", "server CPU, user", ("s", "µs"), SERVER_CPU[0]),
        _cost(work, "server_system", "server CPU, system", ("s", "µs"), SERVER_CPU[1]),
        _cost(work, "load_cpu", "load CPU", ("s", "µs"), *LOAD_CPU),
        _cost(work, "load_system", "load CPU, system", ("s", "µs"), LOAD_CPU[1]),
    ]


def _probed(work: Denominator, scope: CostScope, rows: Sequence[OptionalCost]) -> list[Metric]:
    """Rows of optional sources."""
    return [
        replace(
            _cost(work, row.key, row.label, row.units or _traffic(work), row.source),
            footnote=row.footnote,
            mixed_flavours_footnote=row.mixed_flavours_footnote,
        )
        for row in rows
        if row.source in scope.available
    ]


def _yield(work: Denominator, scope: CostScope) -> list[Metric]:
    """Work per CPU-second of the server; more is better."""
    return [
        replace(
            _cost(work, "statements", "client statements", ("1", ""), scope.statements),
            better="higher",
        ),
        replace(_cost(work, "commits", "commits", ("1", ""), scope.commits), better="higher"),
    ]


def _cost(work: Denominator, key: str, label: str, units: tuple[str, str], *needs: str) -> Metric:
    return Metric(
        f"{key}_per_{work.per}",
        label,
        *units,
        (*needs, work.quantity),
        lambda *values: sum(values[:-1]) / values[-1],
        f"{{{'+'.join(map(str, range(len(needs))))}}} / ({{{len(needs)}}})",
        better="lower",
        headline=key in HEADLINES,
        per_operation=work.per == "operation",
        coarse=len(needs),
    )
