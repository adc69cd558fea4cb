"""Computes a fleet's rows as Ibis expressions, for DuckDB or a distributed engine.

Each counter's increase between the first and the last tick of a run's window is computed from the
raw tables, summed over CPUs and processes first, as `sources.py` does for one run. The formulas are
those of `derived.py` and `costs.py`, applied to columns. Values are selected by argmin and argmax
of the tick, because parts of a distributed table have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import ibis
import ibis.expr.types as ir

from loadprint.commands.fleet.dataset import RUNS, SETS, Dataset, require_version
from loadprint.errors import InputError
from loadprint.metrics.derived import Metric
from loadprint.reading.columns import CPU_FIELDS, DISK_UNITS, NIC_FIELDS

CPUS = "cores"  # the number of CPUs of a set, which is no column
DISK, NIC = "data", "main"  # entity names in the quantities, for any device name
PROBES = ("cpu", "disk", "nic", "process")
SET_KEYS = ("run", "host_role", "cpu")
SIDES = ("server", "load")


@dataclass(frozen=True)
class Tables:
    """The data set as Ibis tables, without probes that no run has."""

    runs: ir.Table
    sets: ir.Table
    ticks: ir.Table
    probes: Mapping[str, ir.Table]


def on_duckdb(dataset: Dataset) -> Tables:
    """Open a data set with an embedded DuckDB; docs/fleet.md has another engine. Raises InputError."""
    require_version(dataset)
    existing = dataset.tables()
    for needed in (RUNS, SETS, "ticks"):
        if needed not in existing:
            raise InputError(dataset.url, f"has no table `{needed}`", "export the runs again")
    backend = ibis.duckdb.connect()
    if "file" not in dataset.filesystem.protocol:
        backend.con.register_filesystem(dataset.filesystem)

    def table(name: str) -> ir.Table:
        # partitions are text, even that of a campaign named 2026
        return backend.read_parquet(
            dataset.glob(name),
            table_name=name,
            hive_partitioning=True,
            hive_types_autocast=False,
            union_by_name=True,
        )

    probes = {probe: table(probe) for probe in PROBES if probe in existing}
    return Tables(table(RUNS), table(SETS), table("ticks"), probes)


class Source(NamedTuple):
    """Quantities `{prefix}{name}.{field}`: the rows of a probe's table that count, with a column `name`.

    `units` has a factor for each field; None divides ticks by the clock's frequency.
    """

    probe: str
    prefix: str
    names: Sequence[str]
    units: Mapping[str, float | None]
    rows: Callable[[ir.Table, ir.Table], ir.Table]


def _of_server(name: str, entity: str, value: ir.Value | str) -> Callable[[ir.Table, ir.Table], ir.Table]:
    """Return the rows of the entity that each run has once, on the server's host."""

    def rows(table: ir.Table, sets: ir.Table) -> ir.Table:
        del sets
        return table.filter((ibis._[entity] == value) & (ibis._.host_role == "server")).mutate(
            name=ibis.literal(name)
        )

    return rows


def _of_cpu_sets(table: ir.Table, sets: ir.Table) -> ir.Table:
    return table.inner_join(sets.select(*SET_KEYS, name=sets.side), SET_KEYS)


def _of_roles(table: ir.Table, sets: ir.Table) -> ir.Table:
    del sets
    return table.mutate(name=table.role, start=number(table.starttime).fill_null(0.0))


SOURCES = (
    Source("cpu", "cpu.", SIDES, dict.fromkeys((*CPU_FIELDS, CPUS)), _of_cpu_sets),
    Source("cpu", "", ("host",), {"ctxt": 1.0, "intr": 1.0}, _of_server("host", "cpu", "all")),
    Source("disk", "disk.", (DISK,), DISK_UNITS, _of_server(DISK, "device", ibis._.data_disk)),
    Source(
        "nic",
        "nic.",
        (NIC,),
        dict.fromkeys(NIC_FIELDS, 1.0),
        _of_server(NIC, "interface", ibis._.interface_of_run),
    ),
    Source("process", "process.", SIDES, {"utime": None, "stime": None}, _of_roles),
)


def number(column: ir.Value) -> ir.Value:
    """Cast a column to double, the type of all arithmetic."""
    return column.cast("float64")


def quantities(tables: Tables, metrics: Sequence[Metric]) -> ir.Table:
    """Return one row per run: its facts, and the quantities that metrics need as `column(name)`.

    Other quantities are not read.
    """
    needed = {name for metric in metrics for name in metric.needs}
    parts, stamps = [_generator(tables.runs)], _stamps(tables)
    for source in SOURCES:
        matching = {
            name.rpartition(".")[2]
            for name in needed
            if name.startswith(tuple(f"{source.prefix}{each}." for each in source.names))
        }
        fields = [field for field in source.units if field in matching]
        if source.probe == "process" and matching:
            fields = [*source.units]
        if source.probe in tables.probes and fields:
            rows = _in_window(tables.probes[source.probe], stamps.filter(stamps.probe == source.probe))
            parts.append(_rates(source, source.rows(rows, tables.sets), fields))
    return reduce(lambda left, right: left.left_join(right, "run").drop("run_right"), parts, tables.runs)


