"""Series of processes and threads, of the server's own counters, and of what eBPF counted.

Sums over processes and threads are taken in the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ibis
import ibis.expr.types as ir

from loadprint.metrics import sources, sources_mysql
from loadprint.metrics.sources import MILLISECOND, NANOSECOND
from loadprint.reading.queries import Columns, number
from loadprint.series.table import Found, Table, split

THREADS = {
    "voluntary_ctxt_switches": 1.0,
    "nonvoluntary_ctxt_switches": 1.0,
    "on_cpu_ns": NANOSECOND,
    "run_delay_ns": NANOSECOND,
}
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


def _rises(t: ir.Table, columns: Sequence[str], entity: Sequence[str], *, born_at_zero: bool) -> ir.Table:
    """What each column of each entity rose by since the entity's last reading, summed by role and tick.

    A reading below the last one is another process with the same number, that counts from zero. So does an
    entity first seen after the first tick, if `born_at_zero`.
    """
    first = t.tick.min().over(ibis.window())
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


def process(table: Table) -> Iterator[Found]:
    """CPU and I/O of each role's processes together, and their resident memory."""
    columns = ("utime", "stime", "read_bytes", "write_bytes", "minflt", "majflt")
    entity = ["role", "pid"]
    if "starttime" in table.store.columns(table.path):
        entity.append("starttime")
    rows = table.rows(lambda t: _rises(t, columns, entity, born_at_zero=False))
    for role, own in split(rows, "role"):
        own["cpu"] = own["utime"] + own["stime"]
        for name in (*columns, "cpu"):
            unit = 1 / table.hz if name in ("utime", "stime", "cpu") else 1.0
            rates = table.grid.rates_of_rises(own["tick"], own[name], unit)
            yield f"process.{role}.{name}", table.grid.middle, rates
    rows = table.rows(lambda t: t.group_by("role", "tick").agg(rss=number(ibis._.rss).sum()))
    unit = sources.rss_unit(table.run, table.role, table.store, table.path)
    for role, own in split(rows, "role"):
        yield table.gauge(f"process.{role}.rss", own["tick"], own["rss"] * unit)


def threads(table: Table) -> Iterator[Found]:
    """Switches, CPU time and run-queue delay of each role's threads; `switches` is both kinds together."""
    rows = table.rows(lambda t: _rises(t, tuple(THREADS), ("role", "pid", "tid"), born_at_zero=True))
    for role, own in split(rows, "role"):
        own["switches"] = own["voluntary_ctxt_switches"] + own["nonvoluntary_ctxt_switches"]
        for name, unit in {**THREADS, "switches": 1.0}.items():
            rates = table.grid.rates_of_rises(own["tick"], own[name], unit)
            yield f"threads.{role}.{name}", table.grid.middle, rates


def mysql(table: Table) -> Iterator[Found]:
    """Counters and states of the server, the first name of each that this server has."""
    known = {**sources_mysql.COUNTERS, **sources_mysql.GAUGES}
    wanted = {
        name
        for quantity, names in known.items()
        if table.names is None or {"mysql", f"mysql.{quantity}"} & set(table.names)
        for name in names
    }
    wanted |= {name for pair in sources_mysql.AGES for name in pair}
    asked = sorted(wanted)
    rows = table.rows(
        lambda t: t.filter(t.metric.isin(asked)).select("tick", "metric", value=number(ibis._.value))
    )
    series = dict(split(rows, "metric"))
    for name, names in sources_mysql.COUNTERS.items():
        found = next((series[one] for one in names if one in series), None)
        if found is not None:
            unit = MILLISECOND if name.endswith("_ms") else 1.0
            yield table.counter(f"mysql.{name}", found, "value", unit)
    told = set()
    for name, names in sources_mysql.GAUGES.items():
        found = next((series[one] for one in names if one in series), None)
        if found is not None:
            told.add(name)
            yield table.gauge(f"mysql.{name}", found["tick"], found["value"])
    for last, first in sources_mysql.AGES if "checkpoint_age" not in told else ():
        if last in series and first in series:
            ends = [table.grid.placed(series[one]["tick"], series[one]["value"]) for one in (last, first)]
            yield "mysql.checkpoint_age", table.grid.seconds, ends[0] - ends[1]
            return


def histogram(table: Table) -> Iterator[Found]:
    """`count` and `sum` (seconds) of an eBPF histogram's entities."""
    keys = HISTOGRAMS[table.probe]
    rows = table.rows(
        lambda t: t.select(
            "tick",
            entity=_joined(t, keys),
            sum=number(t.sum_ns),
            count=number(t.buckets.sums()),
        )
    )
    yield from _entities(table, rows, {"sum": NANOSECOND, "count": 1.0})


def counts(table: Table) -> Iterator[Found]:
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


def _entities(table: Table, rows: Columns, units: dict[str, float]) -> Iterator[Found]:
    """An entity has rows from its first event on: before that it counted 0."""
    for entity, own in split(rows, "entity"):
        for name, unit in units.items():
            readings = table.grid.placed(own["tick"], own[name])
            if len(own["tick"]):
                readings[table.grid.ticks < own["tick"][0]] = 0.0
            key = f"{table.probe.removeprefix('ebpf_')}.{entity}.{name}"
            yield key, table.grid.middle, table.grid.rates(table.grid.ticks, readings, unit)
