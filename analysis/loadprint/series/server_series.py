"""Series of processes and threads, of the server's own counters, and of what eBPF counted.

Sums over processes and threads are taken in the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ibis
import ibis.expr.types as ir
import numpy as np

from loadprint.reading import columns, mysql_names, redo_log
from loadprint.reading.columns import MILLISECOND, NANOSECOND
from loadprint.reading.queries import Columns, number
from loadprint.series.probe_table import SeriesData, Table, split

THREADS = {
    "voluntary_ctxt_switches": 1.0,
    "nonvoluntary_ctxt_switches": 1.0,
    "on_cpu_ns": NANOSECOND,
    "run_delay_ns": NANOSECOND,
}
SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
PROCESS = ("utime", "stime", "read_bytes", "write_bytes", "minflt", "majflt")
HISTOGRAMS = {
    "ebpf_sched": ("role", "state"),
    "ebpf_block": ("device", "operation", "stage"),
    "ebpf_irq": ("kind",),
    "ebpf_syscall_latency": ("role", "syscall"),
    "ebpf_statements": ("role", "command"),
}
COUNTS = {
    "ebpf_switches": (("role",), ("voluntary", "involuntary", "wakeups", "migrations")),
    "ebpf_syscalls": (("role", "syscall"), ("count", "errors")),
}


def _of_roles(t: ir.Table, roles: Sequence[str] | None) -> ir.Table:
    return t if roles is None else t.filter(t.role.isin(roles))


def _rises(
    whole: ir.Table,
    columns: Sequence[str],
    entity: Sequence[str],
    roles: Sequence[str] | None,
    *,
    born_at_zero: bool,
) -> ir.Table:
    """What each column of each entity rose by since the entity's last reading, summed by role and tick.

    A reading below the last one is another process with the same number, that counts from zero. So does an
    entity first seen after the first tick of the table, if `born_at_zero`.
    """
    first = whole.tick.min().as_scalar()
    t = _of_roles(whole, roles)
    over = ibis.window(group_by=list(entity), order_by="tick")
    risen = {}
    for name in columns:
        value = number(t[name])
        before = value.lag().over(over)
        born = ibis.ifelse(t.tick > first, value, None) if born_at_zero else None
        step = ibis.ifelse(value < before, value, value - before)
        risen[name] = ibis.ifelse(before.isnull(), born, step) if born_at_zero else step
    return (
        t.select("tick", "role", **risen)
        .group_by("role", "tick")
        .agg(**{name: number(ibis._[name]).sum() for name in columns})
    )


def process(table: Table) -> Iterator[SeriesData]:
    """CPU and I/O of each role's processes together, and their resident memory."""
    fields = table.fields((*PROCESS, "cpu", "rss"))
    if set(fields) - {"rss"}:
        yield from _process_counters(table)
    if "rss" in fields:
        roles = table.roles()
        rows = table.rows(
            lambda t: _of_roles(t, roles).group_by("role", "tick").agg(rss=number(ibis._.rss).sum())
        )
        unit = columns.rss_unit(table.run, table.role, table.store, table.path)
        for role, own in split(rows, "role"):
            yield table.gauge(f"process.{role}.rss", own["tick"], own["rss"] * unit)


def _process_counters(table: Table) -> Iterator[SeriesData]:
    entity, roles = ["role", "pid"], table.roles()
    if "starttime" in table.store.columns(table.path):
        entity.append("starttime")
    rows = table.rows(lambda t: _rises(t, PROCESS, entity, roles, born_at_zero=False))
    for role, own in split(rows, "role"):
        own["cpu"] = own["utime"] + own["stime"]
        for name in (*PROCESS, "cpu"):
            unit = 1 / table.hz if name in ("utime", "stime", "cpu") else 1.0
            rates = table.grid.rates_of_rises(own["tick"], own[name], unit)
            yield f"process.{role}.{name}", table.grid.middle, rates


