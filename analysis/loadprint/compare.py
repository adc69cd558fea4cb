"""From sides to a Table: which groups, which devices, which denominators; a plain value that renderers lay out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from loadprint import checks, derived, header
from loadprint.errors import InputError
from loadprint.gather import Measured, gather
from loadprint.queries import Store
from loadprint.rows import Column, Footnotes, RowBuilder, with_verdicts
from loadprint.sentences import sentences
from loadprint.sides import Side
from loadprint.table import Group, Row, SideHead, Table

UTILISATION_GAP = 10.0  # points beyond which CPU time per operation is not the same thing
DISK_ROLES = ("data", "redo", "binlog")
STACKED = ("loop", "dm-", "md", "ram", "zram", "sr", "fd")
METHOD = (
    "value: mean of the repeats; ratio: of geometric means, to {reference}; interval: 95 %, Student's t on the log of run means, "
    "printed unadjusted.",
    "~ cannot be told from 1 (or 0)   * differs at 5 % false discovery rate (Benjamini–Hochberg, rows without verdict)   "
    "? base is zero   pt percentage points",
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
    facts, warnings = header.facts(sides, measured)
    columns, said = _columns(sides, measured, names.index(reference))
    builder = RowBuilder(columns, names.index(reference), Footnotes())
    groups = _groups(builder, only_costs)
    heads = tuple(_head(side, runs) for side, runs in zip(sides, measured, strict=True))
    table = Table(heads, reference, tuple(facts), tuple([*warnings, *said]), (), (), ())
    table = replace(table, groups=_judged(groups, builder), method=_method(builder, reference))
    table = replace(table, groups=_utilisation_marked(table, builder))
    return replace(table, footnotes=tuple(builder.footnotes.texts), sentences=sentences(table))


def _columns(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], reference: int
) -> tuple[list[Column], list[str]]:
    """Sides as columns, runs in the order of blocks, and what the checks of each side say."""
    columns, said = [], []
    base = _by_block(measured[reference])
    for side, runs in zip(sides, measured, strict=True):
        own = _by_block(runs)
        paired = (
            bool(own)
            and bool(base)
            and own.keys() == base.keys()
            and _one_host([*measured[reference], *runs])
        )
        ordered = tuple(own[block] for block in sorted(own)) if own else tuple(runs)
        drift, bound = checks.unsettled(side.name, runs), checks.client_bound(side.name, runs)
        said += [text for text in (drift, bound, checks.transient(side.name, runs)) if text]
        said += _oddities(side, runs)
        columns.append(Column(side.name, ordered, paired, drift or bound))
    return columns, said


def _by_block(runs: Sequence[Measured]) -> dict[int, Measured]:
    """Runs by block; empty where a run names no block or two share one, so that nothing can be paired."""
    blocks = [run.run.meta.get("block") for run in runs]
    if len(set(blocks)) < len(blocks) or not all(isinstance(block, int) for block in blocks):
        return {}
    return {int(str(block)): run for block, run in zip(blocks, runs, strict=True)}


def _one_host(runs: Sequence[Measured]) -> bool:
    hosts = {run.run.fingerprint("server").get("host") for run in runs}
    executions = {run.run.path.parent for run in runs}
    return len(hosts) == 1 and len(executions) == 1


def _oddities(side: Side, runs: Sequence[Measured]) -> list[str]:
    """Resets, wraps, missed ticks and failed reads, a line per kind and side."""
    notes = [
        f"{side.name} {run.run.id}: {note}" for run in runs for note in dict.fromkeys(run.quantities.notes)
    ]
    for run in runs:
        if run.window and run.window.missed:
            notes.append(f"{side.name} {run.run.id}: {run.window.missed} ticks missed in the window")
        for probe, reason in (run.window.failures if run.window else {}).items():
            notes.append(f"{side.name} {run.run.id}: probe {probe}: {reason}")
    return notes


def _groups(builder: RowBuilder, only_costs: bool) -> list[Group]:
    runs = [run for column in builder.columns for run in column.runs]
    disks, nics = _disks(builder.columns), _nics(builder.columns)
    groups: list[Group] = []
    if not only_costs:
        groups.append(Group("throughput", "Throughput and latency", _rows(builder, derived.THROUGHPUT)))
        groups.append(
            Group(
                "cpu_server",
                f"CPU, server's set ({_set_of(runs, 'server')})",
                _rows(builder, derived.cpu_metrics("server")),
            )
        )
        groups.append(
            Group(
                "cpu_load",
                f"CPU, load's set ({_set_of(runs, 'load')})",
                _rows(builder, derived.cpu_metrics("load")),
            )
        )
        groups += [_device_group(builder, "disk", title, per_side, derived.DISK) for title, per_side in disks]
        groups += [
            _device_group(builder, "nic", title, per_side, derived.NETWORK) for title, per_side in nics
        ]
        groups.append(Group("kernel", "Kernel", _rows(builder, (*derived.KERNEL, *derived.TCP))))
    groups += _costs(builder, disks, nics)
    return groups


def _rows(builder: RowBuilder, metrics: Sequence[derived.Metric]) -> tuple[Row, ...]:
    return tuple(builder.row(metric) for metric in metrics)


def _set_of(runs: Sequence[Measured], side: str) -> str:
    sets = {run.server_cpus if side == "server" else run.load_cpus for run in runs}
    told = sorted("whole host" if cpus is None else f"CPUs {','.join(map(str, cpus))}" for cpus in sets)
    return " | ".join(told)


Devices = list[tuple[str, list[str | None]]]


def _disks(columns: Sequence[Column]) -> Devices:
    """Data device first (whatever each side calls it), then other whole disks that did anything."""
    roles = [_storage(column.runs[0]) for column in columns]
    found: Devices = []
    data = [next((disk for disk, held in held_by.items() if "data" in held), None) for held_by in roles]
    if any(data):
        held = sorted(
            {role for name, held_by in zip(data, roles, strict=True) if name for role in held_by[name]},
            key=_role_order,
        )
        found.append((f"Disk {_names(data)} ({', '.join(held)})", data))
    for device in sorted({d for column in columns for run in column.runs for d in _used_disks(run)}):
        if device not in data:
            found.append((f"Disk {device}{_held(roles, device)}", [device] * len(columns)))
    return found


def _storage(run: Measured) -> dict[str, list[str]]:
    """Whole disks that hold the server's files: disk → roles."""
    held: dict[str, list[str]] = {}
    for entry in run.run.fingerprint("server").get("storage") or []:
        for disk in entry.get("disks") or []:
            if entry.get("role") in DISK_ROLES:
                held.setdefault(str(disk), []).append(str(entry["role"]))
    return held


