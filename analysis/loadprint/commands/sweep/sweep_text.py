"""Texts of a sweep: its dimensions, host, missing runs and best connection counts."""

from __future__ import annotations

from collections.abc import Mapping

from loadprint import numbers
from loadprint.commands.sweep import cells
from loadprint.commands.sweep.cells import SweepCell, Swept
from loadprint.judging.void import CLIENT_BOUND
from loadprint.rendering.pivot import Pivot

NEARLY = 0.95  # of the best throughput


def title(swept: Swept) -> str:
    """Name and title of the campaign, and its scale."""
    campaign = swept.execution.campaign
    scale = f", scale {', '.join(campaign.scale)}" if campaign.scale else ""
    return f"{campaign.name}: {campaign.title}{scale}"


def facts(swept: Swept) -> tuple[tuple[str, str], ...]:
    """What was measured, where and how often."""
    campaign = swept.execution.campaign
    operations = dict.fromkeys(cell.operation.partition(" (")[0] for cell in swept.cells if cell.runs)
    server, load = _cpus(swept, "server"), _cpus(swept, "load")
    cpus = f"{server or '?'} CPU{'s' if server != 1 else ''}"
    variables = ", ".join(f"{name} {value}" for name, value in campaign.variables.items())
    profile = campaign.server.profile
    server_text = f"{_version(swept)}{f', profile {profile}' if profile else ''}, on {cpus}"
    repeats = sorted({len(cell.runs) for cell in swept.cells})
    lines = [
        ("operation", " | ".join(operations)),
        ("variables", variables),
        ("server", f"{server_text}; load on {load or '?'}"),
        (
            "repeats",
            " to ".join(str(count) for count in dict.fromkeys((repeats[0], repeats[-1])))
            + " per cell, means are shown",
        ),
        ("warm-up", swept.execution.warm_promise or "none declared"),
        ("missing", "; ".join(f"{run} ({reason})" for run, reason in swept.missing)),
    ]
    return tuple((label, text) for label, text in lines if text)


def warnings(swept: Swept) -> tuple[str, ...]:
    """Warnings: client-bound cells, and those of merged executions."""
    bound = [cell.name for cell in swept.cells if CLIENT_BOUND in cell.doubts]
    texts = (f"client-bound, the server may be capable of more: {', '.join(bound)}",) if bound else ()
    return (*swept.notes, *texts)


def best(
    swept: Swept, grid: Mapping[tuple[str, str], SweepCell], rows: list[str], columns: list[str]
) -> tuple[Pivot, tuple[str, ...]]:
    """The best connection count of every column, and its ratio to the number of the server's CPUs."""
    cores = _cpus(swept, "server")
    heads = ("best connections", "operations /s", f"fewest within {100 - 100 * NEARLY:.0f} %", "best / CPU")
    body: list[tuple[float | None, ...]] = []
    texts = []
    for column in columns:
        # an execution's plan may call a cell anything
        reached = {
            int(row): value
            for row in rows
            if row.isdecimal()
            and (cell := grid.get((row, column)))
            and (value := cell.mean(cells.operations)) is not None
        }
        if not reached:
            body.append((None,) * len(heads))
            continue
        top = max(reached, key=lambda count: reached[count])
        fewest = min(count for count, value in reached.items() if value >= NEARLY * reached[top])
        body.append((float(top), reached[top], float(fewest), top / cores if cores else None))
        near = "" if fewest == top else f"; {fewest} reach {100 * NEARLY:.0f} % of it"
        texts.append(f"{column} {top} ({numbers.number(reached[top], 0)}/s{near})")
    where = (
        f"on {cores} CPU{'s' if cores != 1 else ''} of the server" if cores else "number of CPUs not recorded"
    )
    sentence = f"Best connection count {where}: {'; '.join(texts)}."
    pivot = Pivot(
        "best", "Best connection count", "", "", tuple(columns), heads, tuple(body), columns_differ=True
    )
    return pivot, (sentence,)


def _cpus(swept: Swept, role: str) -> int | None:
    sets = [run.server_cpus if role == "server" else run.load_cpus for run in swept.runs]
    return next((len(cpus) for cpus in sets if cpus), None)


def _version(swept: Swept) -> str:
    versions = dict.fromkeys(run.run.server.version for run in swept.runs if run.run.server)
    return " / ".join(versions) or "server not recorded"
