"""Reads series of the host: CPU sets, interrupts, disks, interfaces, TCP, pressure, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from loadprint.reading import columns
from loadprint.reading.columns import MICROSECOND
from loadprint.reading.cpusets import at_once, host_cpus
from loadprint.reading.queries import among, by_entity, doubles, listed, metrics, quote, together
from loadprint.series.probe_table import SeriesData, Table, is_requested

KIB = 1024.0  # kB in /proc/meminfo
MEMORY = ("Dirty", "Writeback", "MemAvailable")


def cpu(table: Table) -> Iterator[SeriesData]:
    """CPU time of a set, in cores; a hole where one of its CPUs went online or offline."""
    parts = []
    for some in at_once(table.cpus, len(table.grid.ticks)):
        query = f"SELECT tick, cpu, {listed(doubles(columns.CPU_FIELDS))} FROM t WHERE cpu IN {among(some)}"
        read = table.rows(query)
        if not len(read["tick"]):
            return
        ticks, readings, _ = together(read, "cpu")
        rows = {"tick": ticks, **readings}
        parts.append({name: table.counter("", rows, name, 1 / table.hz) for name in columns.CPU_FIELDS})
    for name in columns.CPU_FIELDS:
        rates = np.sum([part[name][2] for part in parts], axis=0)
        yield f"cpu.{table.side}.{name}", table.grid.middle, rates


def host(table: Table) -> Iterator[SeriesData]:
    """Context switches, interrupts and forks of the whole host."""
    names = [name for name in columns.CPU_HOST_FIELDS if is_requested(f"host.{name}", table.names)]
    rows = table.rows(f"SELECT tick, {listed(doubles(names))} FROM t WHERE cpu = 'all'")
    for name in names:
        yield table.counter(f"host.{name}", rows, name, 1.0)


def interrupts(table: Table) -> Iterator[SeriesData]:
    """Interrupts or softirqs on a set of CPUs; the recorder's sum of the set if it recorded one."""
    key = "line" if table.probe == "interrupts" else "kind"
    whole = table.cpus is None or tuple(table.cpus) == host_cpus(table.run, table.role)
    total = "all" if whole else table.side
    wanted = f"cpus IN {among([total, *(str(cpu) for cpu in table.cpus or ())])}"
    if whole:
        wanted = f"({wanted} OR regexp_matches(cpus, {quote(columns.NUMBER)}))"
    rows = table.rows(
        f'SELECT tick, cpus = {quote(total)} AS is_sum, sum("count"::DOUBLE) AS "count" FROM t'
        f" WHERE {key} = 'all' AND {wanted} GROUP BY ALL"
    )
    if rows["is_sum"].any():
        rows = {name: values[rows["is_sum"].astype(bool)] for name, values in rows.items()}
    yield table.counter(f"{table.probe}.{table.side}", rows, "count", 1.0)


def disk(table: Table) -> Iterator[SeriesData]:
    """Block devices, in bytes and seconds."""
    units = columns.DISK_UNITS
    if "transfers" in table.store.columns(table.path):
        units = {**units, **columns.TRANSFER_UNITS}
    yield from _fixed(table, "device", units, str)


def nic(table: Table) -> Iterator[SeriesData]:
    """Interfaces; the veth pair of a run is always named `veth`."""
    yield from _fixed(table, "interface", dict.fromkeys(columns.NIC_FIELDS, 1.0), columns.stable_name)


def _fixed(
    table: Table, key: str, units: dict[str, float], name_of: Callable[[str], str]
) -> Iterator[SeriesData]:
    rows = table.rows(f"SELECT tick, {key}, {listed(doubles(units))} FROM t")
    for entity, of_entity in by_entity(rows, key):
        if all(np.nanmin(of_entity[n], initial=np.inf) >= np.nanmax(of_entity[n], initial=0) for n in units):
            continue  # idle: a host has a dozen such devices
        for name, unit in units.items():
            yield table.counter(f"{table.probe}.{name_of(entity)}.{name}", of_entity, name, unit)


def tcp(table: Table) -> Iterator[SeriesData]:
    """TCP counters of the host."""
    rows = table.rows(metrics(columns.TCP_METRICS))
    for metric, of_metric in by_entity(rows, "metric"):
        yield table.counter(f"tcp.{metric.removeprefix('Tcp.')}", of_metric, "value", 1.0)


def pressure(table: Table) -> Iterator[SeriesData]:
    """Stalled share of time, 1 = always."""
    rows = table.rows(columns.PRESSURE)
    for kind, of_kind in by_entity(rows, "kind"):
        yield table.counter(f"pressure.{kind}", of_kind, "total", MICROSECOND)


def memory(table: Table) -> Iterator[SeriesData]:
    """Dirty, written-back and available memory of the host, in bytes."""
    rows = table.rows(metrics(MEMORY))
    for metric, of_metric in by_entity(rows, "metric"):
        yield table.gauge(f"memory.{metric}", of_metric["tick"], of_metric["value"] * KIB)
