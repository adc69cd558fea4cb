"""Converts the intervals of `sadf -j` to the recorder's tables, in their columns and units.

sadf prints counters as rates per second with two decimals, and gauges as read (sar(1), sadf(1)). sar has no
separate reads and writes of a disk, no softirqs by kind, and no processes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from loadprint.importing.imported import GAUGES, Entity

USER_HZ = 100.0  # unit of the rebuilt counters; sar prints only shares of time
PRINTED = 0.01  # sadf prints two decimals

Fields = Mapping[str, tuple[list[str], float]]
Seen = dict[Entity, dict[str, float]]


def _fields(text: str) -> Fields:
    """Read words `column=key+key*factor`; without a key it is the column's name, and the factor is 1."""
    fields = {}
    for word in text.split():
        column, _, formula = word.partition("=")
        keys, _, factor = formula.partition("*")
        fields[column] = ((keys or column).split("+"), float(factor or 1))
    return fields


# Percentages of a CPU's time. User time includes guest time in /proc/stat (proc(5)), but not in sar.
CPU = _fields(
    "user=usr+guest nice=nice+gnice system=sys idle iowait irq softirq=soft steal guest guest_nice=gnice"
)
# `sar -u` without ALL: guest time is in user, interrupts are in system
CPU_BRIEF = _fields("user nice system idle iowait steal")
CPU_HOST = _fields("procs_running=runq-sz procs_blocked=blocked ctxt=cswch processes=proc")
METRICS = ("memory", "vmstat", "tcp")  # tables with one row for each column
# table, path in an interval, key of the entity or the entity → columns; 1 kB of sadf is 1024 bytes, 2 sectors
_SECTIONS: tuple[tuple[str, str, str | Entity, str], ...] = (
    (
        "disk",
        "disk",
        "disk-device",
        "read_sectors=rkB*2 write_sectors=wkB*2 discard_sectors=dkB*2 io_ms=util-percent*10"
        " weighted_ms=aqu-sz*1000 transfers=tps",
    ),
    (
        "nic",
        "network/net-dev",
        "iface",
        "rx_bytes=rxkB*1024 rx_packets=rxpck rx_compressed=rxcmp rx_multicast=rxmcst"
        " tx_bytes=txkB*1024 tx_packets=txpck tx_compressed=txcmp",
    ),
    (
        "nic",
        "network/net-edev",
        "iface",
        "rx_errors=rxerr rx_drops=rxdrop rx_fifo=rxfifo rx_frame=rxfram"
        " tx_errors=txerr tx_drops=txdrop tx_fifo=txfifo tx_collisions=coll tx_carrier=txcarr",
    ),
    *(
        ("pressure", f"psi/psi-{key}", (resource, severity), f"total_us={severity}_avg*10000")
        for key, resource in (("cpu", "cpu"), ("io", "io"), ("mem", "memory"), ("irq", "irq"))
        for severity in ("some", "full")
    ),
    (
        "memory",
        "memory",
        (),
        "MemFree=memfree MemAvailable=avail Buffers=buffers Cached=cached Committed_AS=commit"
        " Active=active Inactive=inactive Dirty=dirty AnonPages=anonpg Slab=slab KernelStack=kstack"
        " PageTables=pgtbl VmallocUsed=vmused SwapFree=swpfree SwapCached=swpcad",
    ),
    (
        "vmstat",
        "paging",
        (),
        "pgpgin pgpgout pgfault=fault pgmajfault=majflt pgfree pgscan_kswapd=pgscank pgscan_direct=pgscand",
    ),
    ("vmstat", "swap-pages", (), "pswpin pswpout"),
    (
        "tcp",
        "network/net-tcp",
        (),
        "Tcp.ActiveOpens=active Tcp.PassiveOpens=passive Tcp.InSegs=iseg Tcp.OutSegs=oseg",
    ),
    (
        "tcp",
        "network/net-etcp",
        (),
        "Tcp.AttemptFails=atmptf Tcp.EstabResets=estres Tcp.RetransSegs=retrans Tcp.InErrs=isegerr"
        " Tcp.OutRsts=orsts",
    ),
)
SECTIONS = [(table, path, entity, _fields(fields)) for table, path, entity, fields in _SECTIONS]
FACTORS = {
    (table, column): factor for table, _, _, fields in SECTIONS for column, (_, factor) in fields.items()
}


