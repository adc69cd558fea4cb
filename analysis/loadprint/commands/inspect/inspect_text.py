"""Renders the report of `loadprint inspect` as text."""

from __future__ import annotations

from loadprint.commands.inspect.inspect_run import RoleReport, RunReport
from loadprint.numbers import number
from loadprint.rendering.printout import grid, labelled, reasons, wrapped

LABEL = 11  # characters of a label, with the blanks that follow it
HEADS = ("probe", "status", "ticks", "failed", "skipped", "read", "KiB")


def render(report: RunReport) -> str:
    """Return the report as lines, and one table for each role."""
    ending = f": {report.reason}" if report.reason else ""
    size = number(sum(report.files.values()) / 1024, 0)
    phases = ", ".join(
        f"{name} {'unfinished' if length is None else f'{length:.1f} s'}" for name, length in report.phases
    )
    facts = [
        ("files", f"{len(report.files)}, {size} KiB; manifest {report.manifest}"),
        ("phases", phases or "none"),
    ]
    if report.result:
        totals = {name: report.result.get(name) for name in ("events", "queries", "errors")}
        counts = ", ".join(f"{count:,} {name}" for name, count in totals.items() if isinstance(count, int))
        seconds = report.result.get("seconds")
        facts.append(
            ("result", f"{counts} in {seconds:.3f} s" if isinstance(seconds, int | float) else counts)
        )
    lines = [f"{report.id}   {report.workload}, {report.status}{ending}", *labelled(facts, LABEL)]
    # a problem may have a command to copy: it is one line
    lines += [f"{'problem':<{LABEL}}{problem}" for problem in report.problems]
    for role in report.roles:
        lines += _role(role)
    return "\n".join(map(str.rstrip, lines)) + "\n"


def _role(role: RoleReport) -> list[str]:
    span = f"{role.ticks:,} ticks of {role.interval_s:g} s over {role.span_s:.1f} s, {role.missed} missed"
    head = f"{role.role} on {role.host}: {span}, ended by {role.ended}, {role.torn_bytes} torn bytes dropped"
    cost = f"cost not measured: {role.recorder_cost_reason}"
    if role.recorder_core_share is not None:
        rss = role.recorder_rss_bytes
        cost = (
            f"{role.recorder_cpu_us_per_sample:,.0f} µs of CPU per sample, "
            f"{100 * role.recorder_core_share:.3f} % of a core ({role.recorder_cpu_steps} clock steps)"
        ) + ("" if rss is None else f", {rss / 1048576:.1f} MiB resident")
    rows = [
        (
            probe.name,
            probe.status,
            f"{probe.ticks:,}",
            str(probe.failed),
            str(probe.skipped),
            "" if probe.read_us is None else f"{probe.read_us:,.0f} µs",
            f"{probe.bytes / 1024:.1f}",
        )
        for probe in role.probes
    ]
    why = reasons((probe.name, probe.reason) for probe in role.probes if probe.reason)
    return ["", *wrapped(head), *labelled([("recorder", cost)], LABEL), *grid((HEADS, *rows), left=2), *why]
