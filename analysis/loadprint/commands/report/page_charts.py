"""Describes the charts of the page: heading, a summary of each side as text, series for the script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from loadprint import numbers
from loadprint.catalogue.metric import SECTIONS
from loadprint.commands.ab.result import Result
from loadprint.commands.report import pack
from loadprint.commands.report.distributions import SOURCES
from loadprint.commands.report.pack import ChartGrid, encoded
from loadprint.reading.names import TREATMENT
from loadprint.rendering.report_data import Course, Distribution, Floats, Line, Panel, Percentiles, ReportPage

Chart = dict[str, Any]  # `data` is for the script; the rest is for the template
Block = tuple[str, str, list[Chart]]  # key, title, charts
QUANTILES = (0.5, 0.99)
DIGITS = 3
REPEATS = 3  # that are distinguishable by how faint they are


def over_time(report: ReportPage, grid: ChartGrid | None) -> list[Block]:
    """Charts over time by section; of a stack one for each side, because stacks cannot overlap."""
    if grid is None:
        return []
    blocks = []
    for section, title in SECTIONS.items():
        chosen = [course for course in report.courses if course.section == section]
        charts = [chart for course in chosen for chart in _timed(course, report, grid)]
        if charts:
            blocks.append((section, title, charts))
    return blocks


def latencies(report: ReportPage) -> list[Block]:
    """Percentiles and histograms of the transaction types."""
    blocks = [
        ("percentiles", "Percentiles, a curve per run", [_curves(one, report) for one in report.percentiles]),
        ("latency", "Histograms, all repeats of a side together", _histograms("latency", report)),
    ]
    return [block for block in blocks if block[2]]


def kernels(report: ReportPage) -> list[Block]:
    """Histograms of the kernel by probe."""
    blocks = [(probe, title, _histograms(probe, report)) for probe, (title, *_) in SOURCES.items()]
    return [block for block in blocks if block[2]]


def _chart(
    key: str,
    kind: str,
    text: tuple[str, str, str],
    summaries: Sequence[tuple[int, str]],
    series: list[dict[str, Any]],
    **more: Any,
) -> Chart:
    """A chart; `text` is title, unit and note."""
    title, shown, note = text
    data = {"key": key, "kind": kind, "series": series, **more}
    return {"key": key, "title": title, "shown": shown, "note": note, "summaries": summaries, "data": data}


def _series(label: str, colour: str, style: str, y: Floats | Sequence[float], **more: Any) -> dict[str, Any]:
    return {"label": label, "colour": colour, "faded": 0, "style": style, "y": encoded(y), **more}


def _of_run(report: ReportPage, place: int, style: str, y: Floats, **more: Any) -> dict[str, Any]:
    run = report.runs[place]
    label = f"{report.sides[run.side].name} {run.repeat}"
    faded = (max(1, run.repeat) - 1) % REPEATS
    return _series(label, f"side-{run.side % 8}", style, y, **more) | {"faded": faded}


def _timed(course: Course, report: ReportPage, grid: ChartGrid) -> Iterator[Chart]:
    text = (course.title, course.shown, course.note)
    lines = [line for line in course.lines if len(line.seconds)]
    if not course.parts:
        steps = [pack.step_of(line) for line in lines if len(line.seconds) > 1]
        style = "sparse" if steps and max(steps) > 1.5 * grid.step else "line"
        series = [
            _of_run(
                report, line.run, style, pack.thinned(pack.placed(line, grid)[None], grid)[0] * course.factor
            )
            for line in lines
        ]
        runs = list(dict.fromkeys(line.run for line in lines))
        yield _chart(course.key, "time", text, of_course(course, report), series, runs=runs)
        return
    for side, named in enumerate(report.sides):
        own = [line for line in lines if report.runs[line.run].side == side]
        if not own:
            continue
        parts = list(dict.fromkeys(line.part for line in own))
        of_part = [[line for line in own if line.part == part] for part in parts]
        stack = pack.thinned(np.stack([pack.mean(series, grid) for series in of_part]), grid) * course.factor
        series = [
            _series(part, f"part-{part}", "part", values) for part, values in zip(parts, stack, strict=True)
        ]
        medians = ", ".join(
            f"{part} {numbers.brief(float(np.median(values)) * course.factor, DIGITS)}"
            for part, series in zip(parts, of_part, strict=True)
            if len(values := np.concatenate([_inside(line) for line in series]))
        )
        runs = list(dict.fromkeys(line.run for line in own))
        repeats = f", mean of {len(runs)} repeats" if len(runs) > 1 else ""
        yield _chart(
            f"{course.key}@{side}",
            "time",
            (f"{course.title}: {named.name}{repeats}", *text[1:]),
            [(side, medians)],
            series,
            runs=runs,
            stacked=True,
            ceiling=course.ceiling,
        )


def of_course(course: Course, report: ReportPage) -> list[tuple[int, str]]:
    """Per side: median and range within the measure phases of its runs."""
    summaries = []
    for side in range(len(report.sides)):
        lines = [line for line in course.lines if report.runs[line.run].side == side]
        values = np.concatenate([np.empty(0), *(_inside(line) for line in lines)]) * course.factor
        if len(values):
            middle, low, high = (
                numbers.brief(value, DIGITS) for value in (np.median(values), values.min(), values.max())
            )
            summaries.append((side, f"{middle} ({low} – {high})"))
    return summaries


def _inside(line: Line) -> Floats:
    """Values of a line in its run's window."""
    return line.values[line.inside & np.isfinite(line.values)]