def _role_order(role: str) -> int:
    return DISK_ROLES.index(role)


def _held(roles: Sequence[dict[str, list[str]]], device: str) -> str:
    held = sorted({role for held_by in roles for role in held_by.get(device, [])}, key=_role_order)
    return f" ({', '.join(held)})" if held else ""


def _used_disks(run: Measured) -> list[str]:
    """Whole disks with I/O in the window; partitions, dm, md and loop devices would count the same I/O twice."""
    q = run.quantities
    known = {
        str(b["name"])
        for b in run.run.fingerprint("server").get("block_devices") or []
        if isinstance(b, dict) and "name" in b
    }
    used = []
    for device in q.entities("disk"):
        if device.startswith(STACKED) or (known and device not in known):
            continue
        counts = [q.get(f"disk.{device}.{name}") for name in ("reads", "writes", "flushes")]
        if sum(count.rate for count in counts if count) > 0:
            used.append(device)
    return used


def _nics(columns: Sequence[Column]) -> Devices:
    """Interfaces that carried packets, busiest first, `lo` last: it counts every byte twice."""
    carried: Counter[str] = Counter()
    for column in columns:
        for run in column.runs:
            for name in run.quantities.entities("nic"):
                both = [run.quantities.get(f"nic.{name}.{way}_bytes") for way in ("rx", "tx")]
                carried[name] += int(sum(way.rate for way in both if way))
    used = [name for name, _ in carried.most_common() if carried[name] and name != "lo"]
    named: Devices = [(f"Network {name}", [name] * len(columns)) for name in used]
    if carried["lo"]:
        named.append(("Network lo (counts every byte twice)", ["lo"] * len(columns)))
    return named