class Integral:
    """Rebuilds one table's counters from rates; every entity starts at zero where it first appears."""

    def __init__(self, table: str) -> None:
        self.gauges = ("value",) if table == "memory" else GAUGES
        self.rows: dict[tuple[Entity, int], dict[str, float]] = {}
        self.totals: dict[Entity, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, begin: int, end: int, seconds: float, seen: Seen) -> None:
        """Add the interval from tick `begin` to tick `end`: each counter grows by rate × `seconds`."""
        for entity, readings in seen.items():
            totals = self.totals[entity]
            counters = [column for column in readings if column not in self.gauges]
            # a new entity, or one that is back after a gap, has no row at the begin
            self.rows.setdefault((entity, begin), {column: totals[column] for column in counters})
            for column in counters:
                totals[column] += readings[column] * seconds
            self.rows[entity, end] = {**readings, **{column: totals[column] for column in counters}}


def tables(interval: Mapping[str, Any]) -> dict[str, Seen]:
    """All readings of one interval by table: rates of counters, and gauges at its end."""
    seen: dict[str, Seen] = {"cpu": _cpu(interval), "interrupts": _interrupts(interval)}
    for table, path, key, fields in SECTIONS:
        for one in _at(interval, path):
            rates = _rates(one, fields)
            rows = seen.setdefault(table, {})
            if table in METRICS:
                rows |= {(metric,): {"value": rate} for metric, rate in rates.items()}
            elif isinstance(key, tuple):
                rows |= {key: rates} if rates else {}
            elif key in one:
                rows.setdefault((str(one[key]),), {}).update(rates)
                if table == "disk" and "await" in one and "tps" in one:
                    # requests waited this long per second: their mean wait × their number
                    rows[str(one[key]),]["transfer_ms"] = _number(one["await"]) * _number(one["tps"])
    return {name: rows for name, rows in seen.items() if rows}


def resolution(table: str, column: str, cpus: int) -> float:
    """Resolution of a mean of this column, in its unit per second: sadf's last digit."""
    if table == "cpu" and column in CPU:
        return PRINTED / 100 * USER_HZ * cpus
    return PRINTED * FACTORS.get((table, column), 1.0)


def _cpu(interval: Mapping[str, Any]) -> Seen:
    shares = {
        str(one["cpu"]): _rates(one, CPU if "usr" in one else CPU_BRIEF)
        for one in _at(interval, "cpu-load")
        if "cpu" in one
    }
    # sadf prints only zeros for an offline CPU
    shares = {name: shared for name, shared in shares.items() if any(shared.values())}
    cores = sum(name != "all" for name in shares) or 1
    seen: Seen = {}
    for name, shared in shares.items():
        ticks = USER_HZ / 100 * (cores if name == "all" else 1)
        seen[name,] = {column: share * ticks for column, share in shared.items()}
    host: dict[str, float] = {}
    for path in ("process-and-context-switch", "queue"):
        for one in _at(interval, path):
            host |= _rates(one, CPU_HOST)
    total = next((one for one in _at(interval, "interrupts") if one.get("intr") == "sum"), {})
    host |= _rates(total, _fields("intr=value" if "value" in total else "intr=all"))
    if host:
        seen.setdefault(("all",), {}).update(host)
    return seen


def _interrupts(interval: Mapping[str, Any]) -> Seen:
    """Rows (line, all) and (all, CPU), as the recorder writes."""
    seen: Seen = {}
    for one in _at(interval, "interrupts"):
        line = "all" if one.get("intr") == "sum" else str(one.get("intr"))
        for key, value in one.items():
            cpus = "all" if key in ("all", "value") else key.removeprefix("CPU")
            wanted = key.startswith("CPU") and line == "all"
            if (wanted or cpus == "all") and isinstance(value, int | float):
                seen[line, cpus] = {"count": float(value)}
    return seen


def _rates(values: Mapping[str, Any], fields: Fields) -> dict[str, float]:
    """Readings by column, of columns whose first key is a number."""
    return {
        column: sum(_number(values.get(key)) for key in keys) * factor
        for column, (keys, factor) in fields.items()
        if isinstance(values.get(keys[0]), int | float)
    }


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _at(interval: Mapping[str, Any], path: str) -> Iterable[Mapping[str, Any]]:
    """The objects at a path: of a list, or the only one."""
    value: Any = interval
    for name in path.split("/"):
        value = value.get(name) if isinstance(value, dict) else None
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
