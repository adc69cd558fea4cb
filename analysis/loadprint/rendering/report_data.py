"""What a report shows, as plain values. Whoever draws it, here or on paper, does no statistics of its own.

Times are seconds since the begin of a run's `measure` phase, values are in base units (s, B, 1, cores), and
NaN stands where there was no reading. `shown` is the unit that is printed, `factor` leads to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.rendering import pivot
from loadprint.tables.table import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """A stretch of a run: a phase, or a spike with what happened in it and the share of throughput lost."""

    name: str
    begin_s: float
    end_s: float
    drop: float | None = None


@dataclass(frozen=True)
class SideOf:
    """A side as all charts name and colour it: its place among the sides is its colour."""

    name: str
    label: str
    operation: str


@dataclass(frozen=True)
class RunOf:
    """A repeat of the side at position `side`; `status` is `complete` or `missing`, then with a reason."""

    id: str
    side: int
    repeat: int
    status: str
    reason: str = ""
    phases: tuple[Span, ...] = ()
    spikes: tuple[Span, ...] = ()

    @property
    def window(self) -> Span | None:
        """The phase that the table's values are of."""
        return next((span for span in self.phases if span.name == "measure"), None)


@dataclass(frozen=True)
class Line:
    """The course of one run, or of one part of a stack: float64[n] each.

    `half` is half the length of each value's interval in seconds; 0 where it is a reading.
    """

    run: int
    seconds: Floats
    values: Floats
    part: str = ""
    half: Floats | float = 0.0


@dataclass(frozen=True)
class Course:
    """A chart over time. Where `parts` are given a run's lines lie on top of each other, in that order."""

    key: str
    section: str
    title: str
    shown: str
    factor: float
    lines: tuple[Line, ...]
    parts: tuple[str, ...] = ()
    ceiling: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """Quantiles of one run: the value (s) below which a share (0 to 1, rising) of its operations lies."""

    run: int
    shares: Floats
    values: Floats


@dataclass(frozen=True)
class Percentiles:
    """Latency of one transaction type, a curve per run; `source` is the file that it comes from."""

    kind: str
    source: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Distribution:
    """A histogram per side, all repeats together, for the eye: no quantile is taken from it.

    `edges` float64[n + 1] in base units, rising; `shares[side]` float64[n] adds up to 1, None: not measured;
    `totals[side]` is how many values were counted.
    """

    key: str
    section: str
    title: str
    shown: str
    factor: float
    edges: Floats
    shares: tuple[Floats | None, ...]
    totals: tuple[int, ...]


@dataclass(frozen=True)
class Scaled:
    """Throughput over concurrency of one series: `rates[i]` are the repeats at `threads[i]`.

    `fit` is what loadprint.usl makes of it, `told` what is to be said of both.
    """

    name: str
    threads: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    fit: Any | None = None
    unit: str = "operations/s"
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """A fact of the hosts or the server; `values` has one text per side.

    `kind` is `material`, `harmless` (both differ), `varied` (the campaign asks for it) or `same`.
    """

    group: str
    name: str
    kind: str
    values: tuple[str, ...]

    def by_value(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each different value with the places of the sides that have it."""
        return tuple(
            (value, tuple(place for place, own in enumerate(self.values) if own == value))
            for value in dict.fromkeys(self.values)
        )


@dataclass(frozen=True)
class Absent:
    """A section that has nothing to show, and why."""

    title: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Everything on the page, in its order. `ab` is the result of an A/B, where the execution is one."""

    title: str
    compared: str
    sides: tuple[SideOf, ...]
    runs: tuple[RunOf, ...]
    table: Table | None
    pivots: pivot.Report | None
    courses: tuple[Course, ...]
    percentiles: tuple[Percentiles, ...]
    distributions: tuple[Distribution, ...]
    scaled: tuple[Scaled, ...]
    settings: tuple[Setting, ...]
    made: tuple[tuple[str, str], ...]
    absent: tuple[Absent, ...]
    probes: tuple[tuple[str, str], ...] = ()
    ab: Any | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def runs_of(self, side: int) -> tuple[int, ...]:
        """Positions of the complete repeats of a side."""
        return tuple(
            place for place, run in enumerate(self.runs) if run.side == side and run.status == "complete"
        )
