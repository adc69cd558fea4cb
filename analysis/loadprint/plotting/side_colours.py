"""Assigns colours to the sides that a report's figures draw; in a sweep only some sides have charts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from loadprint.plotting import style

if TYPE_CHECKING:
    from matplotlib.lines import Line2D

    from loadprint.rendering.report_data import Report


def palette(report: Report) -> dict[int, str]:
    """Colour of each side by its position; with more sides than colours, only of those drawn."""
    places = list(range(len(report.sides)))
    if len(places) > len(style.COLOURS):
        runs = [line.run for course in report.courses for line in course.lines]
        runs += [curve.run for each in report.percentiles for curve in each.curves]
        drawn = {report.runs[run].side for run in runs}
        drawn |= {
            side
            for each in report.distributions
            for side, shares in enumerate(each.shares)
            if shares is not None
        }
        places = sorted(drawn)
    return {side: style.colour(place) for place, side in enumerate(places)}


def handles(report: Report, sides: Iterable[int]) -> list[Line2D]:
    """Entries of a legend for the sides that a figure draws, in their order."""
    from matplotlib.lines import Line2D as New  # noqa: PLC0415  slow to import

    colours = palette(report)
    return [New([], [], color=colours[side], label=report.sides[side].name) for side in sorted(set(sides))]
