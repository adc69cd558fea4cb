"""Writes the facts above a table: differences, sides, server, host, window, drift, canary, noise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from loadprint import numbers
from loadprint.judging import canary, steady, warm
from loadprint.judging.comparability import Comparability
from loadprint.judging.effective import Server, effective
from loadprint.judging.facts import connections
from loadprint.judging.verdicts import Shifts
from loadprint.metrics.gather import Measured
from loadprint.reading.cpusets import cpu_list, named, parse_cpus
from loadprint.reading.run_documents import InterruptsOfDevice, PlannedCampaign
from loadprint.reading.sides import Side
from loadprint.reading.window import Window
from loadprint.statistics.trend import Trend
from loadprint.tables.ceilings import Ceilings
from loadprint.tables.clocks_line import clocks_text
from loadprint.tables.table import Row

MAX_LISTED = 6  # differences of one group
CONTROL = re.compile(r"-config$|^nvme\d+q0$|mgmnt|async")  # virtio, NVMe, ENA, mlx5


def facts(
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    comparable: Comparability,
    trends: Sequence[Trend | None],
    shifts: Shifts,
) -> list[tuple[str, str]]:
    """Facts as (label, text)."""
    everyone = [run for runs in measured for run in runs]
    of_sides = list(zip(sides, measured, strict=True))
    executions = [side.execution for side in sides]
    lines = [
        *_differing(comparable),
        (
            "sides",
            "; ".join(f"{side.name} = {_describe(side, runs)}" for side, runs in of_sides),
        ),
        ("campaign", _joined(_campaign(execution.campaign) for execution in executions)),
        ("server", _each(sides, measured, _server)),
        ("host", _each(sides, measured, _host)),
        ("interrupts", _each(sides, measured, _interrupts)),
        ("clocks", clocks_text(everyone)),
        ("no eBPF", _each(sides, measured, _no_ebpf)),
        ("no ledger", _each(sides, measured, _no_ledger)),
        ("connections", _multiplexed(sides, measured)),
        ("warm-up", _joined(execution.warm_promise or "none declared" for execution in executions)),
        ("warmed", "; ".join(_warmed(sides, measured))),
        (
            "window",
            "; ".join(f"{side.name} {_windows(runs)}" for side, runs in of_sides),
        ),
        ("seed", _joined(_seed(side, run) for side, runs in of_sides for run in runs)),
        ("ended", _joined(execution.ended_by for execution in executions)),
        ("repeats", "; ".join(_repeats(side) for side in sides)),
        ("notes", "; ".join(_notes(sides, measured))),
        ("drift", _drifts(sides, measured, trends)),
        ("canary", canary.largest(shifts)),
    ]
    return [(label, text) for label, text in lines if text]


def _differing(comparable: Comparability) -> list[tuple[str, str]]:
    """Differences by kind and group, one line each; harmless ones by name only."""
    lines = []
    for label, kind in (("differs", comparable.material), ("varied", comparable.asked)):
        for group, of_group in groupby(kind, key=lambda difference: difference.group):
            texts = [difference.summary() for difference in of_group]
            lines.append((label, f"{group}: {numbers.listed(texts, MAX_LISTED, '; ')}"))
    if comparable.harmless:
        names = numbers.listed([difference.name for difference in comparable.harmless], MAX_LISTED)
        lines.append(("harmless", f"differ without effect: {names}"))
    if unknown := [text for text in comparable.unknown if text not in comparable.reason]:
        lines.append(("unknown", "; ".join(unknown)))
    return lines


def _warmed(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    return [
        f"{side.name} {text}"
        for side, runs in zip(sides, measured, strict=True)
        if (text := warm.reached(runs))
    ]


def _drifts(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], trends: Sequence[Trend | None]
) -> str:
    """How far operations/s drifted over the window of each side."""
    texts = [
        f"{side.name} {text}"
        for side, runs, trend in zip(sides, measured, trends, strict=True)
        if (text := steady.drift(runs, trend))
    ]
    return f"of operations/s over the window: {'; '.join(texts)}" if texts else ""


def unused_ceilings(limits: Ceilings, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The line `ceilings`: quantities with a ceiling that no row shows."""
    unused = limits.unused({cell.ceiling for row in rows for cell in row.cells if cell.ceiling})
    return [("ceilings", f"no row shows {', '.join(unused)}")] if unused else []


def _describe(side: Side, runs: Sequence[Measured]) -> str:
    result = runs[0].run.result
    threads, scenario = result.threads, result.options.get("scenario")
    workload = runs[0].run.workload or "?"
    what = f"{side.label} ({workload}{f' {scenario}' if scenario else ''}"
    what += f", {threads} thread{'s' * (threads != 1)})" if threads else ")"
    return f"{what}, counts {runs[0].operation.partition(' (')[0]}s"


def _campaign(campaign: PlannedCampaign) -> str:
    return f"{campaign.name}: {campaign.title}" if campaign.name and campaign.title else campaign.name


def _each(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], describe: Callable[[Measured], str]
) -> str:
    """One text if all runs agree, else one per side."""
    texts = [_joined(describe(run) for run in runs) for runs in measured]
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(f"{side.name}: {text}" for side, text in zip(sides, texts, strict=True))


def _joined(texts: Any) -> str:
    return " / ".join(dict.fromkeys(text for text in texts if text))


