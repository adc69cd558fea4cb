"""Lists the rows of a comparison in groups: throughput, CPU, disk, network, other, costs.

Sections and order are those of the published table, so that both can be read together. All rows are built;
views.py selects those that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from loadprint.tables.cpu_time import cpu_time
from loadprint.tables.rows import RowBuilder, cpu_sets
from loadprint.tables.table import Group
from loadprint.tables.time_ledger import time_ledger

WORKLOAD, CPU, DISK, NETWORK = "WORKLOAD", "CPU METRICS", "DISK METRICS", "NETWORK METRICS"
OTHER, COSTS = "OTHER METRICS", "COSTS"
Sides = Sequence[Sequence[Measured]]


def groups(builder: RowBuilder) -> list[Group]:
    """All groups of a comparison, without the costs of a unit of work that no side counts."""
    sides = builder.sides
    shown_disks, shown_nics = devices.disks(sides), devices.interfaces(sides)
    return [
        *_throughput(builder),
        *_cpu(builder),
        *_disks(builder, shown_disks),
        *(_nic(builder, device) for device in shown_nics),
        *_other(builder),
        *_costs(builder, shown_disks, shown_nics),
    ]


def _throughput(builder: RowBuilder) -> list[Group]:
    sides = builder.sides
    equal_load = _equal_load(sides)
    optional = if_measured(sides, (*generated.NEW_ORDER_ROWS, *generated.OPEN_LOOP))
    latency = derived.latency(equal_load=equal_load)
    metrics = (*derived.THROUGHPUT, *optional, *if_measured(sides, derived.STEADINESS), *latency)
    listed = [Group("throughput", "Throughput and latency", builder.rows(metrics), WORKLOAD)]
    kinds = list(dict.fromkeys(kind for runs in sides for kind in _types(runs)))
    if len(kinds) > 1:
        shared = [kind for kind in kinds if sum(kind in _types(runs) for runs in sides) > 1]
        by_type = [
            row if kind in shared else replace(row, view="all")
            for kind in kinds
            for row in generated.types((kind,), latency[derived.P99])
        ]
        listed.append(Group("latency_types", "Latency by transaction type", builder.rows(by_type), WORKLOAD))
        times = derived.with_view("measured" if shared else "all", *generated.connection_time(kinds))
        title = "Connection time by transaction type"
        listed.append(Group("connection_time", title, builder.rows(times), WORKLOAD))
    return listed


def _cpu(builder: RowBuilder) -> list[Group]:
    sides = builder.sides
    listed = []
    for side in ("server", "load"):
        metrics = derived_cpu.cpu_metrics(side)
        if side == "server":
            metrics = (*metrics, *if_measured(sides, derived_hardware.PROCESSOR))
        title = f"CPU, {side}'s set ({cpu_sets(sides, side)})"
        listed.append(Group(f"cpu_{side}", title, builder.rows(metrics), CPU))
    whole = if_measured(sides, derived_cpu.cpu_metrics("host"))
    return [*listed, Group("cpu_host", "CPU, whole host", builder.rows(whole), CPU)]


def _disks(builder: RowBuilder, shown: Sequence[Device]) -> list[Group]:
    listed = []
    for device in shown:
        metrics = (*_disk_rows(builder.sides), *_disk_quantiles(builder.sides, device))
        listed.append(_device_group(builder, "disk", device, metrics, DISK))
    return listed


def _nic(builder: RowBuilder, device: Device) -> Group:
    """Rows of an interface; between a side that used it and one that did not there is no ratio."""
    quiet = [devices.is_idle(runs, name) for runs, name in zip(builder.sides, device.per_side, strict=True)]
    names = [column.name for column, is_quiet in zip(builder.columns, quiet, strict=True) if is_quiet]
    note = f"no traffic of {' and '.join(names)} over {device.name} (under 1 kB/s): no ratio"
    incomparable = [note if each != quiet[builder.reference] else "" for each in quiet]
    return _device_group(builder, "nic", device, derived_devices.NETWORK, NETWORK, incomparable)


def _other(builder: RowBuilder) -> list[Group]:
    sides = builder.sides
    optional = (
        ("ebpf", "Kernel, by eBPF", derived_ebpf.EBPF),
        ("limits", "Limits of cloud and cgroup", derived_hardware.LIMITS),
        ("mysql", "Inside MySQL", derived_mysql.MYSQL),
    )
    return [
        Group("kernel", "Kernel", builder.rows(_kernel_rows(sides)), OTHER),
        *(
            Group(key, title, builder.rows(if_measured(sides, metrics)), OTHER)
            for key, title, metrics in optional
        ),
    ]


def _kernel_rows(sides: Sides) -> tuple[derived.Metric, ...]:
    """Kernel rows; the whole host's switches and interrupts replace the server's if a side lacks them."""
    replacements = {
        "switches_host": derived.SERVER_SWITCHES[0],
        "interrupts_host": "interrupts.server",
    }
    absent = {
        key
        for key, quantity in replacements.items()
        if not all(run.quantities.get(quantity) for runs in sides for run in runs)
    }
    return tuple(
        replace(metric, view="always") if metric.key in absent else metric for metric in derived.KERNEL
    )


def _disk_rows(sides: Sides) -> tuple[derived.Metric, ...]:
    """Rows of a disk; with rows of all requests together if a side cannot distinguish them."""
    sysstat = any((run.run.meta.get("imported") or {}).get("kind") == "sar" for runs in sides for run in runs)
    together = derived_devices.DISK_TOGETHER if sysstat else ()
    return (*derived_devices.DISK, *together)


def _disk_quantiles(sides: Sides, device: Device) -> tuple[derived.Metric, ...]:
    """Rows of the disk's eBPF histograms; the full view also has those that no side measured."""
    names = dict.fromkeys(name for name in device.per_side if name)
    return tuple(
        metric if any(_measured(sides, metric.of(name)) for name in names) else replace(metric, view="all")
        for metric in derived_ebpf.DISK
    )


