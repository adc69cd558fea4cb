"""Charts as compact JSON: one time grid for all lines, 16 bits a value, thinned so that spikes survive.

Where a line has more points than a screen can show, each bucket of the grid keeps its least and its greatest
value, in the order in which they came; of a stack, the ticks at which its sum was least and greatest. The
grid has a bounded number of cells: time stamps far apart make them wider.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadprint.reading import bounds
from loadprint.rendering.report_data import Course, Floats, Line

MOST_VALUES = 600_000  # of all charts together: 1.6 MB of the page
FEWEST, MOST = 240, 2400  # limits of the number of values of a line
STEPS = 65_534
NOTHING = 65_535
DIGITS = 6
NEAR = 0.25  # of the usual step: jitter, and not a missing or a cut interval
ALIKE = 0.02  # of a step


@dataclass(frozen=True)
class Grid:
    """Times of all lines: `count` cells of `step` seconds from `begin`; extremes of each `keep` are kept."""

    begin: float
    step: float
    count: int
    keep: int = 1

    @property
    def thinned(self) -> bool:
        """Whether only extremes are kept."""
        return self.keep > 1

    @property
    def points(self) -> int:
        """Values that a packed line has."""
        return -(-self.count // self.keep) * 2 if self.thinned else self.count

    def as_object(self) -> dict[str, Any]:
        """The grid of the packed lines."""
        step = self.step * self.keep / 2 if self.thinned else self.step
        return {"begin": round(self.begin, 3), "step": step, "points": self.points, "keep": self.keep}


def grid_of(courses: Sequence[Course]) -> Grid | None:
    """The grid that holds all lines; None where there is none."""
    lines = [line for course in courses for line in course.lines if len(line.seconds) > 1]
    if not lines:
        return None
    steps = [_step(line) for line in lines]
    step = max(min(steps), 1e-3)
    step = round(step, 1) if step > 0.5 and abs(step - round(step, 1)) <= ALIKE * step else round(step, 3)
    begin = min(float(line.seconds[0]) for line in lines)
    end = max(float(line.seconds[-1]) for line in lines)
    begin = np.floor(begin / step) * step
    count = int(np.ceil((end - begin) / step)) + 2
    if count > bounds.POINTS:
        step, count = float(end - begin) / bounds.POINTS, bounds.POINTS + 2
    most = min(MOST, max(FEWEST, MOST_VALUES // len(lines)))
    keep = 1 if count <= most else int(np.ceil(count / (most // 2)))
    return Grid(float(begin), step, count, keep)


def _step(line: Line) -> float:
    """Usual distance of a line's times: jitter averages out, a short last interval does not count."""
    steps = np.diff(line.seconds)
    usual = float(np.median(steps))
    near = steps[np.abs(steps - usual) <= NEAR * usual]
    return float(near.mean()) if len(near) else usual


def placed(line: Line, grid: Grid) -> Floats:
    """Values of a line in the cells of the grid; NaN where a cell has none.

    A line keeps its own phase: its first value goes to the nearest cell, and the others count from there, so
    that jitter of the ticks leaves neither holes nor doubles.
    """
    values = np.full(grid.count, np.nan)
    if len(line.seconds):
        first = int(np.ceil((float(line.seconds[0]) - grid.begin) / grid.step - 0.5))
        step = _step(line) if len(line.seconds) > 1 else grid.step
        each = max(1, round(step / grid.step))
        # nearly the grid's step is the grid's step: a per mille would be a cell in a quarter of an hour
        own = step if abs(step / grid.step - each) <= ALIKE * each else each * grid.step
        cells = first + each * np.rint((line.seconds - line.seconds[0]) / own).astype(int)
        inside = (cells >= 0) & (cells < grid.count)
        values[cells[inside]] = line.values[inside]
    return values


def thinned(stack: Floats, keep: int) -> Floats:
    """Least and greatest of each `keep` cells of float64[lines, cells], chosen by the sum of the lines."""
    lines, cells = stack.shape
    buckets = -(-cells // keep)
    padded = np.full((lines, buckets * keep), np.nan)
    padded[:, :cells] = stack
    sums = padded.sum(axis=0).reshape(buckets, keep)
    hidden = np.isnan(sums)
    least = np.where(hidden, np.inf, sums).argmin(axis=1)
    greatest = np.where(hidden, -np.inf, sums).argmax(axis=1)
    order = np.sort(np.stack([least, greatest], axis=1), axis=1)
    chosen = (order + np.arange(buckets)[:, None] * keep).ravel()
    return padded[:, chosen]


def packed(course: Course, grid: Grid) -> dict[str, Any]:
    """A chart as JSON: its lines' heads, and their values as base64 of little-endian uint16, one by one."""
    values = _values(course, grid)
    heads, blobs = [], []
    for line, own in zip(course.lines, values, strict=True):
        low, high, codes = _quantised(own)
        heads.append({"run": line.run, "part": line.part, "low": low, "high": high})
        blobs.append(codes.astype("<u2").tobytes())
    return {
        "key": course.key,
        "section": course.section,
        "title": course.title,
        "shown": course.shown,
        "factor": course.factor,
        "parts": list(course.parts),
        "ceiling": course.ceiling,
        "sparse": _sparse(course, grid),
        "lines": heads,
        "values": base64.b64encode(b"".join(blobs)).decode("ascii"),
    }


def _values(course: Course, grid: Grid) -> list[Floats]:
    """Each line on the grid; the lines of a run's stack are thinned together."""
    own = [placed(line, grid) for line in course.lines]
    if not grid.thinned:
        return own
    if not course.parts:
        return [thinned(values[None, :], grid.keep)[0] for values in own]
    result: list[Floats] = list(own)
    for run in {line.run for line in course.lines}:
        places = [place for place, line in enumerate(course.lines) if line.run == run]
        for place, values in zip(places, thinned(np.stack([own[p] for p in places]), grid.keep), strict=True):
            result[place] = values
    return result


def _quantised(values: Floats) -> tuple[float, float, Floats]:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    scale = STEPS / (high - low) if high > low else 0.0
    codes = np.where(np.isfinite(values), np.rint((values - low) * scale), NOTHING)
    return low, high, codes


def _sparse(course: Course, grid: Grid) -> bool:
    """Whether the chart was read more rarely than others, so that its points stand apart."""
    steps = [_step(line) for line in course.lines if len(line.seconds) > 1]
    return bool(steps) and max(steps) > 1.5 * grid.step


def rounded(values: Floats, digits: int = DIGITS) -> list[float | None]:
    """Floats for JSON with `digits` significant digits; None for NaN."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()]
