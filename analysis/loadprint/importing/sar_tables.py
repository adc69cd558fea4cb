"""Converts one interval of `sadf -j` to readings of the recorder's tables, in their columns and units.

sar has no separate reads and writes of a disk, no softirqs by kind, and no processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loadprint.importing import sar_fields
from loadprint.importing.readings import Entity, Readings

USER_HZ = 100.0  # unit of the rebuilt counters; sar prints only shares of time
PRINTED = 0.01  # sadf prints two decimals

Seen = dict[Entity, Readings]


def tables(interval: Mapping[str, Any]) -> dict[str, Seen]:
    """All readings of one interval, by table."""
    network = _mapping(interval.get("network"))
    readings = {
        "cpu": _cpu(interval),
        "interrupts": _interrupts(interval),
        "disk": _listed(interval.get("disk"), "disk-device", sar_fields.DISK, _disk_time),
        "nic": _nic(network),
        "pressure": _pressure(_mapping(interval.get("psi"))),
        "memory": _memory(_mapping(interval.get("memory"))),
        "vmstat": {
            **_metrics(interval.get("paging"), sar_fields.PAGING),
            **_metrics(interval.get("swap-pages"), sar_fields.SWAPPING),
        },
        "tcp": {
            **_metrics(network.get("net-tcp"), sar_fields.TCP),
            **_metrics(network.get("net-etcp"), sar_fields.TCP_ERRORS),
        },
    }
    return {name: seen for name, seen in readings.items() if seen}


def resolution(table: str, column: str, cpus: int) -> float:
    """Resolution of a mean of this column, in its unit per second: sadf's last digit."""
    if table == "cpu":
        return PRINTED / 100 * USER_HZ * cpus if column in sar_fields.CPU else PRINTED
    if table == "pressure":
        return PRINTED / 100 * sar_fields.SECOND_US
    if table == "disk" and column == "transfer_ms":
        return PRINTED
    fields = {"disk": sar_fields.DISK, "nic": {**sar_fields.NIC, **sar_fields.NIC_ERRORS}}.get(table, {})
    return PRINTED * fields.get(column, ("", 1.0))[1]


def _cpu(interval: Mapping[str, Any]) -> Seen:
    seen: Seen = {}
    listed = [one for one in _list(interval.get("cpu-load")) if "cpu" in one]
    # sadf prints only zeros for an offline CPU
    shares = {str(one["cpu"]): shared for one in listed if any((shared := _shares(one)).values())}
    cores = sum(name != "all" for name in shares) or 1
    for name, shared in shares.items():
        ticks = USER_HZ / 100 * (cores if name == "all" else 1)
        rates = {column: share * ticks for column, share in shared.items()}
        seen[name,] = Readings(rates)
    work = _mapping(interval.get("process-and-context-switch"))
    queue = _mapping(interval.get("queue"))
    rates = _rates(work, {"ctxt": ("cswch", 1.0), "processes": ("proc", 1.0)})
    total = next((one for one in _list(interval.get("interrupts")) if one.get("intr") == "sum"), {})
    rates |= _rates(total, {"intr": ("value" if "value" in total else "all", 1.0)})
    gauges = _rates(queue, {"procs_running": ("runq-sz", 1.0), "procs_blocked": ("blocked", 1.0)})
    if rates or gauges:
        host = seen.setdefault(("all",), Readings())
        host.rates |= rates
        host.gauges |= gauges
    return seen


def _shares(one: Mapping[str, Any]) -> dict[str, float]:
    """Percentages by column."""
    names = sar_fields.CPU if "usr" in one else sar_fields.CPU_BRIEF
    return {
        column: sum(_number(one.get(key)) for key in keys) for column, keys in names.items() if keys[0] in one
    }


def _interrupts(interval: Mapping[str, Any]) -> Seen:
    """Rows (line, all) and (all, CPU), as the recorder writes."""
    seen: Seen = {}
    for one in _list(interval.get("interrupts")):
        line = "all" if one.get("intr") == "sum" else str(one.get("intr"))
        for key, value in one.items():
            cpus = "all" if key in ("all", "value") else key.removeprefix("CPU")
            wanted = key.startswith("CPU") and line == "all"
            if (wanted or cpus == "all") and isinstance(value, int | float):
                seen[line, cpus] = Readings({"count": float(value)})
    return seen


def _disk_time(one: Mapping[str, Any]) -> dict[str, float]:
    """Milliseconds that requests waited, per second: their mean wait × their number."""
    if "await" in one and "tps" in one:
        return {"transfer_ms": _number(one["await"]) * _number(one["tps"])}
    return {}


def _nic(network: Mapping[str, Any]) -> Seen:
    seen = _listed(network.get("net-dev"), "iface", sar_fields.NIC)
    for entity, errors in _listed(network.get("net-edev"), "iface", sar_fields.NIC_ERRORS).items():
        seen.setdefault(entity, Readings()).rates |= errors.rates
    return seen


def _pressure(psi: Mapping[str, Any]) -> Seen:
    seen: Seen = {}
    for key, resource in sar_fields.PRESSURE.items():
        values = _mapping(psi.get(key))
        for severity in ("some", "full"):
            rates = _rates(values, {"total_us": (f"{severity}_avg", sar_fields.SECOND_US / 100)})
            if rates:
                seen[resource, severity] = Readings(rates)
    return seen


def _memory(values: Mapping[str, Any]) -> Seen:
    return {
        (metric,): Readings(gauges={"value": float(values[key])})
        for metric, key in sar_fields.MEMORY.items()
        if isinstance(values.get(key), int | float)
    }


def _metrics(values: Any, fields: sar_fields.Fields) -> Seen:
    rates = _rates(_mapping(values), fields)
    return {(metric,): Readings({"value": rate}) for metric, rate in rates.items()}


def _listed(values: Any, key: str, fields: sar_fields.Fields, more: Any = None) -> Seen:
    return {
        (str(one[key]),): Readings(_rates(one, fields) | (more(one) if more else {}))
        for one in _list(values)
        if key in one
    }


def _rates(values: Mapping[str, Any], fields: sar_fields.Fields) -> dict[str, float]:
    return {
        column: float(values[key]) * factor
        for column, (key, factor) in fields.items()
        if isinstance(values.get(key), int | float)
    }


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())
