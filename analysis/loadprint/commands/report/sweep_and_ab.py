"""Gathers the reports of an A/B on a live server and of an execution with a matrix of sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadprint.catalogue.files import Catalogue
from loadprint.commands.ab import show
from loadprint.commands.operands import MAX_SIDES, fractions
from loadprint.commands.report import distributions
from loadprint.commands.report.collect import assembled, placed
from loadprint.commands.report.scaling import scaled
from loadprint.commands.sweep import cells, sweep_pivots
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.sides import PLAN, Side, read_plan, side_of
from loadprint.rendering.report_data import ReportPage

MOST_CHARTED = 6  # sides whose runs are drawn over time; more are unreadable


def collect_sweep(path: Path, rows: Catalogue | None = None, reference: str | None = None) -> ReportPage:
    """Report of a whole execution. Raises InputError where it has no matrix of sides."""
    swept = cells.read(path)
    pivots = sweep_pivots.of(swept, reference)
    measured = [cell for cell in swept.cells if cell.runs]
    sides = [side_of(swept.path, swept.execution, cell.name) for cell in measured]
    count = min(MOST_CHARTED, len(sides))
    # evenly spread where there are many
    chosen = {round(place * (len(sides) - 1) / max(1, count - 1)) for place in range(count)}
    charted = [(place, side, run) for place, side, run in placed(sides) if side in chosen]
    store = Store()
    report = assembled(
        pivots.title,
        sides,
        [list(cell.runs) for cell in measured],
        [
            (place, side, gather(run, store, charted=True, rows=rows).quantities)
            for place, side, run in charted
        ],
        rows=rows,
        pivots=pivots,
        percentiles=distributions.latency(charted, len(sides), store)[0],
        scaled=scaled(swept),
    )
    if len(sides) > MOST_CHARTED:
        names = ", ".join(sides[place].name for place in sorted(chosen))
        note = f"{MOST_CHARTED} of {len(sides)} sides are drawn over time: {names}."
        report = replace(report, notes={**report.notes, "charted": note})
    return report


def is_sweep(words: Sequence[str]) -> bool:
    """Whether the operand is an execution with too many sides for one table."""
    path = Path(words[0])
    if len(words) != 1 or not (path / PLAN).is_file():
        return False
    execution = read_plan(path)
    return len(execution.sides) > MAX_SIDES and not fractions(execution)


def is_experiment(words: Sequence[str]) -> bool:
    """Whether the operand is a run directory of `loadprint ab run`."""
    return len(words) == 1 and show.is_experiment(Path(words[0]))


def collect_experiment(path: Path, rows: Catalogue) -> ReportPage:
    """Report of one experiment. Raises InputError with the file that cannot be used."""
    experiment = show.result(path)
    run = open_run(path)
    measured = gather(run, Store(), charted=True, rows=rows)
    title = experiment.title or experiment.name
    sides = [Side(run.id, title, (run,))]
    sampled = [(0, 0, measured.quantities)]
    report = assembled(title, sides, [[measured]], sampled, rows=rows, ab=experiment)
    # statements are counted, not the operations of a generator
    return replace(
        report,
        sides=(replace(report.sides[0], operation="statement"),),
        made=(*experiment.facts, *report.made),
    )
