"""Draws charts over time: a line per run in its side's colour, the measured phase, spikes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from loadprint.plotting import side_colours, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from loadprint.rendering.report_data import Course, Line, Report, RunOf

MAX_CHARTS = 7  # per page
HEIGHT = 1.25
APART = 0.05  # of the longest window; beyond it, the windows of runs are reported as different
NAMED = 0.1  # of the axis; a shorter phase has no space for its name


def draw(report: Report) -> Iterator[tuple[str, Figure]]:
    """Figures by section, (name, figure) each. Draw and save within `style.styled()`."""
    for section in dict.fromkeys(course.section for course in report.courses):
        plain = [course for course in report.courses if course.section == section and course.lines]
        charts = [part for course in plain for part in _apart(course, report)]
        pages = [charts[first : first + MAX_CHARTS] for first in range(0, len(charts), MAX_CHARTS)]
        for number, page in enumerate(pages, start=1):
            name = f"time-{section}" if number == 1 else f"time-{section}-{number}"
            yield name, _page(report, page)


Chart = tuple["Course", int | None]  # of a stack: one chart per side, of its first run


def _apart(course: Course, report: Report) -> list[Chart]:
    if not course.parts:
        return [(course, None)]
    drawn = {line.run for line in course.lines}
    firsts = [
        next((run for run in report.runs_of(side) if run in drawn), None) for side in range(len(report.sides))
    ]
    return [(course, run) for run in firsts if run is not None]


def _page(report: Report, charts: Sequence[Chart]) -> Figure:
    drawn, all_axes = style.sheet(len(charts), height=HEIGHT, sharex=True)
    for axes, (course, run) in zip(all_axes, charts, strict=True):
        _chart(axes, report, course, run)
    _phase_names(all_axes[0], report)
    all_axes[-1].set_xlabel("seconds since the start of the measured phase")
    _legend(drawn, report, charts)
    return drawn


def _chart(axes: Axes, report: Report, course: Course, run: int | None) -> None:
    _window(axes, report)
    colours = side_colours.palette(report)
    if run is None:
        for line in course.lines:
            colour = colours[report.runs[line.run].side]
            axes.plot(line.seconds, line.values * course.factor, color=colour, linewidth=0.9)
        drawn = [report.runs[place] for place in dict.fromkeys(line.run for line in course.lines)]
        _spikes(axes, drawn, colours)
        axes.set_title(course.title)
    else:
        of_run = [line for line in course.lines if line.run == run]
        _stacked(axes, course, of_run)
        side = report.sides[report.runs[run].side]
        axes.set_title(f"{course.title}: {side.name}, repeat {report.runs[run].repeat}")
    axes.set_ylim(bottom=0)
    axes.set_ylabel(course.shown)
    style.plain_ticks(axes.yaxis)


def _stacked(axes: Axes, course: Course, lines: Sequence[Line]) -> None:
    order = sorted(lines, key=lambda line: course.parts.index(line.part))
    if not order:
        return
    shortest = min(len(line.values) for line in order)
    values = [np.nan_to_num(line.values[:shortest]) * course.factor for line in order]
    colours = [style.colour(course.parts.index(line.part)) for line in order]
    axes.stackplot(
        order[0].seconds[:shortest], values, colors=colours, labels=[line.part for line in order], linewidth=0
    )
    if course.ceiling is not None:
        axes.axhline(course.ceiling, color="black", linewidth=0.7, linestyle="--")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.0)


def _window(axes: Axes, report: Report) -> None:
    windows = [run.window for run in report.runs if run.window is not None]
    if windows:
        begin, end = median(span.begin_s for span in windows), median(span.end_s for span in windows)
        axes.axvspan(begin, end, color=style.SHADE, linewidth=0, zorder=0)


def _phase_names(axes: Axes, report: Report) -> None:
    """Names of the phases at the top of the first chart."""
    spans = [span for run in report.runs for span in run.phases]
    for name in dict.fromkeys(span.name for span in spans):
        begin = median(span.begin_s for span in spans if span.name == name)
        end = median(span.end_s for span in spans if span.name == name)
        left, right = axes.get_xlim()
        begin, end = max(begin, left), min(end, right)
        if end - begin < NAMED * (right - left):
            continue
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.7, "linewidth": 0}
        style.name_from(axes, begin, name, 2, bbox=box, zorder=5)


def _spikes(axes: Axes, runs: Sequence[RunOf], colours: Mapping[int, str]) -> None:
    for run in runs:
        for spike in run.spikes:
            axes.axvspan(spike.begin_s, spike.end_s, ymax=0.04, color=colours[run.side], linewidth=0)


def _legend(drawn: Figure, report: Report, charts: Sequence[Chart]) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415  slow to import

    drawn_sides = [
        report.runs[line.run].side for course, run in charts if run is None for line in course.lines
    ]
    handles: list[Line2D | Patch] = [*side_colours.handles(report, drawn_sides)]
    ends = [run.window.end_s for run in report.runs if run.window is not None]
    apart = bool(ends) and max(ends) - min(ends) > APART * max(ends)
    handles.append(Patch(color=style.SHADE, label="measured, in the median run" if apart else "measured"))
    if any(run.spikes for run in report.runs):
        handles.append(Patch(color=style.GREY, label="bottom: checkpoint spikes"))
    drawn.legend(handles=handles, loc="outside lower center", ncols=5)
