"""Lists the rows of a comparison in groups: throughput, CPU, disk, network, other, costs.

Sections and order are those of the published table, so that both can be read together. All rows are built;
views.py selects those that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.catalogue.files import OWN, Catalogue, Work, catalogue
from loadprint.catalogue.metric import Metric, with_view
from loadprint.metrics import devices
from loadprint.metrics.devices import Device
from loadprint.metrics.gather import Measured
from loadprint.tables.costs import CostScope, cost_metrics
from loadprint.tables.cpu_time import cpu_time
from loadprint.tables.rows import RowBuilder, cpu_sets
from loadprint.tables.table import COSTS, CPU, DISK, NETWORK, OTHER, OWN_ROWS, WORKLOAD, Group, Row
from loadprint.tables.time_ledger import time_ledger

SECTIONS = {"disk": DISK, "nic": NETWORK}  # of devices
SERVER_SWITCHES = "threads.server.voluntary_ctxt_switches"  # else costs are of the host's switches
CLOSED_LOOP = "of a transaction; in a closed loop it follows from threads ÷ throughput: not judged"
OTHER_RATES = "of a transaction; the sides had different rates, on which it depends: not judged"
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
        *_own(builder),
    ]


def of_group(key: str) -> tuple[Metric, ...]:
    """The rows of a group in tables."""
    return tuple(metric for metric in catalogue().groups[key] if metric.view != "chart")


def cpu_metrics(side: str) -> tuple[Metric, ...]:
    """Rows of one CPU set, and of the processes of its side.

    Of the load's set only the utilisation is in every view, of the whole host nothing.
    """
    of_set, of_processes = ([row.of(side) for row in of_group(key)] for key in ("cpu", "process"))
    if side == "server":
        return (*of_set, *of_processes)
    if side == "load":
        return (
            of_set[0],
            *with_view("all", *of_set[1:]),
            of_processes[0],
            *with_view("all", *of_processes[1:]),
        )
    return with_view("all", *of_set)


def _throughput(builder: RowBuilder) -> list[Group]:
    sides = builder.sides
    why = _latency_untested(sides)
    latency = [_judged_at_equal_load(row, "latency_p95", why) for row in of_group("latency")]
    rows = builder.rows((*if_measured(sides, of_group("throughput")), *latency))
    groups = [_group("throughput", rows, WORKLOAD)]
    kinds = list(dict.fromkeys(kind for runs in sides for kind in transaction_types(runs)))
    if len(kinds) > 1:
        shared = [kind for kind in kinds if sum(kind in transaction_types(runs) for runs in sides) > 1]
        by_type = [
            _judged_at_equal_load(row.of(kind), "_p95", why)
            for kind in kinds
            for row in of_group("latency_types")
        ]
        alone = tuple(f"latency_{kind}_" for kind in kinds if kind not in shared)
        by_type = [replace(row, view="all") if row.key.startswith(alone) else row for row in by_type]
        groups.append(_group("latency_types", builder.rows(by_type), WORKLOAD))
        times = [row.of(kind) for kind in kinds for row in of_group("connection_time")]
        shares = with_view("measured" if shared else "all", *times, *of_group("connection_time_rest"))
        groups.append(_group("connection_time", builder.rows(shares), WORKLOAD))
    return groups


def _judged_at_equal_load(row: Metric, judged: str, untested: str) -> Metric:
    """A latency: where all sides were driven at one rate one of them has a verdict, else none has a mark."""
    return replace(
        row, footnote=untested, untested=bool(untested), headline=not untested and row.key.endswith(judged)
    )


def _cpu(builder: RowBuilder) -> list[Group]:
    sides = builder.sides
    groups = []
    for side in ("server", "load"):
        metrics = cpu_metrics(side)
        if side == "server":
            metrics = (*metrics, *if_measured(sides, of_group("processor"), every=True))
        title = f"CPU, {side}'s set ({cpu_sets(sides, side)})"
        groups.append(Group(f"cpu_{side}", title, builder.rows(metrics), CPU))
    return [*groups, Group("cpu_host", "CPU, whole host", builder.rows(cpu_metrics("host")), CPU)]


def _disks(builder: RowBuilder, shown: Sequence[Device]) -> list[Group]:
    """Rows of the disks; with rows of all requests together if a side cannot distinguish them."""
    runs = [run for runs in builder.sides for run in runs]
    sysstat = any(run.run.meta.imported.kind == "sar" for run in runs)
    groups = []
    for device in shown:
        metrics = (*of_group("disk"), *(of_group("disk_together") if sysstat else ()))
        metrics = (*metrics, *_disk_quantiles(builder.sides, device))
        groups.append(_device_group(builder, "disk", device, metrics))
    return groups


def _nic(builder: RowBuilder, device: Device) -> Group:
    """Rows of an interface; between a side that used it and one that did not there is no ratio."""
    quiet = [devices.is_idle(runs, name) for runs, name in zip(builder.sides, device.per_side, strict=True)]
    names = [column.name for column, is_quiet in zip(builder.columns, quiet, strict=True) if is_quiet]
    note = f"no traffic of {' and '.join(names)} over {device.name} (under 1 kB/s): no ratio"
    incomparable = [note if is_quiet != quiet[builder.reference] else "" for is_quiet in quiet]
    return _device_group(builder, "nic", device, of_group("nic"), incomparable)


def _other(builder: RowBuilder) -> list[Group]:
    optional = [
        _group(key, builder.rows(if_measured(builder.sides, of_group(key), every=True)), OTHER)
        for key in ("ebpf", "limits", "mysql")
    ]
    return [_group("kernel", builder.rows(_kernel_rows(builder.sides)), OTHER), *optional]


def _own(builder: RowBuilder) -> list[Group]:
    """The user's own rows, and series of scraped endpoints."""
    scraped = {
        label: row for runs in builder.sides for run in runs for label, row in run.quantities.scraped.items()
    }
    groups = (
        (OWN, builder.catalogue.titles.get(OWN, ""), own_rows(builder.catalogue)),
        ("scraped", "Scraped", [scraped[label] for label in sorted(scraped)]),
    )
    return [Group(key, title, builder.rows(rows), OWN_ROWS) for key, title, rows in groups if rows]


