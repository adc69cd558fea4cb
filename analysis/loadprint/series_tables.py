"""One reader per probe for the series: queries its whole table and yields key, seconds, values.

Sums over CPUs, processes and threads are taken in the query, before any difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import ibis
import ibis.expr.types as ir
import numpy as np

from loadprint import sources, sources_mysql
from loadprint.axis import Floats, Grid
from loadprint.queries import Columns, Query, Store, number
from loadprint.recording import Run
from loadprint.sources import MICROSECOND, MILLISECOND, NANOSECOND

Found = tuple[str, Floats, Floats]
KIB = 1024.0  # what /proc/meminfo calls kB
MEMORY = ("Dirty", "Writeback", "MemAvailable")
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


@dataclass(frozen=True)
class Table:
    """One probe's table of one recorder, with its grid and the CPU set that stands for a side."""

    run: Run
    role: str
    store: Store
    path: Path
    probe: str
    grid: Grid
    side: str
    cpus: Sequence[int] | None
    hz: float

    def rows(self, query: Query) -> Columns:
        """Rows of the table in the order of ticks."""
        return self.store.fetch(self.path, lambda t: query(t).order_by("tick"))

    def counter(
        self, key: str, rows: Columns, column: str, unit: float, *, may_step_back: bool = False
    ) -> Found:
        """Series of one cumulative column."""
        rates = self.grid.rates(rows["tick"], rows[column], unit, may_step_back=may_step_back)
        return key, self.grid.middle, rates

    def gauge(self, key: str, ticks: Floats, values: Floats) -> Found:
        """Series of a reading as it is, at the time it was read."""
        return key, self.grid.seconds, self.grid.placed(ticks, values)


def probes_of(side: str) -> list[tuple[str, tuple[str, ...], Callable[[Table], Iterator[Found]], bool]]:
    """Probe, the first words of its keys, its reader, and whether it tells CPU sets apart."""
    listed: list[tuple[str, tuple[str, ...], Callable[[Table], Iterator[Found]], bool]] = [
        ("cpu", (f"cpu.{side}",), cpu, True),
        ("cpu", ("host",), host, False),
        ("interrupts", ("interrupts",), interrupts, True),
        ("softirqs", ("softirqs",), interrupts, True),
        ("disk", ("disk",), disk, False),
        ("nic", ("nic",), nic, False),
        ("tcp", ("tcp",), tcp, False),
        ("pressure", ("pressure",), pressure, False),
        ("process", ("process",), process, False),
        ("threads", ("threads",), threads, False),
        ("memory", ("memory",), memory, False),
        ("mysql", ("mysql",), mysql, False),
    ]
    listed += [(probe, (probe.removeprefix("ebpf_"),), histogram, False) for probe in HISTOGRAMS]
    listed += [(probe, (probe.removeprefix("ebpf_"),), counts, False) for probe in COUNTS]
    return listed


def _split(rows: Columns, key: str) -> Iterator[tuple[str, Columns]]:
    """Rows by an entity column, still in the order of ticks; one sort for all entities."""
    names, place = np.unique(rows[key].astype(str), return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(names) + 1))
    for name, begin, end in zip(names.tolist(), ends[:-1], ends[1:], strict=True):
        chosen = order[begin:end]
        yield name, {column: values[chosen] for column, values in rows.items()}


def cpu(table: Table) -> Iterator[Found]:
    """CPU time of a set, in cores; a hole where one of its CPUs came or went."""
    wanted = ["all"] if table.cpus is None else [str(cpu) for cpu in table.cpus]
    sums = {name: number(ibis._[name]).sum() for name in sources.CPU_FIELDS}
    rows = table.rows(
        lambda t: t.filter(t.cpu.isin(wanted)).group_by("tick").agg(seen=number(ibis._.count()), **sums)
    )
    if not len(rows["tick"]):
        return
    alike = rows["seen"] == np.median(rows["seen"])
    rows = {name: values[alike] for name, values in rows.items()}
    for name in sources.CPU_FIELDS:
        back = name in sources.STEPS_BACK
        yield table.counter(f"cpu.{table.side}.{name}", rows, name, 1 / table.hz, may_step_back=back)


def host(table: Table) -> Iterator[Found]:
    """Switches, interrupts and forks of the whole host."""
    names = sources.CPU_HOST_FIELDS
    rows = table.rows(
        lambda t: t.filter(t.cpu == "all").select("tick", **{n: number(ibis._[n]) for n in names})
    )
    for name in names:
        yield table.counter(f"host.{name}", rows, name, 1.0)


def interrupts(table: Table) -> Iterator[Found]:
    """Interrupts or softirqs on a set of CPUs; the recorder's own sum of the set where there is one."""
    key = "line" if table.probe == "interrupts" else "kind"
    wanted = ["all"] if table.cpus is None else [table.side, *(str(cpu) for cpu in table.cpus)]
    rows = table.rows(
        lambda t: (
            t.filter((t[key] == "all") & t.cpus.isin(wanted))
            .group_by("tick", own=t.cpus == table.side)
            .agg(count=number(ibis._["count"]).sum())
        )
    )
    if rows["own"].any():
        rows = {name: values[rows["own"].astype(bool)] for name, values in rows.items()}
    yield table.counter(f"{table.probe}.{table.side}", rows, "count", 1.0)


