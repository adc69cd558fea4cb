"""Summaries of charts as text, for screen readers and for reading without a pointer."""

from __future__ import annotations

import numpy as np

from loadprint.rendering.report_data import Course, Distribution, Floats, Percentiles, Report

DIGITS = 3
QUANTILES = (0.5, 0.99)
TIMES = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
SAME = 0.01  # seconds between the generator's stamps of its last interval and of the phase
ALMOST = 0.9995  # of a unit is rounded up to it


def figure(value: float, digits: int = DIGITS) -> str:
    """A number with `digits` significant digits and thousands separators: 0.0123, 4.56, 1,230."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else "–"
    places = digits - 1 - int(np.floor(np.log10(abs(value))))
    text = f"{round(value, places):,.{max(0, places)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def of_course(course: Course, report: Report) -> tuple[tuple[int, str], ...]:
    """Per side: median and range within the measure phases of its runs, or the medians of a stack's parts."""
    summaries = []
    for side in range(len(report.sides)):
        runs = set(report.runs_of(side))
        if course.parts:
            parts = [(part, _inside(course, report, runs, part)) for part in course.parts]
            text = ", ".join(
                f"{part} {figure(float(np.median(values)) * course.factor)}"
                for part, values in parts
                if len(values)
            )
        else:
            values = _inside(course, report, runs, "") * course.factor
            text = (
                f"{figure(float(np.median(values)))} ({figure(float(values.min()))} – "
                f"{figure(float(values.max()))})"
                if len(values)
                else ""
            )
        if text:
            summaries.append((side, text))
    return tuple(summaries)


def _inside(course: Course, report: Report, runs: set[int], part: str) -> Floats:
    """Values of the lines of `runs` within their windows; all values of a run without a window.

    A value between two reads is within the window if both reads are, as in the table.
    """
    values = [np.empty(0)]
    for line in course.lines:
        if line.run in runs and line.part == part:
            window = report.runs[line.run].window
            inside = np.isfinite(line.values)
            if window is not None:
                inside &= line.seconds - line.half >= window.begin_s - SAME
                inside &= line.seconds + line.half <= window.end_s + SAME
            values.append(line.values[inside])
    return np.concatenate(values)


def of_percentiles(chart: Percentiles, report: Report) -> tuple[tuple[int, str], ...]:
    """Per side: p50 and p99 of each run, in milliseconds."""
    summaries = []
    for side in range(len(report.sides)):
        curves = [curve for curve in chart.curves if report.runs[curve.run].side == side]
        texts = []
        for share in QUANTILES:
            near = [
                figure(float(curve.values[np.argmin(np.abs(curve.shares - share))]) * 1e3) for curve in curves
            ]
            texts.append(f"p{100 * share:g} {' / '.join(near)} ms")
        if curves:
            summaries.append((side, ", ".join(texts)))
    return tuple(summaries)


def _sized(value: float, chart: Distribution) -> str:
    """A value with its unit; a time in its largest unit: 2 ms, not 2,000 µs."""
    name, factor = chart.shown, chart.factor
    if name in dict(TIMES) and value > 0:
        name, factor = next(((n, f) for n, f in TIMES if value * f >= ALMOST), TIMES[-1])
    return f"{figure(value * factor, 2)}\u00a0{name}"


def of_distribution(chart: Distribution) -> tuple[tuple[int, str], ...]:
    """Per side: the number of values and the range of the middle 80 %."""
    summaries = []
    for side, shares in enumerate(chart.shares):
        if shares is None or not chart.totals[side]:
            continue
        below = np.cumsum(shares)
        low, high = (int(np.searchsorted(below, share)) for share in (0.1, 0.9))
        ends = [float(chart.edges[place]) for place in (low, min(high + 1, len(shares)))]
        spread = " – ".join(_sized(end, chart) for end in ends)
        summaries.append((side, f"n {chart.totals[side]:,}, 80 % in {spread}"))
    return tuple(summaries)
