"""Draws a study's figures from its executions and writes them as SVG files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadprint.commands.ab.result import TREATMENT
from loadprint.commands.study import figure_file
from loadprint.commands.study.experiments import Experiment
from loadprint.commands.study.observations import Absent, Observations, Values
from loadprint.commands.study.published import rows
from loadprint.commands.study.side_ratios import ratio_of
from loadprint.commands.study.study_file import Ratio, Study
from loadprint.errors import InputError
from loadprint.plotting import study_plot, style
from loadprint.plotting.study_plot import Bar, Curve, Dot
from loadprint.statistics.stats import Estimate, t_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Known = Mapping[str, Observations | Experiment]
QUANTITIES = {
    "queries": "queries/s",
    "cpu": "CPU of the server, cores",
    "efficiency": "queries per CPU-second",
}


def write(study: Study, known: Known, page: Path) -> tuple[tuple[str, str], ...]:
    """Write each figure that has its execution as PAGE-N.svg, and return its title and its file's name."""
    written = []
    with style.styled():
        for number, figure in enumerate(study.figures, start=1):
            seen = known.get(figure.experiment if figure.kind == "windows" else figure.campaign)
            if seen is None:
                continue
            file = page.with_name(f"{page.stem}-{number}.svg")
            style.save(DRAWN[figure.kind](figure, seen, study), file)
            written.append((figure.title, file.name))
    return tuple(written)


def _lines(figure: figure_file.Lines, seen: Observations, _: Study) -> Figure:
    curves = []
    quantity = ""
    for name, pattern in figure.series.items():
        points = {}
        for side, described in seen.execution["sides"].items():
            if not described or not fnmatchcase(side, pattern):
                continue
            if values := _known(seen, figure.row, side):
                quantity = values.quantity
                points[float(described["threads"])] = _scaled(values)
        if points:
            curves.append(Curve(name, points))
    panels = [("measured here", curves)]
    if figure.published:
        panels.append(("published", _printed(figure.published)))
    return study_plot.curves(panels, "connections", quantity)


def _ratios(figure: figure_file.Ratios, seen: Observations, study: Study) -> Figure:
    dots = []
    for claim in study.claims:
        rule = claim.judge
        if isinstance(rule, Ratio) and claim.campaign == figure.campaign:
            try:
                value = ratio_of(seen, rule.row, rule.side, rule.against).value
            except Absent:
                value = None
            dots.append(Dot(claim.id, value, rule.published))
    return study_plot.dots(figure.title, dots, "ratio", ratios=True)


def _levels(figure: figure_file.Levels, seen: Observations, _: Study) -> Figure:
    known = {seen.resolved(side): _known(seen, figure.row, side) for side in figure.sides}
    quantity = next((values.quantity for values in known.values() if values), "")
    dots = [Dot(side, _scaled(values) if values else None) for side, values in known.items()]
    return study_plot.dots(figure.title, dots, quantity, ratios=False)


def _windows(figure: figure_file.Windows, seen: Experiment, _: Study) -> Figure:
    bars = [
        Bar(window.begin_s, window.end_s, value, window.variant == TREATMENT)
        for window in seen.result.windows
        if (value := getattr(window, figure.quantity)) is not None
    ]
    return study_plot.windows(figure.title, bars, QUANTITIES[figure.quantity])


def _known(seen: Observations, row: str, side: str) -> Values | None:
    try:
        return seen.values(row, side)
    except Absent:
        return None


def _scaled(values: Values) -> Estimate:
    return t_interval([value * values.factor for value in values.repeats])


def _printed(printed: figure_file.Printed) -> list[Curve]:
    table = rows(printed.file)
    try:
        return [
            Curve(name, {float(row[printed.x]): Estimate(float(row[column])) for row in table})
            for name, column in printed.columns.items()
        ]
    except (KeyError, ValueError) as error:
        raise InputError(
            printed.file, f"has no such figures ({error})", "correct the study's figure"
        ) from error


DRAWN: dict[str, Callable[[Any, Any, Study], Figure]] = {
    "lines": _lines,
    "ratios": _ratios,
    "levels": _levels,
    "windows": _windows,
}
