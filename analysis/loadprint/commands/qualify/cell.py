"""Reports one cell: its lines, burst and sustained levels, and what invalidates it."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint import numbers
from loadprint.commands.qualify import cell_rows
from loadprint.commands.qualify.measure import Observed, Sheet, voids
from loadprint.commands.qualify.party_differences import Configuration, Differing
from loadprint.commands.qualify.qualify_report import CellReport, Exhausted, LevelLine
from loadprint.commands.qualify.spec import Spec
from loadprint.statistics import stats

MAX_NAMES = 3


def report(sheet: Sheet, setting: Configuration, spec: Spec, *, by_type: bool) -> CellReport:
    """Judge a measured cell and report it."""
    scope = cell_rows.scope_of(sheet, spec, by_type=by_type)
    lines = cell_rows.lines(sheet, spec, scope)
    differing = (("work", setting.work), ("configuration", setting.invalidating))
    reasons = [(f"not the same {what}", named(differences)) for what, differences in differing if differences]
    reasons += voids(sheet, spec)
    sides = (("baseline", sheet.baseline), ("candidate", sheet.candidate))
    same_operation = all(name != "operation" for name, _, _ in setting.work)
    return CellReport(
        name=sheet.name,
        title=_title(sheet),
        threads=sheet.candidate.part.threads,
        load="equal-load" if scope.equal_load else "saturation",
        lines=tuple(cell_rows.void(line, comparable=same_operation) if reasons else line for line in lines),
        levels=() if scope.equal_load else tuple(_levels(name, side) for name, side in sides),
        voids=tuple(reasons),
        notes=tuple(
            f"{name}: {run} is missing ({reason})"
            for name, side in sides
            for run, reason in side.part.missing
        ),
    )


def named(differences: Sequence[Differing]) -> str:
    """Return differences as one line: name, baseline | candidate."""
    return numbers.listed([f"{name} {old} | {new}" for name, old, new in differences], MAX_NAMES, "; ")


def _title(sheet: Sheet) -> str:
    part = sheet.candidate.part
    workload = part.runs[0].result.workload or part.plan.workload or "?"
    load = "saturation"
    if part.fraction is not None:
        rates = [
            f"{rate.rate:,.0f}/s" if (rate := side.runs[0].quantities.get("load.rate")) else "?"
            for side in (sheet.baseline, sheet.candidate)
        ]
        load = f"at a rate of {' | '.join(dict.fromkeys(rates))}"
    threads = f", {part.threads} thread{'s' * (part.threads != 1)}" if part.threads else ""
    return f"{sheet.name}: {workload}{threads}, {load}"


def _levels(party: str, side: Observed) -> LevelLine:
    measured = [(place, levels) for place, levels in enumerate(side.levels) if levels]
    exhausted = tuple(
        Exhausted(
            side.runs[place].run.id,
            step.second,
            side.in_operations(place, step.before) or 0.0,
            side.in_operations(place, step.after) or 0.0,
        )
        for place, levels in measured
        for step in levels.steps
    )
    return LevelLine(
        party,
        side.seconds,
        stats.mean(side.in_operations(place, levels.burst) for place, levels in measured),
        min((levels.burst_s for _, levels in measured), default=None),
        stats.mean(value for runs in side.sustained for value in runs) if measured else None,
        exhausted,
    )
