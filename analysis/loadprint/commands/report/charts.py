"""Fills the charts of a report, which the catalogue declares, from the series of every run.

Charts of zeros are listed, not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadprint.catalogue.files import Catalogue
from loadprint.catalogue.metric import Metric
from loadprint.metrics.devices import Device
from loadprint.metrics.quantities import Quantities
from loadprint.reading.time_series import Series
from loadprint.rendering.report_data import Course, Line

KB, MIB = 1024.0, 1048576.0  # bytes: kB as sar prints it, and as the table does
# CPU time without idle; guest is part of user
PARTS = {
    "user": ("user", "nice"),
    "system": ("system",),
    "interrupts": ("irq", "softirq"),
    "steal": ("steal",),
    "iowait": ("iowait",),
}
STACKS = {"server": "Server's set", "load": "Load's set"}
Sampled = tuple[int, int, Quantities]  # a run's position in the report, that of its side, with series


def courses(
    sampled: Sequence[Sampled],
    disks: Sequence[Device],
    nics: Sequence[Device],
    sets: Mapping[str, tuple[str, float | None]],
    wanted: Catalogue,
) -> tuple[tuple[Course, ...], tuple[str, ...]]:
    """All charts with values, and the titles of those that are zero throughout.

    `sets` has the name and number of cores of the CPU sets `server` and `load`.
    """
    every = list(_stacks(sampled, sets))
    for key, rows in wanted.groups.items():
        for row in rows:
            every += _charts(row, sampled, {"disk": disks, "nic": nics}.get(key))
    with_lines = [course for course in every if course.lines]
    zero = [not any(np.nan_to_num(line.values).any() for line in course.lines) for course in with_lines]
    return (
        tuple(course for course, still in zip(with_lines, zero, strict=True) if not still),
        tuple(course.title for course, still in zip(with_lines, zero, strict=True) if still),
    )


def _stacks(sampled: Sequence[Sampled], sets: Mapping[str, tuple[str, float | None]]) -> Iterator[Course]:
    for side, title in STACKS.items():
        name, cores = sets.get(side, ("", None))
        lines = tuple(line for place, _, q in sampled for line in _parts(side, place, q))
        named = f"{title} ({name})" if name else title
        yield Course(f"cpu_{side}", "cpu", named, "cores", 1.0, lines, tuple(PARTS), cores)


def _charts(row: Metric, sampled: Sequence[Sampled], devices: Sequence[Device] | None) -> Iterator[Course]:
    """The charts of a row: one, or one for each device."""
    if row.chart is None:
        return
    for device in devices if devices is not None else (None,):
        lines = []
        for place, side, q in sampled:
            name = device.per_side[side] if device else ""
            if name is not None and (series := q.course(row.of(name).formula)):
                lines.append(_line(place, q, series))
        section, title = row.chart
        of_device = row.of(device.name) if device else row
        title = f"{device.name}: {title}" if device and devices and len(devices) > 1 else title
        note = row.footnote if row.view == "chart" else ""
        yield Course(of_device.key, section, title, row.shown, row.factor, tuple(lines), note=note)


def _parts(side: str, run: int, q: Quantities) -> Iterator[Line]:
    for part, states in PARTS.items():
        summed = [q.series[name] for state in states if (name := f"cpu.{side}.{state}") in q.series]
        if summed:
            values = np.sum([series.values for series in summed], axis=0)
            yield _line(run, q, replace(summed[0], values=values), part)


def _line(run: int, q: Quantities, series: Series, part: str = "") -> Line:
    """A series as it is drawn: of a side that had parts of the time, these only."""
    if q.segments == 1:
        return Line(run, series.seconds, series.values, part, series.inside)
    return Line(run, series.measured[series.inside], series.values[series.inside], part)
