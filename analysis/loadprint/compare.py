"""From sides to a Table, a plain value that renderers lay out: which groups, devices and denominators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint import (
    canary,
    checks,
    costs,
    derived,
    derived_ebpf,
    derived_mysql,
    devices,
    generated,
    header,
    steady,
)
from loadprint.devices import Device
from loadprint.errors import InputError
from loadprint.gather import Measured, gather
from loadprint.queries import Store
from loadprint.rows import Column, Footnotes, RowBuilder, with_verdicts
from loadprint.sentences import sentences
from loadprint.sides import Side
from loadprint.table import Group, Row, Shift, SideHead, Table

UTILISATION_GAP = 10.0  # points beyond which CPU time per operation is not the same thing
UTILISATION_NOTE = (
    "the sides' utilisation differs by more than ten points: shared cores and clock frequency "
    "weigh differently on their CPU times"
)
METHOD = (
    "value: mean of the repeats; ratio: of geometric means, to {reference}; "
    "interval: 95 %, Student's t on the log of run means, unadjusted.",
    "~ cannot be told from 1   * differs (Benjamini–Hochberg, 5 %)   ? base is zero   – no ratio   "
    "points: difference of percentages",
)


def compare(sides: Sequence[Side], reference: str | None, *, only_costs: bool = False) -> Table:
    """Lay sides beside a reference (the first side unless named). Raises InputError."""
    names = [side.name for side in sides]
    reference = reference or names[0]
    if reference not in names:
        raise InputError(
            f"--reference {reference}", "is none of the sides", f"name one of {', '.join(names)}"
        )
    store = Store()
    measured = [[gather(run, store) for run in side.runs] for side in sides]
    columns, said = _columns(sides, measured, names.index(reference))
    builder = RowBuilder(columns, names.index(reference), Footnotes())
    facts, warnings = header.facts(sides, measured)
    facts += _drifts(sides, measured)
    shifts = canary.shifts([run.run for runs in measured for run in runs])
    facts += [("canary", said_of_it)] if (said_of_it := canary.told(shifts)) else []
    table = Table(
        sides=tuple(
            _head(side, runs, shifts, builder.footnotes) for side, runs in zip(sides, measured, strict=True)
        ),
        reference=reference,
        facts=tuple(facts),
        warnings=(*warnings, *said, *canary.disturbed(shifts)),
        groups=_utilisation_marked(_judged(_groups(builder, only_costs), builder), builder),
        footnotes=tuple(builder.footnotes.texts),
        sentences=(),
        method=_method(builder, reference),
    )
    return replace(table, sentences=sentences(table))


def _columns(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], reference: int
) -> tuple[list[Column], list[str]]:
    """Sides as columns, runs in the order of blocks, and what the checks of each side say."""
    columns, said = [], []
    base = _by_block(measured[reference])
    for side, runs in zip(sides, measured, strict=True):
        own = _by_block(runs)
        paired = bool(own) and own.keys() == base.keys() and _together([*measured[reference], *runs])
        ordered = tuple(own[block] for block in sorted(own)) if own else tuple(runs)
        drift, bound = steady.unsettled(side.name, runs), checks.client_bound(side.name, runs)
        said += [text for text in (drift, bound, steady.transient(side.name, runs)) if text]
        said += _oddities(side, runs)
        columns.append(Column(side.name, ordered, paired, drift or bound))
    return columns, said


def _drifts(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[tuple[str, str]]:
    """Header line: how far operations a second drifted over each side's window."""
    told = [(side.name, steady.drift(runs)) for side, runs in zip(sides, measured, strict=True)]
    said = "; ".join(f"{name} {text}" for name, text in told if text)
    return [("drift", f"of operations/s over the window: {said}")] if said else []


def _by_block(runs: Sequence[Measured]) -> dict[int, Measured]:
    """Runs by block; empty where a run names no block or two share one, so that nothing can be paired."""
    blocks = [run.run.meta.get("block") for run in runs]
    if len(set(blocks)) < len(blocks) or not all(isinstance(block, int) for block in blocks):
        return {}
    return {int(str(block)): run for block, run in zip(blocks, runs, strict=True)}


def _together(runs: Sequence[Measured]) -> bool:
    """Whether all runs are of one execution on one host: only then do their blocks belong together."""
    hosts = {run.run.fingerprint("server").get("host") for run in runs}
    return len(hosts) == 1 and len({run.run.path.resolve().parent for run in runs}) == 1