def own_rows(declared: Catalogue) -> list[Metric]:
    """The user's own rows in tables."""
    return [row for row in declared.groups.get(OWN, ()) if row.view != "chart"]


def _kernel_rows(sides: Sides) -> tuple[Metric, ...]:
    """Kernel rows; the whole host's switches and interrupts replace the server's if a side lacks them."""
    rows, runs = of_group("kernel"), [run.quantities for of_side in sides for run in of_side]
    absent = {row.key for row in rows if not all(run.get(row.formula.names[0]) for run in runs)}
    return tuple(replace(row, view="always") if row.screens.instead_of in absent else row for row in rows)


def _disk_quantiles(sides: Sides, device: Device) -> tuple[Metric, ...]:
    """Rows of the disk's eBPF histograms; the full view also has those that no side measured."""
    names = dict.fromkeys(name for name in device.per_side if name)
    return tuple(
        metric if any(_measured(sides, metric.of(name)) for name in names) else replace(metric, view="all")
        for metric in of_group("disk_histograms")
    )


def _device_group(
    builder: RowBuilder,
    kind: str,
    device: Device,
    metrics: Sequence[Metric],
    incomparable: Sequence[str] = (),
) -> Group:
    """Rows of one device; only the full view shows a minor device."""
    if not device.plain:
        metrics = with_view("all", *metrics)
    built = tuple(
        builder.aligned(
            metric.of(device.name),
            [metric.of(name) if name else None for name in device.per_side],
            incomparable,
        )
        for metric in metrics
    )
    return Group(f"{kind}_{device.name}", device.title, built, SECTIONS[kind], device.has_files)