def disk(table: Table) -> Iterator[Found]:
    """Block devices, in bytes and seconds."""
    units = sources.DISK_UNITS
    if "transfers" in table.store.columns(table.path):
        units = {**units, **sources.TRANSFER_UNITS}
    yield from _fixed(table, "device", units, str)


def nic(table: Table) -> Iterator[Found]:
    """Interfaces; the veth pair of a run is `veth`, whatever its number."""
    yield from _fixed(table, "interface", dict.fromkeys(sources.NIC_FIELDS, 1.0), sources.without_number)


def _fixed(table: Table, key: str, units: dict[str, float], name_of: Callable[[str], str]) -> Iterator[Found]:
    rows = table.rows(lambda t: t.select("tick", key, **{name: number(ibis._[name]) for name in units}))
    for entity, own in _split(rows, key):
        if all(np.nanmin(own[name], initial=np.inf) >= np.nanmax(own[name], initial=0) for name in units):
            continue  # it did nothing at all: a host has a dozen such devices
        for name, unit in units.items():
            yield table.counter(f"{table.probe}.{name_of(entity)}.{name}", own, name, unit)


def tcp(table: Table) -> Iterator[Found]:
    """TCP counters of the host."""
    rows = table.rows(
        lambda t: t.filter(t.metric.isin(sources.TCP_METRICS)).select(
            "tick", "metric", value=number(ibis._.value)
        )
    )
    for metric, own in _split(rows, "metric"):
        yield table.counter(f"tcp.{metric.removeprefix('Tcp.')}", own, "value", 1.0)


def pressure(table: Table) -> Iterator[Found]:
    """Stalled share of time, 1 = all of it."""
    rows = table.rows(
        lambda t: t.select("tick", total=number(t.total_us), kind=t.resource + "_" + t.severity)
    )
    for kind, own in _split(rows, "kind"):
        yield table.counter(f"pressure.{kind}", own, "total", MICROSECOND)


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
    for role, own in _split(rows, "role"):
        own["cpu"] = own["utime"] + own["stime"]
        for name in (*columns, "cpu"):
            unit = 1 / table.hz if name in ("utime", "stime", "cpu") else 1.0
            rates = table.grid.rates_of_rises(own["tick"], own[name], unit)
            yield f"process.{role}.{name}", table.grid.middle, rates
    rows = table.rows(lambda t: t.group_by("role", "tick").agg(rss=number(ibis._.rss).sum()))
    unit = sources.rss_unit(table.run, table.role, table.store, table.path)
    for role, own in _split(rows, "role"):
        yield table.gauge(f"process.{role}.rss", own["tick"], own["rss"] * unit)


def threads(table: Table) -> Iterator[Found]:
    """Switches, CPU time and run-queue delay of each role's threads; `switches` is both kinds together."""
    rows = table.rows(lambda t: _rises(t, tuple(THREADS), ("role", "pid", "tid"), born_at_zero=True))
    for role, own in _split(rows, "role"):
        own["switches"] = own["voluntary_ctxt_switches"] + own["nonvoluntary_ctxt_switches"]
        for name, unit in {**THREADS, "switches": 1.0}.items():
            rates = table.grid.rates_of_rises(own["tick"], own[name], unit)
            yield f"threads.{role}.{name}", table.grid.middle, rates


def memory(table: Table) -> Iterator[Found]:
    """What a benchmark moves of the host's memory, in bytes."""
    rows = table.rows(
        lambda t: t.filter(t.metric.isin(MEMORY)).select("tick", "metric", value=number(ibis._.value))
    )
    for metric, own in _split(rows, "metric"):
        yield table.gauge(f"memory.{metric}", own["tick"], own["value"] * KIB)


def mysql(table: Table) -> Iterator[Found]:
    """Counters and states of the server, the first name of each that this server has."""
    wanted = {
        name for names in (*sources_mysql.COUNTERS.values(), *sources_mysql.GAUGES.values()) for name in names
    }
    wanted |= {name for pair in sources_mysql.AGES for name in pair}
    rows = table.rows(
        lambda t: t.filter(t.metric.isin(sorted(wanted))).select("tick", "metric", value=number(ibis._.value))
    )
    series = dict(_split(rows, "metric"))
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
    for entity, own in _split(rows, "entity"):
        for name, unit in units.items():
            readings = table.grid.placed(own["tick"], own[name])
            if len(own["tick"]):
                readings[table.grid.ticks < own["tick"][0]] = 0.0
            key = f"{table.probe.removeprefix('ebpf_')}.{entity}.{name}"
            yield key, table.grid.middle, table.grid.rates(table.grid.ticks, readings, unit)