def _oddities(side: Side, runs: Sequence[Measured]) -> list[str]:
    """Resets, wraps, missed ticks and failed reads."""
    notes = []
    for run in runs:
        told = list(dict.fromkeys(run.quantities.oddities))
        if run.window:
            told += [f"{run.window.missed} ticks missed in the window"] if run.window.missed else []
            told += [f"probe {probe}: {reason}" for probe, reason in run.window.failures.items()]
        notes += [f"{side.name} {run.run.id}: {text}" for text in told]
    return notes


def _groups(builder: RowBuilder, only_costs: bool) -> list[Group]:
    sides = [column.runs for column in builder.columns]
    shown_disks, shown_nics = devices.disks(sides), devices.interfaces(sides)
    found: list[Group] = []
    if not only_costs:
        equal_load = _equal_load(sides)
        optional = _there(sides, (*generated.NEW_ORDER_ROWS, *generated.OPEN_LOOP))
        latency = derived.latency(equal_load=equal_load)
        rows = (*derived.THROUGHPUT, *optional, *latency)
        found.append(Group("throughput", "Throughput and latency", _rows(builder, rows)))
        kinds = _transaction_types(sides)
        if len(kinds) > 1:
            by_type = _rows(builder, generated.types(kinds, latency[derived.P99]))
            found.append(Group("latency_types", "Latency by transaction type", by_type))
        for side in ("server", "load"):
            title = f"CPU, {side}'s set ({_set_of(sides, side)})"
            found.append(Group(f"cpu_{side}", title, _rows(builder, derived.cpu_metrics(side))))
        found += [
            _device_group(builder, "disk", device, (*_disk_rows(sides), *_disk_quantiles(sides, device)))
            for device in shown_disks
        ]
        found += [_device_group(builder, "nic", device, derived.NETWORK) for device in shown_nics]
        found.append(Group("kernel", "Kernel", _rows(builder, derived.KERNEL)))
        if seen := _there(sides, derived_ebpf.EBPF):
            found.append(Group("ebpf", "Kernel, by eBPF", _rows(builder, seen)))
        if inside := _there(sides, derived_mysql.MYSQL):
            found.append(Group("mysql", "Inside MySQL", _rows(builder, inside)))
    found += _costs(builder, shown_disks, shown_nics)
    protocol = _there(sides, generated.PROTOCOL_ROWS)
    return found + ([Group("protocol", generated.PROTOCOL, _rows(builder, protocol))] if protocol else [])


def _disk_rows(sides: Sequence[Sequence[Measured]]) -> tuple[derived.Metric, ...]:
    """Rows of a disk; those of all requests together where a side cannot tell them apart."""
    sysstat = any((run.run.meta.get("imported") or {}).get("kind") == "sar" for runs in sides for run in runs)
    return (*derived.DISK, *derived.DISK_TOGETHER) if sysstat else derived.DISK


def _equal_load(sides: Sequence[Sequence[Measured]]) -> bool:
    """Whether all runs were asked to hold one and the same rate."""
    rates = [run.quantities.get("load.rate") for runs in sides for run in runs]
    return None not in rates and len({found.rate for found in rates if found}) == 1


def _there(
    sides: Sequence[Sequence[Measured]], metrics: Sequence[derived.Metric]
) -> tuple[derived.Metric, ...]:
    """The metrics that at least one run has all inputs of."""
    return tuple(
        metric
        for metric in metrics
        if any(
            all(run.quantities.get(name) is not None for name in metric.needs)
            for runs in sides
            for run in runs
        )
    )


def _transaction_types(sides: Sequence[Sequence[Measured]]) -> list[str]:
    found = [(run.run.result or {}).get("transactions") or {} for runs in sides for run in runs]
    return list(dict.fromkeys(kind for told in found for kind in told))


def _rows(builder: RowBuilder, metrics: Sequence[derived.Metric]) -> tuple[Row, ...]:
    return tuple(builder.row(metric) for metric in metrics)


def _set_of(sides: Sequence[Sequence[Measured]], side: str) -> str:
    sets = {run.server_cpus if side == "server" else run.load_cpus for runs in sides for run in runs}
    return " | ".join(
        sorted("whole host" if cpus is None else f"CPUs {header.cpu_list(cpus)}" for cpus in sets)
    )


def _disk_quantiles(sides: Sequence[Sequence[Measured]], device: Device) -> tuple[derived.Metric, ...]:
    """Rows of the disk's eBPF histograms, those that any side has."""
    names = [name for name in device.per_side if name]
    return tuple(
        metric
        for metric in derived_ebpf.DISK
        if any(_there(sides, (metric.of(name),)) for name in dict.fromkeys(names))
    )