def threads(table: Table) -> Iterator[SeriesData]:
    """Switches, CPU time and run-queue delay of each role's threads; `switches` is both kinds together."""
    fields, roles = table.fields((*THREADS, "switches")), table.roles()
    columns = tuple(name for name in THREADS if name in fields or ("switches" in fields and name in SWITCHES))
    rows = table.rows(lambda t: _rises(t, columns, ("role", "pid", "tid"), roles, born_at_zero=True))
    for role, own in split(rows, "role"):
        if "switches" in fields:
            own["switches"] = own[SWITCHES[0]] + own[SWITCHES[1]]
        for name in fields:
            rates = table.grid.rates_of_rises(own["tick"], own[name], THREADS.get(name, 1.0))
            yield f"threads.{role}.{name}", table.grid.middle, rates


def mysql(table: Table) -> Iterator[SeriesData]:
    """Counters and states of the server, the first name of each that this server has."""
    known = {**mysql_names.COUNTERS, **mysql_names.GAUGES}
    wanted = {
        name
        for quantity, names in known.items()
        if table.names is None or {"mysql", f"mysql.{quantity}"} & set(table.names)
        for name in names
    }
    wanted |= {name for pair in mysql_names.AGES for name in pair}
    asked = sorted(wanted)
    rows = table.rows(
        lambda t: t.filter(t.metric.isin(asked)).select("tick", "metric", value=number(ibis._.value))
    )
    series = dict(split(rows, "metric"))
    for name, names in mysql_names.COUNTERS.items():
        found = next((series[one] for one in names if one in series), None)
        if found is not None:
            unit = MILLISECOND if name.endswith("_ms") else 1.0
            yield table.counter(f"mysql.{name}", found, "value", unit)
    told = set()
    for name, names in mysql_names.GAUGES.items():
        found = next((series[one] for one in names if one in series), None)
        if found is not None:
            told.add(name)
            yield table.gauge(f"mysql.{name}", found["tick"], found["value"])
    # before MySQL 8.0.30, and on MariaDB, the capacity is a setting
    capacity = redo_log.capacity((table.run.server or {}).get("variables") or {})
    if "redo_capacity" not in told and capacity is not None:
        yield "mysql.redo_capacity", table.grid.seconds, np.full(len(table.grid.seconds), capacity)
    for last, first in mysql_names.AGES if "checkpoint_age" not in told else ():
        if last in series and first in series:
            ends = [table.grid.placed(series[one]["tick"], series[one]["value"]) for one in (last, first)]
            yield "mysql.checkpoint_age", table.grid.seconds, ends[0] - ends[1]
            return


def histogram(table: Table) -> Iterator[SeriesData]:
    """`count` and `sum` (seconds) of an eBPF histogram's entities."""
    keys = HISTOGRAMS[table.probe]
    units = {"sum": NANOSECOND, "count": 1.0}
    fields, roles = table.fields(units), table.roles() if keys[0] == "role" else None

    def chosen(t: ir.Table) -> ir.Table:
        # a sum over the buckets of every row takes longer than all the rest
        of = {"sum": t.sum_ns, "count": t.buckets.sums() if "count" in fields else None}
        told = {name: number(of[name]) for name in fields}
        return _of_roles(t, roles).select("tick", entity=_joined(t, keys), **told)

    rows = table.rows(chosen)
    yield from _entities(table, rows, {name: units[name] for name in fields})


def counts(table: Table) -> Iterator[SeriesData]:
    """Counters of an eBPF table's entities."""
    keys, fields = COUNTS[table.probe]
    rows = table.rows(
        lambda t: t.select("tick", entity=_joined(t, keys), **{name: number(t[name]) for name in fields})
    )
    yield from _entities(table, rows, dict.fromkeys(fields, 1.0))


def _joined(t: ir.Table, keys: Sequence[str]) -> ir.Value:
    joined: ir.Value = t[keys[0]]
    for key in keys[1:]:
        joined = joined + "." + t[key]
    return joined


def _entities(table: Table, rows: Columns, units: dict[str, float]) -> Iterator[SeriesData]:
    """An entity has rows from its first event on: before that it counted 0."""
    for entity, own in split(rows, "entity"):
        for name, unit in units.items():
            readings = table.grid.placed(own["tick"], own[name])
            if len(own["tick"]):
                readings[table.grid.ticks < own["tick"][0]] = 0.0
            key = f"{table.probe.removeprefix('ebpf_')}.{entity}.{name}"
            yield key, table.grid.middle, table.grid.rates(table.grid.ticks, readings, unit)
