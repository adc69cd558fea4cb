"""Which rows a comparison has: throughput, CPU, disk, network, other, costs.

Sections and order are those of the published table that this one is read beside. Every row is built; which
of them a view shows is decided in views.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from loadprint.metrics import (
    costs,
    derived,
    derived_cpu,
    derived_devices,
    derived_ebpf,
    derived_hardware,
    derived_mysql,
    devices,
    generated,
)
from loadprint.metrics.devices import Device
from loadprint.metrics.gather import Measured
from loadprint.reading import cpusets
from loadprint.tables.ceilings import Ceilings
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import Group, Row, Versus

WORKLOAD, CPU, DISK, NETWORK = "WORKLOAD", "CPU METRICS", "DISK METRICS", "NETWORK METRICS"
OTHER, COSTS = "OTHER METRICS", "COSTS"
OF_THE_SET = ("interrupts.server", "softirqs.server")  # counted on the server's CPUs, whatever runs there
Sides = Sequence[Sequence[Measured]]


def groups(builder: RowBuilder, ceilings: Ceilings) -> list[Group]:
    """All groups of a comparison; costs of a unit of work that no side counts are left out."""
    rows = Rows(builder, ceilings)
    sides = [column.runs for column in builder.columns]
    shown_disks, shown_nics = devices.disks(sides), devices.interfaces(sides)
    return [
        *_throughput(rows, sides),
        *_cpu(rows, sides),
        *_disks(rows, sides, shown_disks),
        *(_nic(rows, sides, device) for device in shown_nics),
        *_other(rows, sides),
        *_costs(rows, sides, shown_disks, shown_nics),
    ]


class Rows:
    """Builds rows with their share of what was measured to be possible."""

    def __init__(self, builder: RowBuilder, ceilings: Ceilings) -> None:
        self.builder, self.ceilings = builder, ceilings
        self.cpus = _set_of([column.runs for column in builder.columns], "server")

    def of(self, metrics: Iterable[derived.Metric]) -> tuple[Row, ...]:
        """Rows of which every side reads the same quantities."""
        return tuple(self.aligned(metric, [metric] * len(self.builder.columns)) for metric in metrics)

    def aligned(self, metric: derived.Metric, per_side: Sequence[derived.Metric | None]) -> Row:
        """Row whose sides may read different devices."""
        if " | " in self.cpus and metric.needs[0] in OF_THE_SET:
            metric = replace(metric, footnote=f"on the CPUs of each side's set: {self.cpus}")
        row = self.builder.aligned(metric, per_side)
        return self.ceilings.beside(row, per_side, self.builder)


def _throughput(rows: Rows, sides: Sides) -> list[Group]:
    equal_load = _equal_load(sides)
    optional = if_measured(sides, (*generated.NEW_ORDER_ROWS, *generated.OPEN_LOOP))
    latency = derived.latency(equal_load=equal_load)
    metrics = (*derived.THROUGHPUT, *optional, *if_measured(sides, derived.STEADINESS), *latency)
    found = [Group("throughput", "Throughput and latency", rows.of(metrics), WORKLOAD)]
    kinds = list(dict.fromkeys(kind for runs in sides for kind in _types(runs)))
    if len(kinds) > 1:
        shared = [kind for kind in kinds if sum(kind in _types(runs) for runs in sides) > 1]
        by_type = (
            row
            for kind in kinds
            for row in derived.with_view(
                "always" if kind in shared else "all", *generated.types((kind,), latency[derived.P99])
            )
        )
        found.append(Group("latency_types", "Latency by transaction type", rows.of(by_type), WORKLOAD))
    return found


def _cpu(rows: Rows, sides: Sides) -> list[Group]:
    found = []
    for side in ("server", "load"):
        metrics = derived_cpu.cpu_metrics(side)
        if side == "server":
            metrics = (*metrics, *if_measured(sides, derived_hardware.PROCESSOR))
        title = f"CPU, {side}'s set ({_set_of(sides, side)})"
        found.append(Group(f"cpu_{side}", title, rows.of(metrics), CPU))
    whole = if_measured(sides, derived_cpu.cpu_metrics("host"))
    return [*found, Group("cpu_host", "CPU, whole host", rows.of(whole), CPU)]


def _disks(rows: Rows, sides: Sides, shown: Sequence[Device]) -> list[Group]:
    found = []
    for device in shown:
        metrics = (*_disk_rows(sides), *_disk_quantiles(sides, device))
        found.append(_device_group(rows, "disk", device, metrics, DISK))
    return found


def _nic(rows: Rows, sides: Sides, device: Device) -> Group:
    """Rows of an interface; sides that spoke by different roads have values and no ratio."""
    group = _device_group(rows, "nic", device, derived_devices.NETWORK, NETWORK)
    quiet = [devices.is_idle(runs, name) for runs, name in zip(sides, device.per_side, strict=True)]
    if not any(quiet) or all(quiet):
        return group
    reference = rows.builder.reference
    note = rows.builder.footnotes.add(
        f"{_listed(rows.builder, quiet)} did not speak over {device.name} (under 1 kB/s): no ratio"
    )

    def apart(position: int, versus: Versus | None) -> Versus | None:
        if versus is None or quiet[position] == quiet[reference]:
            return versus
        return Versus("none", notes=(note,))

    judged = (
        replace(row, versus=tuple(apart(place, each) for place, each in enumerate(row.versus)))
        for row in group.rows
    )
    return replace(group, rows=tuple(judged))


def _listed(builder: RowBuilder, quiet: Sequence[bool]) -> str:
    return " and ".join(column.name for column, silent in zip(builder.columns, quiet, strict=True) if silent)


def _other(rows: Rows, sides: Sides) -> list[Group]:
    optional = (
        ("ebpf", "Kernel, by eBPF", derived_ebpf.EBPF),
        ("limits", "Limits from outside", derived_hardware.LIMITS),
        ("mysql", "Inside MySQL", derived_mysql.MYSQL),
    )
    return [
        Group("kernel", "Kernel", rows.of(_kernel_rows(sides)), OTHER),
        *(Group(key, title, rows.of(if_measured(sides, found)), OTHER) for key, title, found in optional),
    ]


def _kernel_rows(sides: Sides) -> tuple[derived.Metric, ...]:
    """Switches and interrupts of the whole host stand in where a side did not measure the server's own."""
    stand_ins = {
        "switches_host": derived.SERVER_SWITCHES[0],
        "interrupts_host": "interrupts.server",
    }
    absent = {
        key
        for key, own in stand_ins.items()
        if not all(run.quantities.get(own) for runs in sides for run in runs)
    }
    return tuple(
        replace(metric, view="always") if metric.key in absent else metric for metric in derived.KERNEL
    )


