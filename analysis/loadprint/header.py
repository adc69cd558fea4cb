"""The lines above a table: what is compared, where it ran, what differs, how far apart the sides ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loadprint import warm
from loadprint.comparability import connections, differences
from loadprint.gather import Measured
from loadprint.rows import STEPS
from loadprint.sides import Side

MOST_LISTED = 12


def facts(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Facts as (label, text), and warnings that the facts give rise to."""
    everyone = [run for runs in measured for run in runs]
    execution = next((side.execution for side in sides if side.execution), None) or {}
    campaign = execution.get("campaign") or {}
    found = [
        (
            "sides",
            "; ".join(
                f"{side.name} = {_describe(side, runs)}" for side, runs in zip(sides, measured, strict=True)
            ),
        ),
        ("campaign", _campaign(campaign)),
        ("server", _each(sides, measured, _server)),
        ("host", _each(sides, measured, _host)),
        ("placement", _each(sides, measured, _placement)),
        ("connections", _multiplexed(sides, measured)),
        ("warm-up", str(execution.get("warm_promise") or "none declared")),
        ("warmed", "; ".join(_warmed(sides, measured))),
        (
            "window",
            "; ".join(f"{side.name} {_windows(runs)}" for side, runs in zip(sides, measured, strict=True)),
        ),
        ("seed", str(execution.get("seed") or _joined(str(run.run.meta.get("seed")) for run in everyone))),
        ("repeats", "; ".join(_repeats(side) for side in sides)),
        (
            "recorder",
            "; ".join(f"{side.name} {_recorder(runs)}" for side, runs in zip(sides, measured, strict=True)),
        ),
        ("notes", "; ".join(_notes(sides, measured))),
    ]
    different = differences(measured)
    wanted = _asked(sides)
    varied = [d for d in different if d.name in wanted]
    if varied:
        text = "; ".join(f"{d.name.removeprefix('server.')} {' | '.join(d.values)}" for d in varied)
        found.append(("varied", f"{text}, as the campaign asks"))
    different = [d for d in different if d.name not in wanted]
    material = [d for d in different if d.material]
    if material:
        found.append(
            ("differs", "; ".join(f"{d.name}: {' | '.join(d.values)}" for d in material[:MOST_LISTED]))
        )
        if len(material) > MOST_LISTED:
            found.append(("", f"and {len(material) - MOST_LISTED} more"))
    else:
        found.append(("differs", "nothing material"))
    harmless = [d.name for d in different if not d.material]
    if harmless:
        found.append(("harmless", ", ".join(harmless[:6]) + (", …" if len(harmless) > 6 else "")))
    warnings = (
        [f"the sides ran under different configurations: {len(material)} material differences"]
        if material
        else []
    )
    promised = (campaign.get("warm") or {}).get("redo_capacities_written")
    for side, runs in zip(sides, measured, strict=True):
        if broken := warm.broken_promise([run.run for run in runs], promised):
            warnings.append(f"{side.name}: {broken}; lengthen phases.warmup")
    return [(label, text) for label, text in found if text], warnings


def _asked(sides: Sequence[Side]) -> set[str]:
    """Server variables that the campaign itself sets otherwise on one side than on another."""
    asked: list[dict[str, str]] = []
    for side in sides:
        planned = ((side.execution or {}).get("sides") or {}).get(side.name) or {}
        options = (planned.get("server") or {}).get("options") or {}
        asked.append({f"server.{name.replace('-', '_')}": str(value) for name, value in options.items()})
    names = {name for options in asked for name in options}
    return {name for name in names if len({options.get(name) for options in asked}) > 1}


def _warmed(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    told = [
        (side.name, warm.reached([run.run for run in runs]))
        for side, runs in zip(sides, measured, strict=True)
    ]
    return [f"{name} {text}" for name, text in told if text]


def _describe(side: Side, runs: Sequence[Measured]) -> str:
    result = runs[0].run.result or {}
    threads = result.get("threads")
    workload = result.get("workload") or runs[0].run.meta.get("workload") or "?"
    scenario = (result.get("options") or {}).get("scenario")
    what = f"{side.label} ({workload}{f' {scenario}' if scenario else ''}"
    what += f", {threads} threads)" if threads else ")"
    return f"{what}, counts {runs[0].operation.partition(' (')[0]}s"


def _campaign(campaign: dict[str, Any]) -> str:
    name, title = campaign.get("name"), campaign.get("title")
    return f"{name}: {title}" if name and title else str(name or "")


def _each(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], tell: Callable[[Measured], str]
) -> str:
    """One text where all runs agree, else one per side."""
    told = [_joined(tell(run) for run in runs) for runs in measured]
    if len(set(told)) == 1:
        return told[0]
    return "; ".join(f"{side.name}: {text}" for side, text in zip(sides, told, strict=True))


def _joined(texts: Any) -> str:
    return " / ".join(dict.fromkeys(text for text in texts if text))