def column(quantity: str) -> str:
    """Return the column name of a quantity, without dots, which are special in SQL."""
    return quantity.replace(".", "__")


def available(wide: ir.Table, metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics whose inputs are columns."""
    return [metric for metric in metrics if all(column(name) in wide.columns for name in metric.needs)]


def with_metrics(wide: ir.Table, metrics: Sequence[Metric]) -> ir.Table:
    """Add a column for each metric; a division by zero gives null."""
    columns = {}
    for metric in metrics:
        value = number(metric.compute(*(wide[column(name)] for name in metric.needs)))
        columns[metric.key] = ibis.ifelse(value.isnan() | value.isinf(), ibis.null("float64"), value)
    return wide.mutate(**columns)


def _stamps(tables: Tables) -> ir.Table:
    """Return the ticks in a run's window at which a probe was read, with the read's middle in ns."""
    runs = tables.runs.select(
        "run", "first_tick", "last_tick", "user_hz", "data_disk", interface_of_run=tables.runs.interface
    )
    ticks = tables.ticks.filter((tables.ticks.status == "ok") & tables.ticks.probe.isin(PROBES))
    ticks = ticks.select(
        "run",
        "host_role",
        "probe",
        tick=ticks.tick.cast("int64"),
        middle=(number(ticks.start_ns) + number(ticks.end_ns)) / 2,
    )
    stamps = ticks.inner_join(runs, "run")
    return stamps.filter((stamps.tick >= stamps.first_tick) & (stamps.tick <= stamps.last_tick))


def _in_window(table: ir.Table, stamps: ir.Table) -> ir.Table:
    """Return the rows of a probe's table at these ticks."""
    table = table.mutate(tick=table.tick.cast("int64"))
    joined = table.inner_join(stamps, ["run", "host_role", "tick"], rname="{name}_stamp")
    return joined.drop(*(name for name in joined.columns if name.endswith("_stamp")))


def _generator(runs: ir.Table) -> ir.Table:
    rates = {
        column(f"load.{name}"): number(runs[name]) / runs.seconds
        for name in ("events", "queries", "commits", "errors")
    }
    latencies = {
        column(f"latency.{name.removeprefix('latency_').removesuffix('_s')}"): number(runs[name])
        for name in runs.columns
        if name.startswith("latency_")
    }
    return runs.select("run", **rates, **latencies)


def _rates(source: Source, rows: ir.Table, fields: Sequence[str]) -> ir.Table:
    """Return a row for each run: increase per second of fields, added up over CPUs and processes."""
    keys = ("run", "name")
    ones = {CPUS: ibis.literal(1.0)} if CPUS in fields else {}
    rows = rows.mutate(**{field: number(rows[field]) for field in fields if field not in ones}, **ones)
    sums = {field: ibis._[field].sum() for field in fields}
    if source.probe == "process":
        # the CPU time of each role's processes, over the seconds in which the role had any
        spans = rows.group_by(*keys).agg(seconds=(ibis._.middle.max() - ibis._.middle.min()) / 1e9)
        ends = _ends(rows, (*keys, "pid", "start"), fields).group_by(*keys)
        ends = ends.agg(user_hz=ibis._.user_hz.max(), **sums).inner_join(spans, keys)
    else:
        ticks = rows.group_by(*keys, "tick")
        ticks = ticks.agg(middle=ibis._.middle.max(), user_hz=ibis._.user_hz.max(), **sums)
        ends = _ends(ticks, keys, fields)
    values: dict[str, ir.Value] = {}
    for field in fields:
        if field == CPUS:
            values[field] = ends[field]
            continue
        unit = source.units[field]
        increase = ends[field] / ends.user_hz if unit is None else ends[field] * unit
        values[field] = increase / ends.seconds
    if source.probe == "process":
        values["cpu"] = sum(values.values())
    return ends.group_by("run").agg(
        **{
            column(f"{source.prefix}{name}.{field}"): value.max(where=ends["name"] == name)
            for name in source.names
            for field, value in values.items()
        }
    )


def _ends(rows: ir.Table, keys: Sequence[str], fields: Sequence[str]) -> ir.Table:
    """Return the increase of each field and the seconds between the reads, by `keys`."""

    def increase(name: str) -> ir.Value:
        if name == CPUS:
            return ibis._[name].max()
        return ibis._[name].argmax(ibis._.tick) - ibis._[name].argmin(ibis._.tick)

    grown = {name: increase(name) for name in fields}
    # a counter that was reset has no increase
    grown = {name: ibis.ifelse(value >= 0, value, ibis.null("float64")) for name, value in grown.items()}
    return rows.group_by(*keys).agg(seconds=increase("middle") / 1e9, user_hz=ibis._.user_hz.max(), **grown)
