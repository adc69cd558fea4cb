"""Defines the content of a report as plain values; pages and figures draw them and compute nothing.

Times are seconds since the start of a run's `measure` phase; values are in base units (s, B, 1, cores), NaN
without a reading. `shown` is the printed unit, `factor` converts to it.
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
    """An interval of a run: a phase, or a spike with its description and the share of throughput lost."""

    name: str
    begin_s: float
    end_s: float
    drop: float | None = None


@dataclass(frozen=True)
class SideOf:
    """A side in charts: its position among the sides selects its colour."""

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
        """The phase in which the table's values were measured."""
        return next((span for span in self.phases if span.name == "measure"), None)


@dataclass(frozen=True)
class Line:
    """The series of one run, or of one part of a stack: float64[n] each.

    `half` is half the length of each value's interval in seconds; 0 for an instantaneous value.
    """

    run: int
    seconds: Floats
    values: Floats
    part: str = ""
    half: Floats | float = 0.0


@dataclass(frozen=True)
class Course:
    """A chart over time. If there are `parts`, a run's lines are stacked in that order."""

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
    """Quantiles of one run: the value (s) that a share (0 to 1, rising) of its operations does not exceed."""

    run: int
    shares: Floats
    values: Floats


@dataclass(frozen=True)
class Percentiles:
    """Latency of one transaction type, a curve per run; `source` is the file with the data."""

    kind: str
    source: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Distribution:
    """A histogram per side, all repeats together, only for display: no quantile is computed from it.

    `edges` float64[n + 1] in base units, rising; the sum of `shares[side]` float64[n] is 1, None: not
    measured; `totals[side]` is the number of values.
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

    `fit` is the fit of commands/usl, `told` has sentences on both.
    """

    name: str
    threads: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    fit: Any | None = None
    unit: str = "operations/s"
    conclusions: tuple[str, ...] = ()


@dataclass(frozen=True)
class PathRatio:
    """A call path's time as a multiple of the reference's; `differs`: tested among all paths.

    The centre is None if the reference has no sample of the path.
    """

    centre: float | None
    low: float | None
    high: float | None
    differs: bool


@dataclass(frozen=True)
class FlameNode:
    """A call path: its last function, the position of the path without it, and s per unit of work by side.

    A ratio is None for the reference itself, and if some run has no sample of the path.
    """

    name: str
    parent: int
    kernel: bool
    times: tuple[float, ...]
    ratios: tuple[PathRatio | None, ...]


@dataclass(frozen=True)
class Flames:
    """Flame graphs of all sides, per `work`; callers come before the functions that they call."""

    work: str
    sides: tuple[str, ...]
    base: int
    nodes: tuple[FlameNode, ...]


@dataclass(frozen=True)
class Setting:
    """A fact of the hosts or the server; `values` has one text per side.

    `kind` is `material`, `harmless` (both differ), `varied` (by the campaign) or `same`.
    """

    group: str
    name: str
    kind: str
    values: tuple[str, ...]

    def by_value(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each distinct value with the positions of the sides that have it."""
        return tuple(
            (value, tuple(place for place, each in enumerate(self.values) if each == value))
            for value in dict.fromkeys(self.values)
        )


@dataclass(frozen=True)
class Absent:
    """A section without data, and the reason."""

    title: str
    reason: str


@dataclass(frozen=True)
class Report:
    """The content of the page, in its order. `ab` is the result, if the execution is an A/B."""

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
    flames: Flames | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def runs_of(self, side: int) -> tuple[int, ...]:
        """Positions of the complete repeats of a side."""
        return tuple(
            place for place, run in enumerate(self.runs) if run.side == side and run.status == "complete"
        )
