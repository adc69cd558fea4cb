"""Reads series of processes, threads, the server's status counters and the eBPF tables.

The query sums over processes and threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loadprint.reading import columns, mysql_names, redo_log
from loadprint.reading.columns import (
    EBPF_COUNTERS,
    EBPF_HISTOGRAMS,
    MILLISECOND,
    NANOSECOND,
    THREAD_UNITS,
)
from loadprint.reading.counters import rises
from loadprint.reading.queries import Columns, among, by_entity, doubles, listed, metrics, sums
from loadprint.series.probe_table import SeriesData, Table

SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
PROCESS = ("utime", "stime", "read_bytes", "write_bytes", "minflt", "majflt")


def _of_roles(roles: Sequence[str] | None) -> str:
    return "t" if roles is None else f"(FROM t WHERE role IN {among(roles)})"


def _rises(
    columns: Sequence[str], entity: Sequence[str], roles: Sequence[str] | None, *, born_at_zero: bool
) -> str:
    """Increase of each column since the entity's previous reading, summed by role and tick."""
    risen = rises(_of_roles(roles), columns, entity, "(SELECT min(tick) FROM t)" if born_at_zero else None)
    return f"SELECT role, tick, {listed(sums(columns))} FROM ({risen}) GROUP BY role, tick"


def process(table: Table) -> Iterator[SeriesData]:
    """CPU time, I/O and resident memory of each role's processes together."""
    fields = table.fields((*PROCESS, "cpu", "rss"))
    if set(fields) - {"rss"}:
        yield from _process_counters(table)
    if "rss" in fields:
        rows = table.rows(
            f"SELECT role, tick, sum(rss::DOUBLE) AS rss FROM {_of_roles(table.roles())} GROUP BY role, tick"
        )
        unit = columns.page_size(table.run, table.role)
        for role, of_role in by_entity(rows, "role"):
            yield table.gauge(f"process.{role}.rss", of_role["tick"], of_role["rss"] * unit)


def _process_counters(table: Table) -> Iterator[SeriesData]:
    entity, roles = ["role", "pid"], table.roles()
    if "starttime" in table.store.columns(table.path):
        entity.append("starttime")
    rows = table.rows(_rises(PROCESS, entity, roles, born_at_zero=False))
    for role, of_role in by_entity(rows, "role"):
        of_role["cpu"] = of_role["utime"] + of_role["stime"]
        for name in (*PROCESS, "cpu"):
            unit = 1 / table.hz if name in ("utime", "stime", "cpu") else 1.0
            rates = table.grid.rates_of_rises(of_role["tick"], of_role[name], unit)
            yield f"process.{role}.{name}", table.grid.middle, rates


def threads(table: Table) -> Iterator[SeriesData]:
    """Switches, CPU time and run-queue delay of each role's threads; `switches` is both kinds together."""
    fields, roles = table.fields((*THREAD_UNITS, "switches")), table.roles()
    columns = tuple(
        name for name in THREAD_UNITS if name in fields or ("switches" in fields and name in SWITCHES)
    )
    rows = table.rows(_rises(columns, ("role", "pid", "tid"), roles, born_at_zero=True))
    for role, of_role in by_entity(rows, "role"):
        if "switches" in fields:
            of_role["switches"] = of_role[SWITCHES[0]] + of_role[SWITCHES[1]]
        for name in fields:
            rates = table.grid.rates_of_rises(of_role["tick"], of_role[name], THREAD_UNITS.get(name, 1.0))
            yield f"threads.{role}.{name}", table.grid.middle, rates


def mysql(table: Table) -> Iterator[SeriesData]:
    """Counters and states of the server, by the first name that the server has."""
    known = {**mysql_names.COUNTERS, **mysql_names.GAUGES}
    wanted = {
        name
        for quantity, names in known.items()
        if table.names is None or {"mysql", f"mysql.{quantity}"} & set(table.names)
        for name in names
    }
    wanted |= {name for pair in mysql_names.AGES for name in pair}
    rows = table.rows(metrics(sorted(wanted)))
    series = dict(by_entity(rows, "metric"))
    for name, names in mysql_names.COUNTERS.items():
        rows = next((series[one] for one in names if one in series), {})
        if rows:
            unit = MILLISECOND if name.endswith("_ms") else 1.0
            yield table.counter(f"mysql.{name}", rows, "value", unit)
    recorded = set()
    for name, names in mysql_names.GAUGES.items():
        rows = next((series[one] for one in names if one in series), {})
        if rows:
            recorded.add(name)
            yield table.gauge(f"mysql.{name}", rows["tick"], rows["value"])
    # before MySQL 8.0.30, and in MariaDB, the capacity is only a variable
    capacity = redo_log.capacity((table.run.server or {}).get("variables") or {})
    if "redo_capacity" not in recorded and capacity is not None:
        yield "mysql.redo_capacity", table.grid.seconds, np.full(len(table.grid.seconds), capacity)
    for last, first in mysql_names.AGES if "checkpoint_age" not in recorded else ():
        if last in series and first in series:
            ends = [table.grid.placed(series[one]["tick"], series[one]["value"]) for one in (last, first)]
            yield "mysql.checkpoint_age", table.grid.seconds, ends[0] - ends[1]
            return


def histogram(table: Table) -> Iterator[SeriesData]:
    """`count` and `sum` (seconds) of an eBPF histogram's entities."""
    keys = EBPF_HISTOGRAMS[table.probe]
    units = {"sum": NANOSECOND, "count": 1.0}
    fields, roles = table.fields(units), table.roles() if keys[0] == "role" else None

    # summing the buckets of every row takes longer than the rest of the query
    sources = {"sum": "sum_ns::DOUBLE", "count": "list_sum(buckets)::DOUBLE"}
    values = listed({name: sources[name] for name in fields})
    rows = table.rows(f"SELECT tick, {_joined(keys)} AS entity, {values} FROM {_of_roles(roles)}")
    yield from _entities(table, rows, {name: units[name] for name in fields})


def counts(table: Table) -> Iterator[SeriesData]:
    """Counters of an eBPF table's entities."""
    keys, fields = EBPF_COUNTERS[table.probe]
    rows = table.rows(f"SELECT tick, {_joined(keys)} AS entity, {listed(doubles(fields))} FROM t")
    yield from _entities(table, rows, dict.fromkeys(fields, 1.0))


def _joined(keys: Sequence[str]) -> str:
    return " || '.' || ".join(keys)


def _entities(table: Table, rows: Columns, units: dict[str, float]) -> Iterator[SeriesData]:
    """Series of entities; before its first event an entity has no rows and counted 0."""
    for entity, of_role in by_entity(rows, "entity"):
        for name, unit in units.items():
            readings = table.grid.placed(of_role["tick"], of_role[name])
            if len(of_role["tick"]):
                readings[table.grid.ticks < of_role["tick"][0]] = 0.0
            key = f"{table.probe.removeprefix('ebpf_')}.{entity}.{name}"
            yield key, table.grid.middle, table.grid.rates(table.grid.ticks, readings, unit)