def _server(run: Measured) -> str:
    """Version and effective settings: what a commit waits for, memory, redo."""
    if not run.run.server:
        return "not recorded (load/server.json is missing)"
    server = Server.of(run.run.server)
    named = {setting.name: setting.value for setting in effective(server)}
    texts = [named["commit"]] if "commit" in named else []
    texts += [f"data files {named['data files']}"] if "data files" in named else []
    if "torn pages" in named and named["torn pages"].split()[0] != "recovered":
        texts.append(f"torn pages {named['torn pages']}")
    texts += [f"{name} {named[name]}" for name in ("buffer pool", "redo capacity") if name in named]
    if named.get("query cache", "off") != "off":
        texts.append(f"query cache {named['query cache']}")
    return f"{server.release()} ({'; '.join(texts)})" if texts else server.release()


def _host(run: Measured) -> str:
    hosts = []
    for role in run.run.roles:
        fingerprint = run.run.fingerprint(role)
        cpus, release = fingerprint.cpus, fingerprint.kernel.release
        parts = [
            f"{role} on {fingerprint.host or '?'}",
            cpus.model,
            f"{len(cpus.list)} CPUs" if cpus.list else "",
            f"Linux {release}" if release else "",
        ]
        hosts.append(", ".join(part for part in parts if part))
    return "; ".join(hosts) or "no recorder ran"


def _interrupts(run: Measured) -> str:
    """The CPUs that serve the interrupts of the data disk and the network interfaces of each host."""
    hosts = {}
    sets = {"server": run.server_cpus, "load": run.load_cpus}
    for role in run.run.roles:
        devices = run.run.fingerprint(role).interrupts
        texts = [text for device in devices if (text := _served(device, f"interrupts of {role}"))]
        cpus = sets.get(role)
        if texts:
            hosts[role] = ", ".join(texts) + (f" ({role}'s {named(cpus)})" if cpus else "")
    return "; ".join(f"{role}: {text}" if len(hosts) > 1 else text for role, text in hosts.items())


def _served(device: InterruptsOfDevice, place: str) -> str:
    """One device with its CPUs, without vectors that no transfer uses; empty if none is known."""
    irqs = [irq for irq in device.irqs if irq.cpus]
    irqs = [irq for irq in irqs if not CONTROL.search(irq.name)] or irqs
    cpus = {cpu for irq in irqs for cpu in parse_cpus(irq.cpus, place) or ()}
    return f"{device.device} on CPU {cpu_list(tuple(sorted(cpus)))}" if cpus else ""


def _no_ebpf(run: Measured) -> str:
    """Reason why the recorder had no eBPF probe; empty if it had one, or none was requested."""
    if run.window is None:
        return ""
    prefix = "ebpf_"
    lacking = {name: why for name, why in run.window.unavailable.items() if name.startswith(prefix)}
    reasons = dict.fromkeys(
        why.partition(": ")[2] for why in lacking.values() if why.startswith("unavailable")
    )
    ran = any(name.startswith(prefix) for name in run.window.read)
    return "" if ran or not reasons else next(iter(reasons))


def _no_ledger(run: Measured) -> str:
    """Reasons why a load has no time ledger or CPU ledger although the recorder ran eBPF probes."""
    if run.window is None or not run.run.result or _no_ebpf(run):
        return ""
    quantities, reasons = run.quantities, {}
    if "ebpf_states" in run.window.read and "ledger." in quantities.missing:
        reasons["time"] = quantities.why("ledger.server")
    refused = run.window.unavailable.get("profile", "").startswith("unavailable")
    if (refused or "profile" in run.window.read) and not quantities.get("profiled.server.samples"):
        reasons["CPU time"] = quantities.why("profile.server.")
    causes = dict.fromkeys(reasons.values())
    return "; ".join(
        f"of {' and '.join(what for what in reasons if reasons[what] == why)}: {why}" for why in causes
    )


def _windows(runs: Sequence[Measured]) -> str:
    """Measured seconds of each repeat (of the recorder if no generator ran), and when they were read."""
    seconds = [f"{run.seconds:.1f}" for run in runs if run.seconds is not None]
    read = {_read(run.window, len(run.run.turns)) for run in runs if run.window}
    return ", ".join((f"{' / '.join(seconds) or '?'} s", *sorted(read)))


def _read(window: Window, turns: int) -> str:
    return f"in {turns} turns" if turns else f"a tick every {window.interval_ns / 1e9:g} s"


def _seed(side: Side, run: Measured) -> str:
    seed = run.run.meta.seed if side.execution.seed is None else side.execution.seed
    return "" if seed is None else str(seed)


def _notes(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    """Harmless events in the windows: each text once, with its sides."""
    sides_by_note: dict[str, list[str]] = {}
    for side, runs in zip(sides, measured, strict=True):
        for note in dict.fromkeys(note for run in runs for note in run.quantities.notes):
            sides_by_note.setdefault(note, []).append(side.name)
    return [f"{note} ({', '.join(names)})" for note, names in sides_by_note.items()]


def _multiplexed(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> str:
    """How connections were served, unless each had a thread on all sides."""
    kinds = [_joined(connections(run.run.result) for run in runs) for runs in measured]
    if all(kind == "thread" for kind in kinds):
        return ""
    return "; ".join(f"{side.name} {kind}" for side, kind in zip(sides, kinds, strict=True))


def _repeats(side: Side) -> str:
    missing = "".join(f", missing {run} ({reason})" for run, reason in side.missing)
    return f"{side.name} {len(side.runs)}{missing}"
