"""Computes the table of one run: each row's mean in the window, its p95 and maximum over time.

A row has a course if all that it is computed from was read in every interval: the same formula is applied to
each interval. Rates are also divided by the server's CPU time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from loadprint.catalogue.files import Catalogue
from loadprint.catalogue.metric import Metric
from loadprint.errors import InputError
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.sides import single
from loadprint.reading.window import part_of
from loadprint.rendering.pivot import Pivot, PivotReport, RowUnit
from loadprint.tables import run_metrics
from loadprint.tables.rows import evaluate
from loadprint.tables.title import description, title

COLUMNS = ("mean", "p95", "max", "per CPU-s")
RATES = {"1/s", "B/s"}
NOTE = (
    "p95 and max: over the intervals of the recorder, or of the generator; per CPU-s: of the server process"
)


def report(
    path: Path,
    begin: float | None,
    end: float | None,
    *,
    everything: bool = False,
    rows: Catalogue | None = None,
) -> PivotReport:
    """Return the table of a run directory, or of the part from `begin` to `end` seconds of its window.

    Raises InputError if the recording cannot be used or has no such part.
    """
    side = single(path)
    (run,) = side.runs
    whole = (0.0, _length(run))
    part = (begin or 0.0, whole[1] if end is None else end)
    if not 0 <= part[0] < part[1] <= whole[1]:
        what = f"is not a part of a measure phase of {whole[1]:.1f} s"
        raise InputError(f"--from {part[0]:g} --to {part[1]:g}", what, "give seconds from its start")
    store = Store()
    chosen = run if part == whole else part_of(run, store, *part)
    measured = gather(chosen, store, charted=True, rows=rows)
    facts = [
        ("run", title([[measured]])),
        ("side", description(side, [measured], is_reference=False, is_apart=False)),
    ]
    if part != whole:
        facts.append(("part", f"{part[0]:g} to {part[1]:g} s of the measure phase"))
    warnings = tuple(dict.fromkeys(measured.quantities.warnings))
    return PivotReport(
        run.id, tuple(facts), tuple(_pivots(measured, rows, everything=everything)), (NOTE,), warnings
    )


def _length(run: Run) -> float:
    """Seconds of the measure phase; infinite without a load, or an end."""
    measure = run.phase("measure")
    if measure is None or measure.end_ns is None:
        return math.inf
    return (measure.end_ns - measure.begin_ns) / 1e9


def _pivots(measured: Measured, rows: Catalogue | None, *, everything: bool) -> Iterator[Pivot]:
    sections: dict[str, list[tuple[Metric, tuple[float | None, ...]]]] = {}
    for section, metric in run_metrics.of_run(measured, rows):
        value, _ = evaluate(metric, measured)
        wanted = everything or metric.view in {"always", "measured"} or (metric.view == "nonzero" and value)
        if value is not None and wanted:
            figures = (value, *_over_time(metric, measured), _per_cpu_second(metric, value, measured))
            sections.setdefault(section, []).append((metric, figures))
    for section, entries in sections.items():
        names = tuple(metric.label for metric, _ in entries)
        units = tuple(RowUnit(metric.unit, metric.shown, metric.factor) for metric, _ in entries)
        cells = tuple(values for _, values in entries)
        key = section.lower().replace(" ", "_")
        yield Pivot(key, section, "", "", names, COLUMNS, cells, units=units)


def _over_time(metric: Metric, measured: Measured) -> tuple[float | None, float | None]:
    """p95 and maximum of the row's value in the intervals of the window; None without a course."""
    course = measured.quantities.course(metric.formula)
    if course is None:
        return None, None
    finite = course.values[course.inside & np.isfinite(course.values)]
    return (float(np.quantile(finite, 0.95)), float(finite.max())) if len(finite) > 1 else (None, None)


def _per_cpu_second(metric: Metric, value: float, measured: Measured) -> float | None:
    cpu = measured.quantities.get("process.server.cpu")
    return value / cpu.rate if cpu and cpu.rate > 0 and metric.unit in RATES else None
