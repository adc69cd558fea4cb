"""Gathers the report of an A/B on a live server: effects, windows, charts over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadprint.commands.ab import show
from loadprint.commands.ab.result import TREATMENT, Result
from loadprint.commands.report import charts
from loadprint.commands.report.collect import assembled, with_absent
from loadprint.commands.report.page_charts import figure
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.sides import Side
from loadprint.rendering.report_data import Report

WIDTH, HEIGHT = 1000.0, 200.0  # of the drawing, in its own units


def is_experiment(words: Sequence[str]) -> bool:
    """Whether the operand is a run directory of `loadprint ab run`."""
    return len(words) == 1 and show.is_experiment(Path(words[0]))


def collect_experiment(path: Path) -> Report:
    """Report of one experiment. Raises InputError with the file that cannot be used."""
    experiment = show.result(path)
    run = open_run(path)
    store = Store()
    title = experiment.title or experiment.name
    sides = [Side(run.id, title, (run,))]
    sampled = charts.sample([(0, 0, run)], store)
    report = assembled(title, sides, [[gather(run, store)]], sampled, ab=experiment)
    # statements are counted, not the operations of a generator
    report = replace(
        report,
        sides=(replace(report.sides[0], operation="statement"),),
        made=(*experiment.facts, *report.made),
    )
    return with_absent(report, ("Over time", "Latency", "Histograms by eBPF", "Throughput over threads"))


def boxes(experiment: Result) -> list[dict[str, Any]]:
    """Windows with a value as bars from zero, of queries per CPU-second; `out`: it does not count."""
    known = [(window, value) for window in experiment.windows if (value := window.efficiency) is not None]
    if not known:
        return []
    begin, end = known[0][0].begin_s, max(window.end_s for window, _ in known)
    scale = WIDTH / max(end - begin, 1e-9)
    largest = max(value for _, value in known)
    drawn = []
    for window, value in known:
        out = window.number in experiment.excluded
        text = f"{window.name}: {figure(value)} queries per CPU-second"
        drawn.append(
            {
                "left": round(scale * (window.begin_s - begin), 1),
                "width": round(scale * (window.end_s - window.begin_s), 1),
                "top": round(HEIGHT - HEIGHT * value / largest, 1),
                "height": round(HEIGHT * value / largest, 1),
                "treatment": window.variant == TREATMENT,
                "out": out,
                "label": f"{text}, not counted" if out else text,
            }
        )
    return drawn


def highest(experiment: Result) -> str:
    """Queries per CPU-second of the highest bar."""
    return figure(max((window.efficiency or 0.0 for window in experiment.windows), default=0.0))
