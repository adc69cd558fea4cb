"""Computes a fleet's rows as Ibis expressions, for DuckDB or a distributed engine.

Each counter's increase between the first and the last tick of a run's window is computed from the
raw tables, summed over CPUs and processes first, as `sources.py` does for one run. The formulas are
those of `derived.py` and `costs.py`, applied to columns. Values are selected by argmin and argmax
of the tick, because parts of a distributed table have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import ibis
import ibis.expr.types as ir

from loadprint.metrics.derived import Metric
from loadprint.reading.columns import CPU_FIELDS, DISK_UNITS, NIC_FIELDS

DISK, NIC = "data", "main"  # entity names in the quantities, for any device name
PROBES = ("cpu", "disk", "nic", "process")
HOST_FIELDS = ("ctxt", "intr")
PROCESS_FIELDS = ("utime", "stime")
SET_KEYS = ("run", "host_role", "cpu")
SIDES = ("server", "load")


@dataclass(frozen=True)
class Tables:
    """The data set as Ibis tables, without probes that no run has."""

    runs: ir.Table
    sets: ir.Table
    ticks: ir.Table
    probes: Mapping[str, ir.Table]


def number(column: ir.Value) -> ir.Value:
    """Cast a column to double, the type of all arithmetic."""
    return column.cast("float64")


def quantities(tables: Tables, metrics: Sequence[Metric]) -> ir.Table:
    """Return one row per run: its facts, and the quantities that metrics need as `column(name)`.

    Other quantities are not read.
    """
    needed = {name for metric in metrics for name in metric.needs}
    parts, stamps = [_generator(tables.runs)], _stamps(tables)
    for probe, fields, query in (
        ("cpu", _fields(needed, SIDES, "cpu.{}.", CPU_FIELDS), _cpu),
        ("cpu", _fields(needed, ("host",), "{}.", HOST_FIELDS), _host),
        ("disk", _fields(needed, (DISK,), "disk.{}.", DISK_UNITS), _disk),
        ("nic", _fields(needed, (NIC,), "nic.{}.", NIC_FIELDS), _nic),
        ("process", _fields(needed, SIDES, "process.{}.", PROCESS_FIELDS), _process),
    ):
        if probe in tables.probes and fields:
            parts.append(
                query(tables, _in_window(tables.probes[probe], stamps.filter(stamps.probe == probe)), fields)
            )
    return reduce(lambda left, right: left.left_join(right, "run").drop("run_right"), parts, tables.runs)


def _fields(needed: set[str], names: Sequence[str], prefix: str, fields: Iterable[str]) -> tuple[str, ...]:
    """Return the fields that metrics need; of processes, all fields or none."""
    matching = {name for each in names for name in needed if name.startswith(prefix.format(each))}
    if prefix.startswith("process"):
        return tuple(fields) if matching else ()
    return tuple(field for field in fields if any(name.endswith(f".{field}") for name in matching))


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


def _increase(name: str) -> ir.Value:
    """Return the increase of a counter from the first tick to the last, or null if it was reset."""
    increase = ibis._[name].argmax(ibis._.tick) - ibis._[name].argmin(ibis._.tick)
    return ibis.ifelse(increase >= 0, increase, ibis.null("float64"))


def _ends(rows: ir.Table, keys: Sequence[str], fields: Sequence[str]) -> ir.Table:
    """Return the increase of each field and the seconds between the reads, by `keys`."""
    return rows.group_by(*keys).agg(
        seconds=(ibis._.middle.argmax(ibis._.tick) - ibis._.middle.argmin(ibis._.tick)) / 1e9,
        user_hz=ibis._.user_hz.max(),
        **{name: _increase(name) for name in fields},
    )


def _summed(rows: ir.Table, keys: Sequence[str], fields: Sequence[str]) -> ir.Table:
    """Add up fields over CPUs within each tick."""
    return rows.group_by(*keys, "tick").agg(
        middle=ibis._.middle.max(),
        user_hz=ibis._.user_hz.max(),
        **{name: number(ibis._[name]).sum() for name in fields},
    )


def _wide(
    ends: ir.Table,
    key: str,
    names: Sequence[str],
    quantity: Callable[[str, str], str],
    values: Mapping[str, ir.Value],
) -> ir.Table:
    """Turn a row for each of `names` in column `key` into columns of one row a run."""
    return ends.group_by("run").agg(
        **{
            column(quantity(name, field)): value.max(where=ends[key] == name)
            for name in names
            for field, value in values.items()
        }
    )


def _cpu(tables: Tables, rows: ir.Table, fields: Sequence[str]) -> ir.Table:
    chosen = rows.inner_join(tables.sets.select(*SET_KEYS, "side"), SET_KEYS)
    ends = _ends(_summed(chosen, ("run", "side"), fields), ("run", "side"), fields)
    values = {name: ends[name] / ends.user_hz / ends.seconds for name in fields}
    return _wide(ends, "side", SIDES, lambda side, field: f"cpu.{side}.{field}", values)


def _host(tables: Tables, rows: ir.Table, fields: Sequence[str]) -> ir.Table:
    del tables
    return _single(rows.filter((rows.cpu == "all") & _of_server(rows)), "host", dict.fromkeys(fields, 1.0))


def _disk(tables: Tables, rows: ir.Table, fields: Sequence[str]) -> ir.Table:
    del tables
    units = {name: DISK_UNITS[name] for name in fields}
    return _single(rows.filter((rows.device == rows.data_disk) & _of_server(rows)), f"disk.{DISK}", units)


def _nic(tables: Tables, rows: ir.Table, fields: Sequence[str]) -> ir.Table:
    del tables
    chosen = rows.filter((rows.interface == rows.interface_of_run) & _of_server(rows))
    return _single(chosen, f"nic.{NIC}", dict.fromkeys(fields, 1.0))


def _of_server(rows: ir.Table) -> ir.BooleanValue:
    return rows.host_role == "server"


def _single(rows: ir.Table, prefix: str, units: Mapping[str, float]) -> ir.Table:
    """Return the rates of an entity that each run has once."""
    ends = _ends(rows.mutate(**{name: number(rows[name]) for name in units}), ("run",), tuple(units))
    rates = {column(f"{prefix}.{name}"): ends[name] * unit / ends.seconds for name, unit in units.items()}
    return ends.select("run", **rates)


def _process(tables: Tables, rows: ir.Table, fields: Sequence[str]) -> ir.Table:
    """Return the CPU time of each role's processes, over the seconds in which the role had any."""
    del tables
    rows = rows.mutate(
        start=number(rows.starttime).fill_null(0.0), **{name: number(rows[name]) for name in fields}
    )
    by_process = _ends(rows, ("run", "role", "pid", "start"), fields)
    sums = by_process.group_by("run", "role").agg(
        user_hz=by_process.user_hz.max(), **{name: by_process[name].sum() for name in fields}
    )
    spans = rows.group_by("run", "role").agg(seconds=(rows.middle.max() - rows.middle.min()) / 1e9)
    ends = sums.inner_join(spans, ["run", "role"])
    values = {name: ends[name] / ends.user_hz / ends.seconds for name in fields}
    values["cpu"] = sum(values.values())
    return _wide(ends, "role", SIDES, lambda role, field: f"process.{role}.{field}", values)
