"""Puts charts on one time grid, thinned so that spikes survive, and encodes their values.

Where a line has more points than a screen can show, each bucket of the grid keeps its least and its greatest
value, in the order in which they came; of a stack, the ticks at which its sum was least and greatest. The
grid has a bounded number of cells: time stamps far apart make them wider.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadprint.reading import bounds
from loadprint.rendering.report_data import Course, Floats, Line

MOST_VALUES = 300_000  # of all charts together: 1.6 MB of the page
FEWEST, MOST = 240, 2400  # limits of the number of values of a line
NEAR = 0.25  # of the usual step: jitter, and not a missing or a cut interval
ALIKE = 0.02  # of a step


def encoded(values: Floats | Sequence[float]) -> str:
    """Values as base64 of little-endian float32."""
    return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode("ascii")


@dataclass(frozen=True)
class ChartGrid:
    """Times of all lines: `count` cells of `step` seconds from `begin`; extremes of each `keep` are kept."""

    begin: float
    step: float
    count: int
    keep: int = 1

    @property
    def times(self) -> Floats:
        """Seconds of the values that a line has on the grid."""
        thinned = self.keep > 1
        step = self.step * self.keep / 2 if thinned else self.step
        values = -(-self.count // self.keep) * 2 if thinned else self.count
        return self.begin + step * np.arange(values, dtype=np.float64)


def grid_of(courses: Sequence[Course]) -> ChartGrid | None:
    """The grid that holds all lines; None where there is none."""
    lines = [line for course in courses for line in course.lines if len(line.seconds) > 1]
    if not lines:
        return None
    step = max(min(map(step_of, lines)), 1e-3)
    step = round(step, 1) if step > 0.5 and abs(step - round(step, 1)) <= ALIKE * step else round(step, 3)
    begin = min(float(line.seconds[0]) for line in lines)
    end = max(float(line.seconds[-1]) for line in lines)
    begin = np.floor(begin / step) * step
    count = int(np.ceil((end - begin) / step)) + 2
    if count > bounds.POINTS:
        step, count = float(end - begin) / bounds.POINTS, bounds.POINTS + 2
    most = min(MOST, max(FEWEST, MOST_VALUES // len(lines)))
    return ChartGrid(float(begin), step, count, 1 if count <= most else int(np.ceil(count / (most // 2))))


def step_of(line: Line) -> float:
    """Usual distance of a line's times: jitter averages out, a short last interval does not count."""
    steps = np.diff(line.seconds)
    usual = float(np.median(steps))
    near = steps[np.abs(steps - usual) <= NEAR * usual]
    return float(near.mean()) if len(near) else usual


def placed(line: Line, grid: ChartGrid, *, held: bool = False) -> Floats:
    """Values of a line in the cells of the grid, or `held` until the next; NaN where a cell has none.

    A line keeps its own phase: its first value goes to the nearest cell, and the others count from there, so
    that jitter of the ticks leaves neither holes nor doubles.
    """
    values = np.full(grid.count, np.nan)
    if len(line.seconds):
        first = int(np.ceil((float(line.seconds[0]) - grid.begin) / grid.step - 0.5))
        step = step_of(line) if len(line.seconds) > 1 else grid.step
        cells_apart = max(1, round(step / grid.step))
        # nearly the grid's step is the grid's step: a per mille would be a cell in a quarter of an hour
        own = step if abs(step / grid.step - cells_apart) <= ALIKE * cells_apart else cells_apart * grid.step
        cells = first + cells_apart * np.rint((line.seconds - line.seconds[0]) / own).astype(int)
        for further in range(cells_apart if held else 1):
            inside = (cells + further >= 0) & (cells + further < grid.count)
            values[cells[inside] + further] = line.values[inside]
    return values


def mean(lines: Sequence[Line], grid: ChartGrid) -> Floats:
    """The mean of the lines that have a value, in each cell of the grid; NaN where none has."""
    stack = np.stack([placed(line, grid, held=True) for line in lines])
    finite = np.isfinite(stack)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(finite, stack, 0).sum(axis=0) / finite.sum(axis=0)
    return means


def thinned(stack: Floats, grid: ChartGrid) -> Floats:
    """float64[lines, cells] as float64[lines, values]: where thinned, all at the extremes of their sum."""
    if grid.keep == 1:
        return stack
    buckets = -(-grid.count // grid.keep)
    padded = np.full((len(stack), buckets * grid.keep), np.nan)
    padded[:, : grid.count] = stack
    sums = padded.sum(axis=0).reshape(buckets, grid.keep)
    least = np.where(np.isnan(sums), np.inf, sums).argmin(axis=1)
    greatest = np.where(np.isnan(sums), -np.inf, sums).argmax(axis=1)
    order = np.sort(np.stack([least, greatest], axis=1), axis=1)
    return padded[:, (order + np.arange(buckets)[:, None] * grid.keep).ravel()]