def _device_group(builder: RowBuilder, kind: str, device: Device, metrics: Sequence[derived.Metric]) -> Group:
    rows = tuple(
        builder.aligned(
            metric.of(device.name), [metric.of(name) if name else None for name in device.per_side]
        )
        for metric in metrics
    )
    return Group(f"{kind}_{device.name}", device.title, rows)


def _costs(builder: RowBuilder, disks: Sequence[Device], nics: Sequence[Device]) -> list[Group]:
    """Costs per operation; across different operations also per client statement, commit and CPU-second."""
    runs = [run for column in builder.columns for run in column.runs]
    threads = any(run.quantities.get(derived.SERVER_SWITCHES[0]) for run in runs)
    shared = any(run.shared_host for run in runs)
    nothing = (None,) * len(builder.columns)
    disk = disks[0].per_side if disks else nothing
    nic = next((device.per_side for device in nics if device.name != "lo"), nothing)
    syscalls, redo = (
        any(run.quantities.get(name) for run in runs) for name in (costs.SYSCALLS[0], costs.REDO)
    )
    where = [
        costs.Where(d, n, not (threads or shared), syscalls, redo) for d, n in zip(disk, nic, strict=True)
    ]
    operations = " | ".join(dict.fromkeys(run.operation.partition(" (")[0] for run in runs))
    own = replace(costs.OPERATION, title=f"Cost per operation ({operations})")
    groups = []
    for work in (own,) if builder.same_operation else (own, *costs.OTHER_WORK):
        per_side = [costs.cost_metrics(work, place) for place in where]
        rows = tuple(builder.aligned(metrics[0], metrics) for metrics in zip(*per_side, strict=True))
        groups.append(Group(f"cost_{work.per}", work.title, rows))
    return groups


def _judged(groups: Sequence[Group], builder: RowBuilder) -> tuple[Group, ...]:
    rows = iter(with_verdicts([row for group in groups for row in group.rows], builder))
    return tuple(replace(group, rows=tuple(next(rows) for _ in group.rows)) for group in groups)


def _utilisation_marked(groups: tuple[Group, ...], builder: RowBuilder) -> tuple[Group, ...]:
    """Footnote ratios of CPU time per work where utilisation differs by more than ten points."""
    busy = builder.row(derived.cpu_metrics("server")[0])
    base = busy.cells[builder.reference].value
    gaps = [0.0 if cell.value is None or base is None else abs(cell.value - base) for cell in busy.cells]
    if max(gaps) <= UTILISATION_GAP:
        return groups
    return tuple(
        replace(
            group, rows=tuple(_marked(row, gaps, builder) if _is_cpu_cost(row) else row for row in group.rows)
        )
        for group in groups
    )


def _is_cpu_cost(row: Row) -> bool:
    return row.key.startswith(
        ("server_cpu_per_", "server_user_per_", "server_system_per_")
    ) or row.key.endswith(("statements_per_CPU-second", "commits_per_CPU-second"))


def _marked(row: Row, gaps: Sequence[float], builder: RowBuilder) -> Row:
    versus = list(row.versus)
    for position, found in enumerate(versus):
        if found is not None and found.kind == "ratio" and gaps[position] > UTILISATION_GAP:
            versus[position] = replace(found, notes=(*found.notes, builder.footnotes.add(UTILISATION_NOTE)))
    return replace(row, versus=tuple(versus))


def _head(side: Side, runs: Sequence[Measured], shifts: Sequence[Shift], footnotes: Footnotes) -> SideHead:
    ids = tuple(run.run.id for run in runs)
    own = tuple(shift for shift in shifts if shift.run in ids)
    notes = tuple(footnotes.add(text) for text in canary.disturbed(own))
    return SideHead(side.name, side.label, runs[0].operation, ids, side.missing, own, notes)


def _method(builder: RowBuilder, reference: str) -> tuple[str, ...]:
    texts = [text.format(reference=reference) for text in METHOD]
    fewest = min(len(column.runs) for column in builder.columns)
    if fewest < 3:
        repeats = f"{fewest} repeat{'s' if fewest > 1 else ''}"
        texts.append(f"{repeats} a side: no interval, no ~, no verdict; three or more repeats give them.")
    elif all(column.paired for column in builder.columns):
        texts.append("runs are paired within blocks.")
    else:
        texts.append("runs do not pair up within blocks on one host: Welch's t.")
    return tuple(texts)
