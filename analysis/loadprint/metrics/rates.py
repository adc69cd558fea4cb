"""Reads a probe's table: increases of its counters over the segments of a run, and their courses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.metrics.quantities import NOT_KNOWN, Quantities
from loadprint.reading.counters import Floats, Numbers, edges, size_of, steps
from loadprint.reading.queries import (
    Columns,
    Members,
    Store,
    doubles,
    select_list,
    together,
)
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import ColumnMeaning
from loadprint.reading.time_series import Grid, Series
from loadprint.reading.units import factor
from loadprint.reading.window import Window

READINGS = 2_000_000  # of entities at ticks in memory: a day of 256 CPUs is more


@dataclass(frozen=True)
class Summed:
    """What is known of the members of a sum.

    `number`: their mean number over time, 0 without two reads; `members`: all that were read twice or counted
    from zero; `changed`: whether one came or went, `ended`: the number of those that went. `largest`: the
    largest increase per second by column, in base units.
    """

    number: float = 0.0
    members: int = 0
    changed: bool = False
    ended: int = 0
    largest: Mapping[str, float] = field(default_factory=dict)


class CounterCourse:
    """The increases of several counters together over the intervals of a grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._steps = np.zeros(max(0, len(grid.ticks) - 1))
        self._there = np.zeros(len(self._steps), dtype=bool)

    def add(self, members: Members, column: str, size: float | None, *, succeeded: bool = False) -> None:
        """Add a column of some counters, in the intervals at whose ends each was present."""
        grid, ticks = self._grid, members.ticks
        for one, present, recorded in zip(
            members.values[column], members.present, members.recorded, strict=True
        ):
            seen = grid.placed(ticks, present, 0.0) > 0
            both = seen[1:] & seen[:-1]
            rises = steps(grid.placed(ticks, one), size, succeeded=succeeded)
            self._steps[both] += np.where(rises.restarted, np.nan, rises.amounts)[both]
            self._there |= both & (grid.placed(ticks, recorded, 0.0)[1:] > 0)

    def series(self, unit: float) -> Series:
        """Rates in `unit` per second; NaN where a counter restarted or is not known, and where none was."""
        return self._grid.counter(np.where(self._there, self._steps, np.nan) * unit)


