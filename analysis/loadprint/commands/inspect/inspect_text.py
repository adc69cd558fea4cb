"""Renders the report of `loadprint inspect` as text."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console
from rich.table import Table as Grid

from loadprint.commands.inspect.inspect_run import RoleReport, RunReport
from loadprint.numbers import number


def render(report: RunReport, width: int = 100) -> str:
    """Return the report as lines, and one table for each role."""
    console = Console(
        file=io.StringIO(), width=width, force_terminal=False, color_system=None, highlight=False
    )
    console.print(
        f"{report.id}   {report.workload}, {report.status}{f': {report.reason}' if report.reason else ''}"
    )
    size = number(sum(report.files.values()) / 1024, 0)
    console.print(f"files      {len(report.files)}, {size} KiB; manifest {report.manifest}")
    phases = ", ".join(
        f"{name} {'unfinished' if length is None else f'{length:.1f} s'}" for name, length in report.phases
    )
    console.print(f"phases     {phases or 'none'}")
    if report.result:
        counts = [
            f"{report.result[k]:,} {k}"
            for k in ("events", "queries", "errors")
            if isinstance(report.result.get(k), int)
        ]
        seconds = report.result.get("seconds")
        took = f" in {seconds:.3f} s" if isinstance(seconds, int | float) else ""
        console.print(f"result     {', '.join(counts)}{took}")
    for problem in report.problems:
        console.print(f"problem    {problem}", soft_wrap=True)
    for role in report.roles:
        _role(console, role)
    written = console.file
    assert isinstance(written, io.StringIO)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _role(console: Console, role: RoleReport) -> None:
    span = f"{role.ticks:,} ticks of {role.interval_s:g} s over {role.span_s:.1f} s, {role.missed} missed"
    console.print(
        f"\n{role.role} on {role.host}: {span}, ended by {role.ended}, {role.torn_bytes} torn bytes dropped"
    )
    if role.recorder_core_share is None:
        console.print(f"recorder   cost not measured: {role.recorder_cost_reason}")
    else:
        rss = (
            ""
            if role.recorder_rss_bytes is None
            else f", {role.recorder_rss_bytes / 1048576:.1f} MiB resident"
        )
        console.print(
            f"recorder   {role.recorder_cpu_us_per_sample:,.0f} µs of CPU per sample, "
            f"{100 * role.recorder_core_share:.3f} % of a core ({role.recorder_cpu_steps} clock steps){rss}"
        )
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in ("probe", "status", "ticks", "failed", "skipped", "read", "KiB", "reason"):
        grid.add_column(head, justify="left" if head in ("probe", "status", "reason") else "right")
    for probe in role.probes:
        read = "" if probe.read_us is None else f"{probe.read_us:,.0f} µs"
        grid.add_row(
            probe.name,
            probe.status,
            f"{probe.ticks:,}",
            str(probe.failed),
            str(probe.skipped),
            read,
            f"{probe.bytes / 1024:.1f}",
            probe.reason,
        )
    console.print(grid)
