"""Measures a cell: runs by instance, rows, levels, and reasons against a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from loadprint.commands.qualify.levels import BurstLevels, levels
from loadprint.commands.qualify.parties import Part
from loadprint.commands.qualify.spec import Spec
from loadprint.judging import canary, void
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.instances import Instance, instances
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.statistics import stats
from loadprint.tables.ceilings import ceilings_of
from loadprint.tables.groups import groups
from loadprint.tables.rows import Column, RowBuilder
from loadprint.tables.table import Group, Row

Values = list[list[float | None]]  # of runs, by instance


@dataclass(frozen=True)
class Observed:
    """One party in one cell; `levels` contains None for a run without throughput by seconds."""

    part: Part
    runs: tuple[Measured, ...]
    machines: tuple[Instance, ...]
    levels: tuple[BurstLevels | None, ...]

    @property
    def sustained(self) -> Values:
        """Operations per second after the burst: the run's rate, scaled to its sustained level."""
        return [[self._sustained(place) for place in machine.places] for machine in self.machines]

    @property
    def seconds(self) -> float:
        """The shortest measured window."""
        return min(run.seconds or 0.0 for run in self.runs)

    def in_operations(self, place: int, level: float) -> float | None:
        """Convert a level of a run's seconds, which count all events, to operations per second."""
        levels, rate = self.levels[place], self.runs[place].quantities.get("load.events")
        mean = float(np.nanmean(self.runs[place].events_per_second)) if levels else 0.0
        return rate.rate * level / mean if rate and mean > 0 else None

    def _sustained(self, place: int) -> float | None:
        levels = self.levels[place]
        if levels is not None:
            return self.in_operations(place, levels.sustained)
        rate = self.runs[place].quantities.get("load.events")
        return None if rate is None else rate.rate


@dataclass(frozen=True)
class Sheet:
    """A measured cell: both parties, and rows whose columns are the instances of both."""

    name: str
    baseline: Observed
    candidate: Observed
    groups: tuple[Group, ...]

    def values(self, row: Row) -> tuple[Values, Values]:
        """Return the values of a row's runs by instance, for the baseline and the candidate."""
        by_instance = [list(cell.repeats) for cell in row.cells]
        cut = len(self.baseline.machines)
        return by_instance[:cut], by_instance[cut:]

    def of_ceiling(self, row: Row) -> tuple[float | None, float | None]:
        """Return the parties' shares of the measured ceiling, means over instances."""
        shares = [cell.of_ceiling for cell in row.cells]
        cut = len(self.baseline.machines)
        old, new = (None if None in of_one else stats.mean(of_one) for of_one in (shares[:cut], shares[cut:]))
        return old, new

    def why_missing(self, row: Row) -> str:
        """Return the reasons in the footnotes of a row's cells."""
        notes = [note for cell in row.cells if None in cell.repeats for note in cell.notes]
        return "; ".join(dict.fromkeys(notes)) or "not measured"


class Reader:
    """Measures runs, each directory once: a baseline may be compared with many candidates."""

    def __init__(self) -> None:
        self._store = Store()
        self._known: dict[Path, Measured] = {}

    def measured(self, run: Run) -> Measured:
        """Return the measurements of a run. Raises InputError that names an unusable file."""
        place = run.path.resolve()
        if place not in self._known:
            self._known[place] = gather(run, self._store)
        return self._known[place]


def observe(name: str, parts: Sequence[Part], spec: Spec, reader: Reader) -> Sheet:
    """Measure both parts of a cell. Raises InputError that names an unusable file."""
    baseline, candidate = (_observed(part, spec, reader) for part in parts)
    columns = [
        Column(machine.name, tuple(side.runs[place] for place in machine.places), paired=False)
        for side in (baseline, candidate)
        for machine in side.machines
    ]
    ceilings = ceilings_of((*baseline.runs, *candidate.runs))
    return Sheet(name, baseline, candidate, tuple(groups(RowBuilder(columns, 0, ceilings))))


def _observed(part: Part, spec: Spec, reader: Reader) -> Observed:
    runs = tuple(reader.measured(run) for run in part.runs)
    by_run = tuple(levels(run.events_per_second, spec.sustained.burst, run.step_s) for run in runs)
    return Observed(part, runs, instances(part.runs, spec.instances_by), by_run)


def voids(sheet: Sheet, spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield the reasons why no row of a cell may have a verdict: a word and a line for each."""
    for name, side in (("baseline", sheet.baseline), ("candidate", sheet.candidate)):
        shifts = [shift for shifts in canary.by_run(side.part.runs).values() for shift in shifts]
        for word, reason in void.reasons(name, side.runs, shifts, _settled(side)):
            if word != void.DISTURBED or not spec.accept_disturbed:
                yield word, reason


def _settled(side: Observed) -> list[Measured]:
    """Limit runs to the seconds after a lasting step down: an exhausted credit is not drift."""
    return [
        replace(run, events_per_second=run.events_per_second[round(levels.sustained_from / run.step_s) :])
        if levels and levels.steps
        else run
        for run, levels in zip(side.runs, side.levels, strict=True)
    ]
