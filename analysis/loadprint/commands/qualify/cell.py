"""One cell as the report tells it: its lines, burst and sustained levels, spread, and what voids it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint.commands.qualify import cell_rows
from loadprint.commands.qualify.components import Components, components
from loadprint.commands.qualify.measure import Observed, Sheet, voids
from loadprint.commands.qualify.party_differences import Configuration, Differing
from loadprint.commands.qualify.qualify_report import CellReport, Exhausted, LevelLine
from loadprint.commands.qualify.spec import Spec

MOST_NAMED = 3


def report(sheet: Sheet, setting: Configuration, spec: Spec, *, by_type: bool) -> CellReport:
    """Judge a measured cell and tell it."""
    how = cell_rows.scope(sheet, spec, by_type=by_type)
    lines = cell_rows.lines(sheet, spec, how)
    apart = (("work", setting.work), ("configuration", setting.spoiling))
    why = [(f"not the same {what}", named(found)) for what, found in apart if found]
    why += voids(sheet, spec)
    sides = (("baseline", sheet.baseline), ("candidate", sheet.candidate))
    told = () if how.equal_load else sides
    alike = all(name != "operation" for name, _, _ in setting.work)
    return CellReport(
        name=sheet.cell.name,
        title=_title(sheet),
        threads=sheet.cell.candidate.threads,
        load="equal-load" if how.equal_load else "saturation",
        lines=tuple(cell_rows.void(line, comparable=alike) if why else line for line in lines),
        levels=tuple(_levels(name, side) for name, side in told),
        spread=tuple((name, _spread(side)) for name, side in told),
        voids=tuple(why),
        notes=tuple(
            f"{name}: {run} is missing ({reason})"
            for name, side in sides
            for run, reason in side.part.missing
        ),
    )


def named(differences: Sequence[Differing]) -> str:
    """Differences in a line: name, baseline | candidate."""
    told = [f"{name} {old} | {new}" for name, old, new in differences[:MOST_NAMED]]
    more = len(differences) - MOST_NAMED
    return "; ".join(told) + (f" and {more} more" if more > 0 else "")


def _title(sheet: Sheet) -> str:
    part = sheet.cell.candidate
    workload = str((part.runs[0].result or {}).get("workload") or part.plan.get("workload") or "?")
    load = "saturation"
    if part.fraction is not None:
        rates = [
            f"{rate.rate:,.0f}/s" if (rate := side.runs[0].quantities.get("load.rate")) else "?"
            for side in (sheet.baseline, sheet.candidate)
        ]
        load = f"held to {' | '.join(dict.fromkeys(rates))}"
    threads = f", {part.threads} threads" if part.threads else ""
    return f"{sheet.cell.name}: {workload}{threads}, {load}"


def _levels(party: str, side: Observed) -> LevelLine:
    known = [(place, found) for place, found in enumerate(side.levels) if found]
    exhausted = tuple(
        Exhausted(
            side.runs[place].run.id,
            step.second,
            side.in_operations(place, step.before) or 0.0,
            side.in_operations(place, step.after) or 0.0,
        )
        for place, found in known
        for step in found.steps
    )
    return LevelLine(
        party,
        side.seconds,
        _mean([side.in_operations(place, found.burst) for place, found in known]),
        min((found.burst_s for _, found in known), default=None),
        _mean([value for runs in side.sustained for value in runs]) if known else None,
        exhausted,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _spread(side: Observed) -> Components:
    """Of operations a second, at their sustained level."""
    values = [[value for value in runs if value] for runs in side.sustained]
    seconds = [run.events_per_second for run in side.runs if round(run.step_s) == 1]
    return components(values, seconds)