def _disk_rows(sides: Sides) -> tuple[derived.Metric, ...]:
    """Rows of a disk; those of all requests together where a side cannot tell them apart."""
    sysstat = any((run.run.meta.get("imported") or {}).get("kind") == "sar" for runs in sides for run in runs)
    together = derived_devices.DISK_TOGETHER if sysstat else ()
    return (*derived_devices.DISK, *together)


def _disk_quantiles(sides: Sides, device: Device) -> tuple[derived.Metric, ...]:
    """Rows of the disk's eBPF histograms; those that no side has are for the full view."""
    names = dict.fromkeys(name for name in device.per_side if name)
    return tuple(
        metric if any(_measured(sides, metric.of(name)) for name in names) else replace(metric, view="all")
        for metric in derived_ebpf.DISK
    )


def _device_group(
    rows: Rows, kind: str, device: Device, metrics: Sequence[derived.Metric], section: str
) -> Group:
    """Rows of one device; all are for the full view where the device is beside the point."""
    if not device.plain:
        metrics = derived.with_view("all", *metrics)
    built = tuple(
        rows.aligned(metric.of(device.name), [metric.of(name) if name else None for name in device.per_side])
        for metric in metrics
    )
    return Group(f"{kind}_{device.name}", device.title, built, section)


def _costs(rows: Rows, sides: Sides, disks: Sequence[Device], nics: Sequence[Device]) -> list[Group]:
    """Costs per operation; across different operations also per other units of work."""
    runs = [run for of_side in sides for run in of_side]
    present = frozenset(name for run in runs for name in run.quantities.values)
    shared = any(run.shared_host for run in runs)
    nothing = (None,) * len(sides)
    disk = disks[0].per_side if disks else nothing
    nic = next((device.per_side for device in nics if device.name != "lo"), nothing)
    same = rows.builder.same_operation
    host_switches = not (shared or derived.SERVER_SWITCHES[0] in present)
    statements, commits = _counted(runs, costs.STATEMENTS), _counted(runs, costs.COMMITS)
    counted = (statements.quantity, commits.quantity)
    where = [
        costs.CostScope(d, n, host_switches, present, same, *counted) for d, n in zip(disk, nic, strict=True)
    ]
    operations = " | ".join(dict.fromkeys(run.operation.partition(" (")[0] for run in runs))
    own = replace(costs.OPERATION, title=f"Cost per operation ({operations})")
    others = [work for work in (statements, commits, *costs.OTHER_WORK) if work.quantity in present]
    found = []
    for work in (own,) if same else (own, *others):
        per_side = [costs.cost_metrics(work, place) for place in where]
        built = tuple(rows.aligned(metrics[0], metrics) for metrics in zip(*per_side, strict=True))
        found.append(Group(f"cost_{work.per}", work.title, built, COSTS))
    protocol = if_measured(sides, generated.PROTOCOL_ROWS)
    failed = if_measured(sides, generated.errors(_error_codes(sides)))
    found.append(Group("protocol", generated.PROTOCOL, rows.of(protocol), COSTS))
    found.append(Group("errors", "Errors for 1000 operations", rows.of(failed), COSTS))
    return found