def _costs(builder: RowBuilder, disks: Sequence[Device], nics: Sequence[Device]) -> list[Group]:
    """Costs per operation; between different operations, or without some, also per other units of work."""
    sides = builder.sides
    runs = [run for of_side in sides for run in of_side]
    present = frozenset(name for run in runs for name in run.quantities.values)
    shared = any(run.run.shares_host for run in runs)
    nothing = (None,) * len(sides)
    disk = disks[0].per_side if disks else nothing
    nic = next((device.per_side for device in nics if device.name != "lo"), nothing)
    same = builder.same_operation
    host_switches = not (shared or SERVER_SWITCHES in present)
    works = {per: _counted(runs, ways) for per, ways in catalogue().works.items()}
    counted = (works["statement"], works["commit"])
    where = [CostScope(d, n, host_switches, present, same, counted) for d, n in zip(disk, nic, strict=True)]
    operations = " | ".join(dict.fromkeys(run.operation.partition(" (")[0] for run in runs))
    operation = replace(works["operation"], title=f"{works['operation'].title} ({operations})")
    others = [work for per, work in works.items() if per != "operation" and work.quantity in present]
    groups = []
    # not those of a live server, nor of a generator that is frozen as it is
    alone = same and all(run.quantities.get(operation.quantity) for run in runs)
    for work in (operation,) if alone else (operation, *others):
        per_side = [cost_metrics(work, place) for place in where]
        built = tuple(builder.aligned(metrics[0], metrics) for metrics in zip(*per_side, strict=True))
        groups.append(Group(f"cost_{work.per}", work.title, built, COSTS))
    counted_works = [work for work in (*counted, operation) if work.quantity in present]
    groups += time_ledger(builder, counted_works or [operation])
    groups += cpu_time(builder, counted_works or [operation])
    errors, retries = of_group("errors")
    by_code = (row.of(code) for code in _error_codes(sides) for row in of_group("error_codes"))
    failed = (errors, *by_code, retries)
    protocol = if_measured(sides, of_group("protocol"), every=True)
    groups.append(_group("protocol", builder.rows(protocol), COSTS))
    groups.append(_group("errors", builder.rows(if_measured(sides, failed, every=True)), COSTS))
    return groups


def _group(key: str, rows: Sequence[Row], section: str) -> Group:
    return Group(key, catalogue().titles[key], tuple(rows), section)


def _counted(runs: Sequence[Measured], ways: Sequence[Work]) -> Work:
    """The first way to count a unit of work that all runs have, else the first; the same for all sides."""
    available = (work for work in ways if all(run.quantities.get(work.quantity) for run in runs))
    return next(available, ways[0])


def _error_codes(sides: Sides) -> list[str]:
    counts = [run.run.result.errors_by_code for runs in sides for run in runs]
    return sorted({str(code) for codes in counts for code in codes})


def _latency_untested(sides: Sides) -> str:
    """Why latencies are not compared; empty if all runs had the same target rate."""
    rates = [run.quantities.get("load.rate") for runs in sides for run in runs]
    if None not in rates and len({rate.rate for rate in rates if rate}) == 1:
        return ""
    return OTHER_RATES if any(rates) else CLOSED_LOOP


def if_measured(sides: Sides, metrics: Sequence[Metric], *, every: bool = False) -> tuple[Metric, ...]:
    """The metrics; only the full view has optional ones, or all, for which every run lacks an input."""
    return tuple(
        metric if not (every or metric.optional) or _measured(sides, metric) else replace(metric, view="all")
        for metric in metrics
    )


def _measured(sides: Sides, metric: Metric) -> bool:
    measured = (run.quantities for runs in sides for run in runs)
    return any(not run.why_not(run.resolved(metric.formula)) for run in measured)


def transaction_types(runs: Sequence[Measured]) -> list[str]:
    """Transaction types of a side, in the order of its generator."""
    by_run = [run.run.result.transactions for run in runs]
    return list(dict.fromkeys(kind for of_run in by_run for kind in of_run))
