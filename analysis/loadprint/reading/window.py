"""Selects the ticks that are entirely within the measured time of a run: its segments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.reading.clocks import Alignment, align
from loadprint.reading.counters import Floats, Numbers, edges
from loadprint.reading.names import LOAD
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import TableMeaning
from loadprint.reading.time_series import Grid, end_to_end, grids, segments_of

# columns of ticks.parquet with the time of a read, in ns
STAMPS = 'tick::DOUBLE AS tick, start_ns::DOUBLE AS start, end_ns::DOUBLE AS "end"'
NEAR = 1e-3  # s: the stamps of an interval of the load are taken a little after those of its segment
OF_SLICES = "every slice", "longer slices"
Segments = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Window:
    """The ticks of one role inside the run's segments: the measure phase, or the slices of a side.

    `failures` and `partial` have the reason by probe: of reads that failed, and of those that could not read
    everything. `grids[probe]` has all its reads, also outside of the segments, and the segment of each.
    """

    role: str
    seconds: float
    missed: int
    failures: dict[str, str]
    unavailable: dict[str, str]
    interval_ns: int
    segments: int = 1
    partial: dict[str, str] = field(default_factory=dict)
    grids: dict[str, Grid] = field(default_factory=dict)

    @cached_property
    def read(self) -> dict[str, int]:
        """Number of reads inside by probe, of those with any."""
        counts = {probe: len(grid.read) for probe, grid in self.grids.items()}
        return {probe: count for probe, count in counts.items() if count}

    def ends(self, probe: str) -> tuple[int, int]:
        """First and last tick at which a probe was read entirely inside a segment.

        A background read can start before a segment, or end after it, although the tick's other reads are
        inside. Raises IndexError if the probe was not read inside.
        """
        grid = self.grids[probe]
        return int(grid.ticks[grid.read[0]]), int(grid.ticks[grid.read[-1]])

    def why_missing(self, probe: str) -> str:
        """Reason why the window has no data of a probe."""
        reason = self.unavailable.get(probe) or self.failures.get(probe)
        return f"probe {probe}: {reason}" if reason else f"probe {probe} was not recorded"


def measure_window(run: Run, role: str, store: Store) -> Window:
    """Window of one role's ticks over the segments of a run: phase `measure` if it has no others.

    Raises InputError if phase or ticks are missing.
    """
    window = window_of(run, role, store)
    if not any((grid.lengths > 0).any() for grid in window.grids.values()):
        part = "" if run.segments is None else "this part of "
        what, longer = OF_SLICES if window.segments > 1 else (f"{part}phase `measure`", "a longer phase")
        fix = f"record {longer}, or at a shorter interval"
        raise InputError(run.path / role / "ticks.parquet", f"fewer than two ticks are inside {what}", fix)
    return window


def window_of(run: Run, role: str, store: Store) -> Window:
    """As `measure_window`, also if fewer than two ticks are inside every segment."""
    segments, zero = _segments(run, role, store)
    path = run.path / role / "ticks.parquet"
    described = store.metadata(path)
    rows = store.fetch(path, f"SELECT probe, status, reason, {STAMPS}, missed::DOUBLE AS missed FROM t")
    segment = segments_of(rows["start"], rows["end"], segments)
    inside = segment >= 0
    taken = inside & (rows["status"] == "ok")
    return Window(
        role=role,
        seconds=sum(end - begin for begin, end in segments) / 1e9,
        missed=_missed(rows, segment),
        failures=_reasons(rows, inside & (rows["status"] == "failed"), "reads failed"),
        unavailable=_unavailable(described),
        interval_ns=int(described.interval_ns),
        segments=len(segments),
        partial=_reasons(rows, taken & (rows["reason"] != None), "reads were incomplete"),  # noqa: E711
        grids=grids(rows, zero, segments),
    )


def _missed(rows: dict[str, NDArray[Any]], segment: Numbers) -> int:
    """Ticks that were missed inside segments: those before the first one of a segment are not."""
    order = np.flatnonzero(segment >= 0)
    order = order[np.argsort(rows["tick"][order], kind="stable")]
    tick = rows["tick"][order]
    first, _ = edges(segment[order])
    begins = tick == np.repeat(tick[first], np.diff([*first, len(tick)]))
    return int(np.nansum(rows["missed"][order][~begins]))


def measured_times(run: Run, store: Store, begins: Floats, ends: Floats) -> Floats:
    """The middle of each interval of the load, which is in seconds from the start of `measure`, end to end.

    NaN where an interval is not entirely inside of a segment.
    """
    measure, middle = run.phase("measure"), (begins + ends) / 2
    if run.segments is None or measure is None:
        return middle
    clock = align(run, run.roles[0], store) if run.roles and not run.load_segments else Alignment()
    segments = run.load_segments or run.segments
    spans = [
        ((clock.here(begin) - measure.begin_ns) / 1e9, (clock.here(end) - measure.begin_ns) / 1e9)
        for begin, end in segments
    ]
    segment = segments_of(begins, ends, [(begin - NEAR, end + NEAR) for begin, end in spans])
    return end_to_end(middle, segment, spans)


def part_of(run: Run, store: Store, begin_s: float, end_s: float) -> Run:
    """A run with what it had of a part of its measure phase, in seconds from its start, as its segments."""
    measure = run.phase("measure")
    of_load = float(measure.begin_ns) if measure else 0.0
    zero = _segments(run, run.roles[0], store)[1] if run.roles else of_load

    def cut(segments: Segments | None, zero: float) -> Segments:
        begin, end = zero + begin_s * 1e9, zero + end_s * 1e9
        spans = ((max(first, begin), min(last, end)) for first, last in segments or ((begin, end),))
        return tuple(span for span in spans if span[0] < span[1])

    load = cut(run.load_segments, of_load) if run.load_segments else None
    return replace(run, segments=cut(run.segments, zero), load_segments=load)


def _segments(run: Run, role: str, store: Store) -> tuple[list[tuple[float, float]], float]:
    """The segments of a run, and the start of its measure phase, on the clock of a role's recorder, in ns.

    Raises InputError.
    """
    if not run.phases and not run.result:
        query = "SELECT min(start_ns)::DOUBLE AS begin, max(end_ns)::DOUBLE AS ended FROM t"
        rows = store.fetch(run.path / role / "ticks.parquet", query)
        span = float(rows["begin"][0]), float(rows["ended"][0])
        return [span] if run.segments is None else list(run.segments), span[0]
    phase = run.phase("measure")
    if phase is None or phase.end_ns is None:
        what = f"phase `measure` {'is missing' if phase is None else 'has no end'}"
        raise InputError(run.path / LOAD / "phases.jsonl", what, "record the run again")
    clock = align(run, role, store)
    zero = clock.there(phase.begin_ns)
    if run.segments is None:
        return [(zero, clock.there(phase.end_ns))], zero
    if role == LOAD and run.load_segments:
        return list(run.load_segments), zero
    server = clock if role == run.roles[0] else align(run, run.roles[0], store)
    return [
        (clock.there(server.here(begin)), clock.there(server.here(end))) for begin, end in run.segments
    ], zero


def _reasons(rows: dict[str, NDArray[Any]], chosen: NDArray[np.bool_], what: str) -> dict[str, str]:
    """By probe the number of these reads, and the reason of the first."""
    reasons: dict[str, str] = {}
    for probe in sorted(set(rows["probe"][chosen])):
        of_probe = chosen & (rows["probe"] == probe)
        reasons[probe] = f"{int(of_probe.sum())} {what} ({rows['reason'][of_probe][0]})"
    return reasons


def _unavailable(described: TableMeaning) -> dict[str, str]:
    return {
        probe.name: f"{probe.status}{': ' + probe.reason if probe.reason else ''}"
        for probe in described.probes
        if probe.status != "running"
    }