def _server(run: Measured) -> str:
    server = run.run.server
    if not server:
        return "not recorded (load/server.json is missing)"
    variables = server.get("variables") or {}
    version = str(server.get("version"))
    said = f"{'MariaDB' if 'mariadb' in version.lower() else 'MySQL'} {version.partition('-')[0]}"
    sync = [
        f"{short} {variables[name]}"
        for name, short in (
            ("innodb_flush_log_at_trx_commit", "flush_log_at_trx_commit"),
            ("log_bin", "log_bin"),
            ("sync_binlog", "sync_binlog"),
            ("innodb_flush_method", "flush_method"),
            ("innodb_doublewrite", "doublewrite"),
        )
        if name in variables
    ]
    size = variables.get("innodb_buffer_pool_size")
    if size and str(size).isdigit():
        sync.append(f"buffer pool {int(size) // 1048576} MiB")
    return f"{said} ({', '.join(sync)})" if sync else said


def _host(run: Measured) -> str:
    told = []
    for role in run.run.roles:
        found = run.run.fingerprint(role)
        cpus = found.get("cpus") or {}
        listed = cpus.get("list") or cpus.get("cpus") or []
        parts = [
            str(cpus.get("model") or ""),
            f"{len(listed)} CPUs" if listed else "",
            f"Linux {_kernel(found)}",
        ]
        told.append(", ".join([f"{role} on {found.get('host') or '?'}", *(part for part in parts if part)]))
    return "; ".join(told) or "no recorder ran"


def _kernel(fingerprint: dict[str, Any]) -> str:
    kernel = fingerprint.get("kernel")
    return str(kernel.get("release") if isinstance(kernel, dict) else kernel)


def _placement(run: Measured) -> str:
    placement = run.run.meta.get("placement") or {}
    server, load = cpu_list(run.server_cpus), cpu_list(run.load_cpus)
    said = f"server CPUs {server}, load CPUs {load}"
    if placement.get("separated") is False or _overlap(run):
        return f"{said}: *not separated*{_because(placement)}"
    said += f", by {placement['connection']}" if placement.get("connection") else ""
    verified = placement.get("verified")
    if verified is None:
        return f"{said}; not verified"
    return f"{said}; verified while running" if verified else f"{said}: *not separated*{_because(placement)}"


def _because(placement: dict[str, Any]) -> str:
    reason = placement.get("reason") or placement.get("how")
    return f" ({reason})" if reason else ""


def _overlap(run: Measured) -> bool:
    """Whether server and load can have shared a core: no sets, a common CPU, or thread siblings."""
    if not run.shared_host:
        return False
    if run.server_cpus is None or run.load_cpus is None:
        return True
    if set(run.server_cpus) & set(run.load_cpus):
        return True
    cpus = run.run.fingerprint("server").get("cpus") or {}
    listed = cpus.get("list") or cpus.get("cpus") or []
    cores = {
        entry.get("cpu"): (entry.get("package"), entry.get("core"))
        for entry in listed
        if isinstance(entry, dict)
    }
    server_cores = {cores[cpu] for cpu in run.server_cpus if cpu in cores}
    return any(cores.get(cpu) in server_cores for cpu in run.load_cpus)


def cpu_list(cpus: tuple[int, ...] | None) -> str:
    """Write CPUs as taskset does."""
    if cpus is None:
        return "not given (whole host)"
    spans: list[list[int]] = []
    for cpu in cpus:
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _windows(runs: Sequence[Measured]) -> str:
    """Measured seconds of each repeat, and the interval of the recorder."""
    seconds = [f"{run.quantities.values['load.seconds'].rate:.1f}" for run in runs if run.run.result]
    intervals = {run.window.interval_ns / 1e9 for run in runs if run.window}
    ticks = " / ".join(f"{interval:g} s" for interval in sorted(intervals))
    return f"{' / '.join(seconds) or '?'} s{f', a tick every {ticks}' if ticks else ''}"


def _notes(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    """What happened in windows and does no harm: each text once, with its sides."""
    told: dict[str, list[str]] = {}
    for side, runs in zip(sides, measured, strict=True):
        for note in dict.fromkeys(note for run in runs for note in run.quantities.notes):
            told.setdefault(note, []).append(side.name)
    return [f"{note} ({', '.join(names)})" for note, names in told.items()]


def _multiplexed(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> str:
    """How connections were served, where one side's had no threads of their own."""
    kinds = [_joined(connections(run.run.result or {}) for run in runs) for runs in measured]
    if all(kind == "thread" for kind in kinds):
        return ""
    return "; ".join(f"{side.name} {kind}" for side, kind in zip(sides, kinds, strict=True))


def _repeats(side: Side) -> str:
    missing = "".join(f", missing {run} ({reason})" for run, reason in side.missing)
    return f"{side.name} {len(side.runs)}{missing}"


def _recorder(runs: Sequence[Measured]) -> str:
    """CPU share of the recorder, over all repeats of a side."""
    found = [cost for run in runs if (cost := run.quantities.get("process.recorder.cpu"))]
    if not found:
        return f"not measured: {runs[0].quantities.why('process.recorder.cpu')}"
    if sum(cost.count or 0 for cost in found) < STEPS:
        return "under three steps of its clock"
    return f"{100 * sum(cost.rate for cost in found) / len(found):.2f} % of a core"
