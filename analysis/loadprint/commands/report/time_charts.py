"""Fills the charts over time from the series of every run; series of zeros are listed, not drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadprint.commands.report.charts import DISK, LINES, MORE, NETWORK, STACKS, Stack, Wanted
from loadprint.metrics.devices import Device
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.rendering.report_data import Course, Line
from loadprint.series import spikes
from loadprint.series.series import Series, run_series

NAMES = (
    *dict.fromkeys(
        need if "{" not in need else need.split(".", maxsplit=1)[0]
        for chart in (*LINES, *DISK, *NETWORK, *MORE)
        for need in chart.needs
    ),
    "cpu.server",
    "cpu.load",
    *spikes.SERIES,
)
Of = dict[str, Series]


@dataclass(frozen=True)
class Sampled:
    """A run's series, its position among the report's runs, and that of its side."""

    place: int
    side: int
    series: Of


def sample(
    runs: Sequence[tuple[int, int, Run]], store: Store, names: Sequence[str] = NAMES
) -> tuple[Sampled, ...]:
    """Read the series that charts need of `runs`, (place, side, run) each. Raises InputError."""
    return tuple(Sampled(place, side, run_series(run, store, names)) for place, side, run in runs)


def courses(
    sampled: Sequence[Sampled],
    disks: Sequence[Device],
    nics: Sequence[Device],
    sets: Mapping[str, tuple[str, float | None]],
) -> tuple[tuple[Course, ...], tuple[str, ...]]:
    """All charts with values, and the titles of those that are zero throughout.

    `sets` has the name and number of cores of the CPU sets `server` and `load`.
    """
    drawn: list[Course] = []
    still: list[str] = []
    for course in _all(sampled, disks, nics, sets):
        values = [line.values for line in course.lines]
        if any((np.nan_to_num(each) != 0).any() for each in values):
            drawn.append(course)
        elif values:
            still.append(course.title)
    return tuple(drawn), tuple(still)


def _all(
    sampled: Sequence[Sampled],
    disks: Sequence[Device],
    nics: Sequence[Device],
    sets: Mapping[str, tuple[str, float | None]],
) -> Iterator[Course]:
    yield from (_lines(chart, sampled) for chart in LINES)
    for stack in STACKS:
        named, cores = sets.get(stack.side, ("", None))
        yield _stacked(stack, sampled, named, cores)
    for kind, charts, devices in (("disk", DISK, disks), ("nic", NETWORK, nics)):
        for device in devices:
            yield from (_of_device(chart, kind, device, sampled, alone=len(devices) == 1) for chart in charts)
    yield from (_lines(chart, sampled) for chart in MORE)


def _lines(chart: Wanted, sampled: Sequence[Sampled]) -> Course:
    lines = tuple(line for run in sampled if (line := _line(chart, chart.needs, run)))
    return Course(chart.key, chart.section, chart.title, chart.shown, chart.factor, lines, note=chart.note)


def _of_device(
    chart: Wanted, kind: str, device: Device, sampled: Sequence[Sampled], *, alone: bool
) -> Course:
    """The chart of one disk or interface, whose name may differ from side to side."""
    lines = []
    for run in sampled:
        name = device.per_side[run.side]
        needs = tuple(need.format(**{kind: name}) for need in chart.needs) if name else ()
        if needs and (line := _line(chart, needs, run)):
            lines.append(line)
    title = chart.title if alone else f"{device.name}: {chart.title}"
    key = f"{kind}_{device.name}_{chart.key}"
    empty = _lines(replace(chart, needs=()), ())
    return replace(empty, key=key, title=title, lines=tuple(lines))


def _line(chart: Wanted, needs: Sequence[str], run: Sampled) -> Line | None:
    needed = [run.series.get(need) for need in needs]
    known = [series for series in needed if series is not None]
    if not known or len(known) < len(needed) or len({len(series.values) for series in known}) > 1:
        return None
    values = chart.recipe(*(series.values for series in known))
    return Line(run.place, known[0].seconds, values, half=known[0].half)


def _stacked(stack: Stack, sampled: Sequence[Sampled], named: str, cores: float | None) -> Course:
    lines = []
    for run in sampled:
        for part, needs in stack.parts:
            summed = [series for need in needs if (series := run.series.get(need))]
            if summed:
                values = np.sum([series.values for series in summed], axis=0)
                lines.append(Line(run.place, summed[0].seconds, values, part, summed[0].half))
    title = f"{stack.title} ({named})" if named else stack.title
    names = tuple(part for part, _ in stack.parts)
    return Course(stack.key, stack.section, title, "cores", 1.0, tuple(lines), names, cores)