def _counted(runs: Sequence[Measured], ways: Sequence[costs.Denominator]) -> costs.Denominator:
    """The first way to count a unit of work that all runs have, else the first: the same for every side."""
    told = (work for work in ways if all(run.quantities.get(work.quantity) for run in runs))
    return next(told, ways[0])


def _error_codes(sides: Sides) -> list[str]:
    told = [(run.run.result or {}).get("errors_by_code") or {} for runs in sides for run in runs]
    return sorted({str(code) for codes in told for code in codes})


def _equal_load(sides: Sides) -> bool:
    """Whether all runs were asked to hold one and the same rate."""
    rates = [run.quantities.get("load.rate") for runs in sides for run in runs]
    return None not in rates and len({found.rate for found in rates if found}) == 1


def if_measured(sides: Sides, metrics: Sequence[derived.Metric]) -> tuple[derived.Metric, ...]:
    """The metrics; one that no run has all inputs of is a row of the full view alone."""
    return tuple(metric if _measured(sides, metric) else replace(metric, view="all") for metric in metrics)


def _measured(sides: Sides, metric: derived.Metric) -> bool:
    return any(
        all(run.quantities.get(name) is not None for name in metric.needs) for runs in sides for run in runs
    )


def _types(runs: Sequence[Measured]) -> list[str]:
    """Transaction types of a side, in the order of its generator."""
    told = [(run.run.result or {}).get("transactions") or {} for run in runs]
    return list(dict.fromkeys(kind for of_run in told for kind in of_run))


def _set_of(sides: Sides, side: str) -> str:
    """CPUs of a set, those of each side in the order of the columns where they differ."""
    told = []
    for runs in sides:
        sets = (run.server_cpus if side == "server" else run.load_cpus for run in runs)
        texts = ("whole host" if cpus is None else cpusets.named(cpus) for cpus in sets)
        told.append(" / ".join(dict.fromkeys(texts)))
    return " | ".join(told if len(set(told)) > 1 else told[:1])
