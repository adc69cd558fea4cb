"""Draws the figures of a report and writes them as SVG and PNG files.

Charts over time have a line per run in its side's colour, the measured phase and spikes; latency and
histograms are small charts in two columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from loadprint.errors import as_input_error
from loadprint.plotting import ratio_plot, scaling_plot, style
from loadprint.safe_files import require_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from loadprint.rendering.report_data import Course, Distribution, Line, Percentiles, ReportPage

FORMATS = ("svg", "png")
MAX_COURSES, MAX_CHARTS, MAX_PANELS = 7, 8, 4  # per page
COURSE_HEIGHT, CHART_HEIGHT = 1.25, 1.9
APART = 0.05  # of the longest window; beyond it, the windows of runs are reported as different
NAMED = 0.1  # of the axis; a shorter phase has no space for its name
SHARES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
MILLI = 1e3
Colours = Mapping[int, str]
Each = TypeVar("Each")


def write(report: ReportPage, directory: Path, formats: tuple[str, ...] = FORMATS) -> tuple[Path, ...]:
    """Write every figure with values; return the files in order. Raises InputError."""
    with as_input_error(directory, "name a writable directory"):
        require_output(directory, create=True)
    files = []
    with style.styled():
        for name, drawn in _figures(report):
            for ending in formats:
                files.append(directory / f"{name}.{ending}")
                style.save(drawn, files[-1])
                drawn.set_layout_engine("none")  # every format has the layout of the first
    return tuple(files)


def colours(report: ReportPage) -> dict[int, str]:
    """Colour of each side by its position; with more sides than colours, only of those drawn."""
    places: Iterable[int] = range(len(report.sides))
    if len(report.sides) > len(style.COLOURS):
        runs = [line.run for course in report.courses for line in course.lines]
        runs += [curve.run for percentile in report.percentiles for curve in percentile.curves]
        places = sorted({report.runs[run].side for run in runs} | set(_filled(report.distributions)))
    return {side: style.colour(place) for place, side in enumerate(places)}


def _filled(distributions: Iterable[Distribution]) -> list[int]:
    return [
        side
        for distribution in distributions
        for side, shares in enumerate(distribution.shares)
        if shares is not None
    ]


def _figures(report: ReportPage) -> Iterator[tuple[str, Figure]]:
    """Each figure with its name."""
    if report.table is not None and (drawn := ratio_plot.draw(report.table)) is not None:
        yield "ratios", drawn
    tints = colours(report)
    for section in dict.fromkeys(course.section for course in report.courses):
        plain = [course for course in report.courses if course.section == section and course.lines]
        charts = [(course, run) for course in plain for run in _first_runs(course, report)]
        for name, _, courses in _pages(f"time-{section}", charts, MAX_COURSES):
            yield name, _over_time(report, courses, tints)
    kinds = [percentile for percentile in report.percentiles if percentile.curves][:MAX_CHARTS]
    if kinds:
        sides = [report.runs[curve.run].side for kind in kinds for curve in kind.curves]
        drawn, all_axes = _small_charts(report, len(kinds), sides, "a line per repeat", tints)
        for axes, percentiles in zip(all_axes, kinds, strict=True):
            _percentiles(axes, report, percentiles, tints)
        yield "latency", drawn
    for section in dict.fromkeys(distribution.section for distribution in report.distributions):
        chosen = [distribution for distribution in report.distributions if distribution.section == section]
        for name, _, page in _pages(f"histogram-{section.replace('_', '-')}", chosen, MAX_CHARTS):
            drawn, all_axes = _small_charts(report, len(page), _filled(page), "all repeats together", tints)
            for axes, chart in zip(all_axes, page, strict=True):
                _steps(axes, chart, tints)
            yield name, drawn
    for name, first, scaled in _pages("scaling", report.scaled, MAX_PANELS):
        yield name, scaling_plot.page(scaled, first)


def _pages(name: str, charts: Sequence[Each], most: int) -> Iterator[tuple[str, int, Sequence[Each]]]:
    """Pages with at most `most` charts, and the position of the first; from the second on with a number."""
    for number, first in enumerate(range(0, len(charts), most), start=1):
        yield name if number == 1 else f"{name}-{number}", first, charts[first : first + most]


def _first_runs(course: Course, report: ReportPage) -> list[int | None]:
    """Of a stack the first run of each side, which has a chart; else None."""
    if not course.parts:
        return [None]
    drawn = {line.run for line in course.lines}
    firsts = ([run for run in report.runs_of(side) if run in drawn] for side in range(len(report.sides)))
    return [runs[0] for runs in firsts if runs]


def _over_time(report: ReportPage, charts: Sequence[tuple[Course, int | None]], tints: Colours) -> Figure:
    drawn, all_axes = style.sheet(len(charts), height=COURSE_HEIGHT, sharex=True)
    for axes, (course, run) in zip(all_axes, charts, strict=True):
        _course(axes, report, course, run, tints)
    _phase_names(all_axes[0], report)
    all_axes[-1].set_xlabel("seconds since the start of the measured phase")
    sides = [report.runs[line.run].side for course, run in charts if run is None for line in course.lines]
    ends = [run.window.end_s for run in report.runs if run.window is not None]
    apart = bool(ends) and max(ends) - min(ends) > APART * max(ends)
    patches = [(style.SHADE, "measured, in the median run" if apart else "measured")]
    if any(run.spikes for run in report.runs):
        patches.append((style.GREY, "bottom: checkpoint spikes"))
    _legend(drawn, report, sides, tints, patches)
    return drawn


def _legend(
    drawn: Figure,
    report: ReportPage,
    sides: Iterable[int],
    tints: Colours,
    patches: Iterable[tuple[str, str]] = (),
    **options: Any,
) -> None:
    """The sides that a figure draws in their order, then (colour, label) of `patches`."""
    from matplotlib.patches import Patch  # noqa: PLC0415  slow to import

    lines = style.handles((tints[side], report.sides[side].name) for side in sorted(set(sides)))
    handles = [*lines, *(Patch(color=colour, label=label) for colour, label in patches)]
    drawn.legend(handles=handles, loc="outside lower center", ncols=5, **options)


def _course(axes: Axes, report: ReportPage, course: Course, run: int | None, tints: Colours) -> None:
    windows = [run.window for run in report.runs if run.window is not None]
    if windows:
        begin, end = median(span.begin_s for span in windows), median(span.end_s for span in windows)
        axes.axvspan(begin, end, color=style.SHADE, linewidth=0, zorder=0)
    if run is None:
        for line in course.lines:
            colour = tints[report.runs[line.run].side]
            axes.plot(line.seconds, line.values * course.factor, color=colour, linewidth=0.9)
        for number in dict.fromkeys(line.run for line in course.lines):
            repeat = report.runs[number]
            for spike in repeat.spikes:
                axes.axvspan(spike.begin_s, spike.end_s, ymax=0.04, color=tints[repeat.side], linewidth=0)
        axes.set_title(course.title)
    else:
        _stacked(axes, course, [line for line in course.lines if line.run == run])
        side = report.sides[report.runs[run].side]
        axes.set_title(f"{course.title}: {side.name}, repeat {report.runs[run].repeat}")
    axes.set_ylim(bottom=0)
    axes.set_ylabel(course.shown)
    style.plain_ticks(axes.yaxis)


def _stacked(axes: Axes, course: Course, lines: Sequence[Line]) -> None:
    order = sorted(lines, key=lambda line: course.parts.index(line.part))
    shortest = min(len(line.values) for line in order)
    values = [np.nan_to_num(line.values[:shortest]) * course.factor for line in order]
    tints = [style.colour(course.parts.index(line.part)) for line in order]
    labels = [line.part for line in order]
    axes.stackplot(order[0].seconds[:shortest], values, colors=tints, labels=labels, linewidth=0)
    if course.ceiling is not None:
        axes.axhline(course.ceiling, color="black", linewidth=0.7, linestyle="--")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.0)


def _phase_names(axes: Axes, report: ReportPage) -> None:
    """Names of the phases at the top of the first chart."""
    spans = [span for run in report.runs for span in run.phases]
    left, right = axes.get_xlim()
    for name in dict.fromkeys(span.name for span in spans):
        begin = max(left, median(span.begin_s for span in spans if span.name == name))
        end = min(right, median(span.end_s for span in spans if span.name == name))
        if end - begin >= NAMED * (right - left):
            box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.7, "linewidth": 0}
            style.name_from(axes, begin, name, 2, bbox=box, zorder=5)


def _small_charts(
    report: ReportPage, count: int, sides: Iterable[int], note: str, tints: Colours
) -> tuple[Figure, list[Axes]]:
    """Axes for `count` charts, without unused ones, and a legend of `sides`."""
    columns = min(2, count)
    drawn, axes = style.sheet(-(-count // columns), columns, height=CHART_HEIGHT)
    for left in axes[count:]:
        left.remove()
    _legend(drawn, report, sides, tints, title=note, title_fontsize=7)
    return drawn, axes[:count]


def _percentiles(axes: Axes, report: ReportPage, percentiles: Percentiles, tints: Colours) -> None:
    """The axis of shares is log(1/(1−share)): each further nine has the same width."""
    last = max(float(curve.shares[-1]) for curve in percentiles.curves)
    for curve in percentiles.curves:
        usable = (curve.shares < 1) & np.isfinite(curve.values) & (curve.values > 0)
        colour = tints[report.runs[curve.run].side]
        axes.plot(1 / (1 - curve.shares[usable]), curve.values[usable] * MILLI, color=colour, linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    shares = [share for share in SHARES if share <= max(0.99, last)]
    axes.set_xticks([1 / (1 - share) for share in shares], [f"{100 * share:g}" for share in shares])
    style.log_ticks(axes, axes.yaxis)
    axes.set_title(percentiles.kind)
    axes.set_xlabel("percentile")
    axes.set_ylabel("latency, ms")


def _steps(axes: Axes, distribution: Distribution, tints: Colours) -> None:
    edges = distribution.edges * distribution.factor
    for side, shares in enumerate(distribution.shares):
        if shares is not None:
            axes.stairs(100 * shares, edges, color=tints[side], linewidth=1.0)
            axes.stairs(100 * shares, edges, color=tints[side], fill=True, alpha=0.15)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    style.log_ticks(axes, axes.xaxis)
    axes.set_title(distribution.title)
    axes.set_xlabel(distribution.shown)
    axes.set_ylabel("share, %")