@dataclass(frozen=True)
class Source:
    """The run and window that a probe's table is read from, and the quantities it is added to.

    `charted`: with series, over the whole recording.
    """

    run: Run
    window: Window
    store: Store
    out: Quantities
    charted: bool = False

    def rows(self, probe: str, query: str, *, whole: bool = False) -> Columns | None:
        """Rows of a SELECT from a probe's table `t` at its reads in the segments, by tick; None without one.

        `whole`: of all reads if there are series, which need them.
        """
        path = self.run.table(self.window.role, probe)
        if path is None or probe not in self.window.read:
            return None
        everywhere = whole and self.charted
        between = None if everywhere else [self.window.ends(probe)]
        rows = self.store.fetch(path, f"{query} ORDER BY tick", between=between)
        grid = self.window.grids[probe]
        inside = grid.places(rows["tick"]) >= 0 if everywhere else grid.segments(rows["tick"]) >= 0
        return rows if inside.all() else {name: values[inside] for name, values in rows.items()}

    def inside(self, probe: str, rows: Columns) -> Columns:
        """Those rows of all ticks that are inside the segments."""
        inside = self.window.grids[probe].segments(rows["tick"]) >= 0
        return {name: values[inside] for name, values in rows.items()}

    def times(self, probe: str, ticks: Floats) -> Floats:
        """The time of the probe's read at each tick in seconds; NaN where it was not read."""
        return self.window.grids[probe].times(ticks)

    def segments(self, probe: str, ticks: Floats) -> Numbers:
        """The segment of the probe's read at each tick; -1 outside."""
        return self.window.grids[probe].segments(ticks)

    def seconds(self, probe: str, ticks: NDArray[Any] | None = None) -> float:
        """Seconds between the first and the last of some reads of each segment; by default of all reads."""
        grid = self.window.grids[probe]
        if ticks is None:
            return float(grid.lengths.sum())
        first, last = edges(grid.segments(ticks))
        at = grid.times(ticks)
        return float((at[last] - at[first]).sum())

    def counter(self, column: str, name: str, ticks: Floats, readings: Floats) -> None:
        """Add a counter from `column`, TABLE.COLUMN: its increase, and its series if charted."""
        there = np.ones((1, len(ticks)), dtype=bool)
        self.counters(column, name, Members(ticks, {"": readings[np.newaxis]}, there, there), "")

    def counters(self, column: str, name: str, members: Members, values: str) -> None:
        """The same of several counters together, the `values` of their members."""
        if self.charted:
            course = CounterCourse(self.window.grids[column.partition(".")[0]])
            course.add(members, values, self.size(column))
            self.out.add_series(name, course.series(self.unit(column)))
        self.increase(column, name, members, values)

    def increase(
        self, column: str, name: str, members: Members, values: str, *, succeeded: bool = False
    ) -> Floats:
        """Add the increase of a counter in the segments, as `Quantities.counter` does."""
        probe, _, of_table = column.partition(".")
        grid, readings = self.window.grids[probe], members.values[values]
        segment = grid.segments(members.ticks)
        inside = segment >= 0
        if inside.sum() < 2:
            self.out.mark_missing(name, NOT_KNOWN)
            return np.empty(0)
        if self.run.meta.imported and np.isnan(readings[:, inside]).all():
            self.out.mark_missing(name, f"this file has no value of {of_table}")
        risen = self.out.counter(
            name,
            readings[:, inside],
            grid.times(members.ticks)[inside],
            self.unit(column),
            self.size(column),
            present=members.present[:, inside],
            of=segment[inside],
            succeeded=succeeded,
        )
        # the last printed digit of a mean per second
        if self.run.meta.imported and (step := self.described(column).resolution):
            self.out.set_resolution(name, step * self.seconds(probe, members.ticks[inside]))
        return risen

    def members(
        self, table: str, columns: Iterable[str], member: str, where: str, *, born: bool = False
    ) -> Iterator[Members]:
        """The rows of the entities that SQL `member`, an integer, tells apart, some of them at a time.

        `born`: one that appears counts from zero.
        """
        path = self.run.table(self.window.role, table)
        if path is None or table not in self.window.read:
            return
        grid = self.window.grids[table]
        parts = 1 + self.store.rows(path) // READINGS
        values = select_list({"member": member} | doubles(columns))
        query = f"SELECT tick, {values} FROM t WHERE {where}"
        for part in range(parts):
            chosen = f" AND {member} % {parts} = {part}" if parts > 1 else ""
            rows = self.rows(table, query + chosen, whole=True)
            assert rows is not None
            ticks = grid.ticks if self.charted else grid.ticks[grid.read]
            every = np.unique(rows["member"])
            for some in np.array_split(every, 1 + len(every) * len(ticks) // READINGS):
                is_chosen = np.isin(rows["member"], some) if len(some) < len(every) else slice(None)
                of_some = {name: values[is_chosen] for name, values in rows.items()}
                if len(of_some["tick"]):
                    members = together(of_some, "member", ticks if born else None)
                    yield members.born_at_zero() if born else members

    def sum(  # noqa: PLR0913
        self,
        table: str,
        names: Mapping[str, str],
        member: str,
        where: str = "true",
        *,
        threads: bool = False,
        optional: str = "",
    ) -> Summed:
        """Add the sum over entities of each column of a table, the keys of `names`; `member` as in `members`.

        Each entity counts for the time in which it has rows. Of `threads` new ones count from zero, and a
        fall is a successor's. `optional`: one without two readings has nothing to add, and this is the reason
        if all are; else the sum is missing.
        """
        parts, summed, courses = [], Summed(), dict[str, CounterCourse]()
        for of_member in self.members(table, names, member, where, born=threads):
            grid = self.window.grids[table]
            inside = grid.segments(of_member.ticks) >= 0
            if len(of_member.ticks[inside]) < 2:
                continue
            part, largest = replace(self, out=Quantities(self.out.segments)), dict(summed.largest)
            for column, name in names.items():
                source = f"{table}.{column}"
                is_known = ~np.isnan(of_member.values[column])
                charted = of_member.some(is_known.sum(axis=1) > 1) if optional else of_member
                if self.charted and len(charted.present):
                    course = courses.setdefault(column, CounterCourse(grid))
                    course.add(charted, column, self.size(source), succeeded=threads)
                counted = of_member.some(is_known[:, inside].sum(axis=1) > 1) if optional else of_member
                if len(counted.present):
                    risen = part.increase(source, name, counted, column, succeeded=threads)
                    largest[column] = max([largest.get(column, 0.0), *risen.tolist()])
            ticks, present = of_member.ticks[inside], of_member.present[:, inside]
            lived = sum(self.seconds(table, ticks[seen]) for seen in present)
            summed = Summed(
                summed.number + lived / self.seconds(table, ticks),
                summed.members + int(present.any(axis=1).sum()),
                summed.changed or not present.all(),
                summed.ended + int((present.any(axis=1) & ~present[:, -1]).sum()),
                largest,
            )
            self.out.add_events(part.out)
            parts.append(part.out)
        for column, course in courses.items():
            self.out.add_series(names[column], course.series(self.unit(f"{table}.{column}")))
        for name in names.values():
            if of_parts := [part.by_segment[name] for part in parts if name in part.by_segment]:
                self.out.by_segment[name] = np.sum(of_parts, axis=0)
            rates = [one for part in parts if (one := part.get(name))]
            unknown = [part for part in parts if not part.get(name) and (not optional or name in part.lost)]
            if unknown:
                self.out.mark_missing(name, unknown[0].why(name))
            elif rates:
                self.out.total(name, rates)
            elif optional:
                self.out.mark_missing(name, optional)
        return summed

    def described(self, column: str) -> ColumnMeaning:
        """The metadata of TABLE.COLUMN or of a metric; empty without."""
        probe, _, of_table = column.partition(".")
        path = self.run.table(self.window.role, probe)
        return ColumnMeaning() if path is None else self.store.described(path, of_table)

    def size(self, column: str) -> float | None:
        """The value at which the counters of TABLE.COLUMN start again at zero; None without one."""
        return size_of(self.described(column))

    def unit(self, column: str) -> float:
        """The unit of TABLE.COLUMN in base units. Raises InputError if it is not known.

        A metric without an entry is a count; nothing is known of one that an old version imported.
        """
        probe, _, of_table = column.partition(".")
        path = self.run.table(self.window.role, probe)
        if path is None:
            return math.nan
        unit = self.store.described(path, of_table).unit
        if unit is None and self.has(probe, "metric"):
            return math.nan if self.run.meta.imported and probe == "vmstat" else 1.0
        return factor(path, of_table, unit, self.run)

    def has(self, probe: str, column: str) -> bool:
        """Whether a probe's table has a column."""
        path = self.run.table(self.window.role, probe)
        return path is not None and column in self.store.columns(path)
