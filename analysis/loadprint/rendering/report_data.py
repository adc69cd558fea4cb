"""Defines the content of a report as plain values; pages and figures draw them and compute nothing.

Times are seconds since the start of a run's `measure` phase, without the turns of other sides; values are in
base units (s, B, 1, cores), NaN without a reading. `shown` is the printed unit, `factor` converts to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.judging.comparability import Setting
from loadprint.rendering import pivot
from loadprint.rendering.printout import Block
from loadprint.tables.table import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MarkedSpan:
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
    """A complete repeat of the side at position `side`."""

    id: str
    side: int
    repeat: int
    phases: tuple[MarkedSpan, ...] = ()
    spikes: tuple[MarkedSpan, ...] = ()

    @property
    def window(self) -> MarkedSpan | None:
        """The phase in which the table's values were measured."""
        return next((span for span in self.phases if span.name == "measure"), None)


@dataclass(frozen=True)
class Line:
    """The series of one run, or of one part of a stack: float64[n] each.

    `inside`, bool[n], is what was measured in the window, as the table is.
    """

    run: int
    seconds: Floats
    values: Floats
    part: str = ""
    inside: NDArray[np.bool_] | bool = True


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
class FittedCurve:
    """A fitted curve, float64[n] each; `low` and `high` are its 95 % interval, None without one.

    `chief`: the subject of the figure; the other curves are drawn dashed.
    """

    label: str
    n: Floats
    x: Floats
    low: Floats | None = None
    high: Floats | None = None
    chief: bool = True


@dataclass(frozen=True)
class Panel:
    """Throughput over concurrency: every measured point, the curves, and the optimum if there is one.

    `conclusions` and `blocks`, the tables of the fit, are for the page.
    """

    title: str
    concurrency: str
    unit: str
    n: Floats
    x: Floats
    curves: tuple[FittedCurve, ...] = ()
    optimum: float | None = None
    conclusions: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Flames:
    """Flame graphs of all sides: a position per call path, callers before the functions that they call.

    `parents` are positions, −1 for the root; `kernel`: its last function is code of the kernel; `times`
    float64[paths, sides] is in s per `work`. A ratio to the side `base` is (centre, low, high, whether it
    differs when tested among all paths). It is None for the reference itself and where some run has no sample
    of the path; its centre is None where the reference has none.
    """

    work: str
    base: int
    names: tuple[str, ...]
    parents: tuple[int, ...]
    kernel: tuple[bool, ...]
    times: Floats
    ratios: tuple[tuple[tuple[float | None, float | None, float | None, bool] | None, ...], ...]


@dataclass(frozen=True)
class ReportPage:
    """The content of the page, in its order. `ab` is the result, if the execution is an A/B.

    `made` and `probes` are (label, text), `absent` the titles of sections without data with the reason.
    """

    title: str
    sides: tuple[SideOf, ...]
    runs: tuple[RunOf, ...]
    table: Table | None = None
    pivots: pivot.PivotReport | None = None
    courses: tuple[Course, ...] = ()
    percentiles: tuple[Percentiles, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    scaled: tuple[Panel, ...] = ()
    settings: tuple[Setting, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    probes: tuple[tuple[str, str], ...] = ()
    ab: Any | None = None
    flames: Flames | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def runs_of(self, side: int) -> tuple[int, ...]:
        """Positions of the repeats of a side."""
        return tuple(place for place, run in enumerate(self.runs) if run.side == side)
