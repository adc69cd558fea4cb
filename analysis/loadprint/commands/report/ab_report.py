"""Gathers the report of an A/B on a live server: effects, windows, charts over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadprint.commands.ab import show
from loadprint.commands.ab.result import TREATMENT, Result, Window
from loadprint.commands.report import time_charts, unread_probes
from loadprint.commands.report.chart_text import figure
from loadprint.commands.report.collect import absent_of, made, runs_of, with_spikes
from loadprint.commands.report.settings import settings
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.sides import Side
from loadprint.rendering.report_data import Report, SideOf

WIDTH, HEIGHT = 1000.0, 200.0  # of the drawing, in its own units


@dataclass(frozen=True)
class Box:
    """A window as a bar over time; its height is queries per CPU-second; `out`: it does not count."""

    left: float
    width: float
    top: float
    height: float
    treatment: bool
    out: bool
    label: str


def is_experiment(words: Sequence[str]) -> bool:
    """Whether the operand is a run directory of `loadprint ab run`."""
    return len(words) == 1 and show.is_experiment(Path(words[0]))


def collect_experiment(path: Path) -> Report:
    """Report of one experiment. Raises InputError with the file that cannot be used."""
    experiment = show.result(path)
    run = open_run(path)
    store = Store()
    side = Side(run.id, experiment.title or experiment.name, (run,))
    measured = [[gather(run, store)]]
    runs, _ = runs_of([side])
    sampled = time_charts.sample([(0, 0, run)], store)
    drawn, still = time_charts.courses(sampled, [], [], {})
    return Report(
        title=experiment.title or experiment.name,
        compared=f"A/B on a live server, schedule {experiment.schedule}",
        sides=(SideOf(side.name, side.label, "statement"),),
        runs=with_spikes(runs, sampled),
        table=None,
        pivots=None,
        courses=drawn,
        percentiles=(),
        distributions=(),
        scaled=(),
        settings=settings([side], measured),
        made=(*experiment.facts, *made([side], None)),
        absent=absent_of(
            {"Over time": drawn, "Latency": (), "Histograms by eBPF": (), "Throughput over threads": ()}
        ),
        probes=unread_probes.lost([side.name], measured),
        ab=experiment,
        notes={"still": ", ".join(still)} if still else {},
    )


def boxes(experiment: Result) -> tuple[Box, ...]:
    """Windows as bars from zero; those without a value are left out."""
    known = [(window, value) for window in experiment.windows if (value := window.efficiency) is not None]
    if not known:
        return ()
    begin, end = known[0][0].begin_s, max(window.end_s for window, _ in known)
    largest = max(value for _, value in known)
    return tuple(_box(experiment, window, value, (begin, end, largest)) for window, value in known)


def highest(experiment: Result) -> str:
    """Queries per CPU-second of the highest bar."""
    return figure(max((window.efficiency or 0.0 for window in experiment.windows), default=0.0))


def _box(experiment: Result, window: Window, value: float, largest: tuple[float, float, float]) -> Box:
    begin, end, highest = largest
    scale = WIDTH / max(end - begin, 1e-9)
    height = HEIGHT * value / highest
    out = window.number in experiment.excluded
    label = f"{window.name}: {figure(value)} queries per CPU-second{', not counted' if out else ''}"
    return Box(
        round(scale * (window.begin_s - begin), 1),
        round(scale * (window.end_s - window.begin_s), 1),
        round(HEIGHT - height, 1),
        round(height, 1),
        window.variant == TREATMENT,
        out,
        label,
    )