def _curves(chart: Percentiles, report: ReportPage) -> Chart:
    """Curves over log(1 / (1 − share)), and p50 and p99 of each run."""
    series = [
        _of_run(report, curve.run, "curve", curve.values * 1e3, x=encoded(-np.log10(1 - curve.shares)))
        for curve in chart.curves
    ]
    summaries = []
    for side in range(len(report.sides)):
        curves = [curve for curve in chart.curves if report.runs[curve.run].side == side]
        texts = []
        for share in QUANTILES:
            near = [
                numbers.brief(float(curve.values[np.argmin(np.abs(curve.shares - share))]) * 1e3, DIGITS)
                for curve in curves
            ]
            texts.append(f"p{100 * share:g} {' / '.join(near)} ms")
        if curves:
            summaries.append((side, ", ".join(texts)))
    text = (chart.kind, "ms", f"from {chart.source}")
    return _chart(f"percentiles-{chart.kind}", "percentiles", text, summaries, series)


def _histograms(section: str, report: ReportPage) -> list[Chart]:
    chosen = [chart for chart in report.distributions if chart.section == section]
    return [_histogram(chart, report) for chart in chosen]


def _histogram(chart: Distribution, report: ReportPage) -> Chart:
    """Densities on a logarithmic axis; number of values and the range of the middle 80 % of each side."""
    width = np.diff(np.log10(chart.edges))
    edges = chart.edges * chart.factor
    series, summaries = [], []
    for side, shares in enumerate(chart.shares):
        if shares is None or not chart.totals[side]:
            continue
        density = shares / width
        y = np.append(density, density[-1])
        name, colour = report.sides[side].name, f"side-{side % 8}"
        series.append(_series(name, colour, "steps", y, x=encoded(edges)))
        low, high = (int(np.searchsorted(np.cumsum(shares), share)) for share in (0.1, 0.9))
        ends = " – ".join(
            numbers.brief(float(edges[place]), 2) for place in (low, min(high + 1, len(shares)))
        )
        summaries.append((side, f"n {chart.totals[side]:,}, 80 % in {ends} {chart.shown}"))
    return _chart(chart.key, "histogram", (chart.title, chart.shown, ""), summaries, series)


def scaling(place: int, panel: Panel) -> Chart:
    """Fitted curves, the interval of the first one, and measured points: a series for each repeat."""
    colour = f"side-{place % 8}"
    series = []
    for curve in panel.curves:
        style, tint = ("curve", colour) if curve.chief else ("dashed", "quiet")
        series.append(_series(curve.label, tint, style, curve.x, x=encoded(curve.n)))
        if curve.chief and curve.low is not None and curve.high is not None:
            for label, bound in (("95 % from", curve.low), ("to", curve.high)):
                series.append(_series(label, colour, "bound", bound, x=encoded(curve.n)))
    levels = sorted(set(panel.n.tolist()))
    for repeat in zip_longest(*(panel.x[panel.n == level].tolist() for level in levels)):
        measured = [(n, x) for n, x in zip(levels, repeat, strict=True) if x is not None]
        n, x = zip(*measured, strict=True)
        series.append(_series("measured", colour, "measured", x, x=encoded(n)))
    return _chart(f"scaling-{place}", "scaling", (panel.title, panel.unit, ""), [], series)


def windows(experiment: Result) -> Chart:
    """Queries per CPU-second of the windows of an A/B, in the middle of each."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for window in experiment.windows:
        if window.efficiency is not None:
            counted = window.number not in experiment.excluded
            colour = "quiet" if not counted else "side-1" if window.variant == TREATMENT else "side-0"
            label = window.variant if counted else f"{window.variant}, not counted"
            middle = (window.begin_s + window.end_s) / 2
            points.setdefault((label, colour), []).append((middle, window.efficiency))
    series = []
    for (label, colour), pairs in points.items():
        x, y = zip(*pairs, strict=True)
        series.append(_series(label, colour, "measured", y, x=encoded(x)))
    text = ("Queries per CPU-second, window by window", "/s", "")
    return _chart("windows", "windows", text, [], series)