def _device_group(  # noqa: PLR0913, PLR0917
    builder: RowBuilder,
    kind: str,
    device: Device,
    metrics: Sequence[derived.Metric],
    section: str,
    incomparable: Sequence[str] = (),
) -> Group:
    """Rows of one device; only the full view shows a minor device."""
    if not device.plain:
        metrics = derived.with_view("all", *metrics)
    built = tuple(
        builder.aligned(
            metric.of(device.name),
            [metric.of(name) if name else None for name in device.per_side],
            incomparable,
        )
        for metric in metrics
    )
    return Group(f"{kind}_{device.name}", device.title, built, section)


def _costs(builder: RowBuilder, disks: Sequence[Device], nics: Sequence[Device]) -> list[Group]:
    """Costs per operation; between different operations also per other units of work."""
    sides = builder.sides
    runs = [run for of_side in sides for run in of_side]
    present = frozenset(name for run in runs for name in run.quantities.values)
    shared = any(run.shared_host for run in runs)
    nothing = (None,) * len(sides)
    disk = disks[0].per_side if disks else nothing
    nic = next((device.per_side for device in nics if device.name != "lo"), nothing)
    same = builder.same_operation
    host_switches = not (shared or derived.SERVER_SWITCHES[0] in present)
    statements, commits = _counted(runs, costs.STATEMENTS), _counted(runs, costs.COMMITS)
    counted = (statements.quantity, commits.quantity)
    where = [
        costs.CostScope(d, n, host_switches, present, same, *counted) for d, n in zip(disk, nic, strict=True)
    ]
    operations = " | ".join(dict.fromkeys(run.operation.partition(" (")[0] for run in runs))
    operation = replace(costs.OPERATION, title=f"Cost per operation ({operations})")
    others = [work for work in (statements, commits, *costs.OTHER_WORK) if work.quantity in present]
    listed = []
    for work in (operation,) if same else (operation, *others):
        per_side = [costs.cost_metrics(work, place) for place in where]
        built = tuple(builder.aligned(metrics[0], metrics) for metrics in zip(*per_side, strict=True))
        listed.append(Group(f"cost_{work.per}", work.title, built, COSTS))
    counted_works = [work for work in (statements, commits, operation) if work.quantity in present]
    listed += time_ledger(builder, counted_works or [operation], COSTS)
    listed += cpu_time(builder, counted_works or [operation], COSTS)
    protocol = if_measured(sides, generated.PROTOCOL_ROWS)
    failed = if_measured(sides, generated.errors(_error_codes(sides)))
    listed.append(Group("protocol", generated.PROTOCOL, builder.rows(protocol), COSTS))
    listed.append(Group("errors", "Errors per 1,000 operations", builder.rows(failed), COSTS))
    return listed


def _counted(runs: Sequence[Measured], ways: Sequence[costs.Denominator]) -> costs.Denominator:
    """The first way to count a unit of work that all runs have, else the first; the same for all sides."""
    available = (work for work in ways if all(run.quantities.get(work.quantity) for run in runs))
    return next(available, ways[0])


def _error_codes(sides: Sides) -> list[str]:
    counts = [(run.run.result or {}).get("errors_by_code") or {} for runs in sides for run in runs]
    return sorted({str(code) for codes in counts for code in codes})


def _equal_load(sides: Sides) -> bool:
    """Whether all runs had the same target rate."""
    rates = [run.quantities.get("load.rate") for runs in sides for run in runs]
    return None not in rates and len({rate.rate for rate in rates if rate}) == 1


def if_measured(sides: Sides, metrics: Sequence[derived.Metric]) -> tuple[derived.Metric, ...]:
    """The metrics; only the full view has those for which every run lacks an input."""
    return tuple(metric if _measured(sides, metric) else replace(metric, view="all") for metric in metrics)


def _measured(sides: Sides, metric: derived.Metric) -> bool:
    return any(
        all(run.quantities.get(name) is not None for name in metric.needs) for runs in sides for run in runs
    )


def _types(runs: Sequence[Measured]) -> list[str]:
    """Transaction types of a side, in the order of its generator."""
    by_run = [(run.run.result or {}).get("transactions") or {} for run in runs]
    return list(dict.fromkeys(kind for of_run in by_run for kind in of_run))