def _names(per_side: Sequence[str | None]) -> str:
    return " | ".join(dict.fromkeys(name for name in per_side if name))


def _device_group(
    builder: RowBuilder,
    kind: str,
    title: str,
    per_side: Sequence[str | None],
    metrics: Sequence[derived.Metric],
) -> Group:
    name = next(device for device in per_side if device)
    rows = tuple(
        builder.aligned(metric.of(name), [metric.of(device) if device else None for device in per_side])
        for metric in metrics
    )
    return Group(f"{kind}_{name}", title, rows)


def _costs(builder: RowBuilder, disks: Devices, nics: Devices) -> list[Group]:
    """Costs per operation; across different operations also per client statement, commit and CPU-second."""
    runs = [run for column in builder.columns for run in column.runs]
    operations = dict.fromkeys(run.operation for run in runs)
    switches = (
        "server"
        if any(run.quantities.get("threads.server.voluntary_ctxt_switches") for run in runs)
        else "host"
    )
    denominators = [("operation", "load.events", f"Cost per operation ({' | '.join(operations)})")]
    if not builder.same_operation:
        denominators += [
            ("statement", "load.queries", "Cost per client statement"),
            ("commit", "load.commits", "Cost per commit"),
            ("CPU-second", "process.server.cpu", "Per CPU-second of the server process"),
        ]
    groups = []
    nic_sides = next((sides for _, sides in nics if sides != ["lo"] * len(sides)), None)
    for per, denominator, title in denominators:
        own = [
            derived.cost_metrics(
                per,
                denominator,
                disks[0][1][i] if disks else None,
                nic_sides[i] if nic_sides else None,
                switches,
            )
            for i in range(len(builder.columns))
        ]
        rows = tuple(builder.aligned(per_side[0], per_side) for per_side in zip(*own, strict=True))
        groups.append(Group(f"cost_{per}", title, rows))
    return groups


def _judged(groups: Sequence[Group], builder: RowBuilder) -> tuple[Group, ...]:
    rows = iter(with_verdicts([row for group in groups for row in group.rows], builder))
    return tuple(replace(group, rows=tuple(next(rows) for _ in group.rows)) for group in groups)


def _utilisation_marked(table: Table, builder: RowBuilder) -> tuple[Group, ...]:
    """Footnote ratios of CPU time per work where utilisation differs by more than ten points."""
    busy = builder.row(derived.cpu_metrics("server")[0])
    base = busy.cells[builder.reference].value
    gaps = [0.0 if cell.value is None or base is None else cell.value - base for cell in busy.cells]
    if max(map(abs, gaps)) <= UTILISATION_GAP:
        return table.groups
    return tuple(
        replace(group, rows=tuple(_marked(row, gaps, builder) if "_cpu_per_" in row.key or "_per_CPU-second" in row.key
                                  else row for row in group.rows))
        for group in table.groups
    )  # fmt: skip


def _marked(row: Row, gaps: Sequence[float], builder: RowBuilder) -> Row:
    text = "utilisation differs by more than ten points: CPU time is thread time, a busy sibling or lower clock inflates it"
    versus = list(row.versus)
    for position, found in enumerate(versus):
        if found is not None and found.kind == "ratio" and abs(gaps[position]) > UTILISATION_GAP:
            versus[position] = replace(found, notes=(*found.notes, builder.footnotes.add(text)))
    return replace(row, versus=tuple(versus))


def _head(side: Side, runs: Sequence[Measured]) -> SideHead:
    return SideHead(side.name, side.label, runs[0].operation, tuple(run.run.id for run in runs), side.missing)


def _method(builder: RowBuilder, reference: str) -> tuple[str, ...]:
    texts = [text.format(reference=reference) for text in METHOD]
    fewest = min(len(column.runs) for column in builder.columns)
    if fewest < 3:
        texts.append(
            f"{fewest} repeat{'s' if fewest > 1 else ''} a side: no interval, no ~, no verdict; three or more give them."
        )
    else:
        paired = all(column.paired for column in builder.columns)
        texts.append(
            "runs are paired within blocks."
            if paired
            else "runs do not pair up within blocks on one host: Welch's t."
        )
    return tuple(texts)
