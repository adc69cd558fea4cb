"""Stores the quantities of one run by name: the inputs of the formulas of rows.

Names are `source.entity.field`, e.g. `disk.vda.reads`, `cpu.server.user`; rates are in base units (s, B, 1)
per second. Quantities that were not measured are absent; `why` returns the reason.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.formula import Formula
from loadprint.catalogue.metric import Metric
from loadprint.reading.counters import SIZES, Floats, Numbers, edges, increase, steps
from loadprint.reading.histograms import Histogram
from loadprint.reading.time_series import Series

NOT_KNOWN = "it was not read twice in the window without a restart between"
CONSTANT = ".cores"  # in the window
NEAR = 0.05  # s: reads of one tick; the generator's seconds are others
STEPS = 3  # values from fewer steps of their source are flagged


@dataclass(frozen=True)
class Quantity:
    """`rate`: base unit per second, or a gauge's value; `count`: raw increase in the unit of the source.

    `count` is None if the resolution of the source does not matter. `cut`: the source truncates to whole
    steps, as clocks do: 0 means less than one step. `error` is the standard error of a rate from samples.
    """

    rate: float
    count: float | None = None
    cut: bool = False
    error: float = 0.0


@dataclass
class Quantities:
    """All quantities of one run; `histograms` by table and entity, of the values in the window.

    `series` are over the whole recording, those of counters that charts and checks need; `readings` those of
    figures over readings.
    `each` has the rates of counters in the `segments`, if there are several; NaN where not known.
    `absent` has the value of names that start with a prefix and are not in `values`, such as "no sample".
    """

    segments: int = 1
    values: dict[str, Quantity] = field(default_factory=dict)
    by_segment: dict[str, Floats] = field(default_factory=dict)
    absent: dict[str, Quantity] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # events without effect on the figures
    warnings: list[str] = field(default_factory=list)  # events that can affect the figures
    histograms: dict[tuple[str, ...], Histogram] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)
    readings: dict[str, Series] = field(default_factory=dict)
    scraped: dict[str, Metric] = field(default_factory=dict)  # rows that patterns of the user select
    lost: set[str] = field(default_factory=set)  # counters that are recorded, and not known
    gauges: set[str] = field(default_factory=set)  # that only have figures over their readings
    # by table, as they were read: a name can contain a dot, as those of VLANs do
    entities: dict[str, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set))
    falls: int = 0  # of counters, apart from steps back, and changes of a set of CPUs
    unknown: str = ""  # reason why a counter that fell is not known: no sum has it as a part

    def put(self, name: str, rate: float, count: float | None = None, *, cut: bool = False) -> None:
        """Add a quantity; one that is not finite is missing."""
        if not math.isfinite(rate):
            self.mark_missing(name, "not a finite number in the recording")
            return
        self.values[name] = Quantity(rate, count, cut)

    def add_series(self, name: str, series: Series) -> None:
        """Add the course of a quantity, unless nothing of it is known; what is not finite is missing."""
        finite = np.isfinite(series.values)
        if finite.any():
            self.series.setdefault(name, replace(series, values=np.where(finite, series.values, np.nan)))

    def sum_series(self, name: str, parts: Sequence[Series | None]) -> None:
        """Add the sum of some courses of one probe, unless one is missing."""
        present = [part for part in parts if part is not None]
        if present and len(present) == len(parts):
            self.add_series(
                name, replace(present[0], values=np.sum([part.values for part in present], axis=0))
            )

    def total(self, name: str, parts: Sequence[Quantity]) -> None:
        """Add the sum of some quantities."""
        count = math.fsum(part.count or 0.0 for part in parts)
        self.put(name, sum(part.rate for part in parts), count, cut=any(part.cut for part in parts))

    def mark_missing(self, prefix: str, reason: str) -> None:
        """Store the reason why names that start with `prefix` are missing; the first reason counts."""
        self.missing.setdefault(prefix, reason)

    def get(self, name: str) -> Quantity | None:
        """Return the quantity; None if it was not measured."""
        quantity = self.values.get(name)
        if quantity is None and self.absent:
            return next((zero for prefix, zero in self.absent.items() if name.startswith(prefix)), None)
        return quantity

    def resolved(self, formula: Formula) -> Formula:
        """A formula without alternatives: those that are in the recording, even if they are not known."""
        return formula.recorded(lambda name: name in self.lost or self.get(name) is not None)

    def value(self, formula: Formula) -> float | None:
        """Value of a formula without alternatives; None if a name is not known. Raises ZeroDivisionError."""
        amount = formula.value(self.rate)
        return None if amount is None else float(amount)

    def divisor(self, formula: Formula) -> str:
        """The divisor of a formula that is 0."""
        return formula.divisor(self.rate)

    def rate(self, name: str) -> float | None:
        """The value of a quantity; None if it is not known."""
        return float(quantity.rate) if (quantity := self.get(name)) else None

    def course(self, formula: Formula) -> Series | None:
        """A formula over time; None without its series, or if they were not read at the same times."""
        used: list[Series] = []

        def read(name: str, of: Mapping[str, Series]) -> Floats | np.float64 | None:
            if name not in of and (name.endswith(CONSTANT) or name.startswith("variables.")):
                return np.float64(constant.rate) if (constant := self.values.get(name)) else None
            if name not in of:
                return None
            used.append(of[name])
            is_alike = len(of[name].values) == len(used[0].values)
            return of[name].values if is_alike else np.full(len(used[0].values), np.nan)

        values = self.resolved(formula).course(
            lambda name: read(name, self.series), lambda name: read(name, self.readings)
        )
        if values is None or not used or len({len(series.values) for series in used}) > 1:
            return None
        if max(np.abs(series.seconds - used[0].seconds).max(initial=0.0) for series in used) > NEAR:
            return None
        return replace(used[0], values=np.where(np.isfinite(values), values, np.nan))

    def why(self, name: str) -> str:
        """Reason why a name, or one in a figure, is missing: that of the longest prefix."""
        inner = name.rpartition("(")[2].replace('"', "")
        starts = (text[:end] for end in range(max(len(name), len(inner)), -1, -1) for text in (name, inner))
        return next(
            (self.missing[start] for start in starts if start in self.missing),
            f"{name} is not a recorded quantity",
        )

    def why_not(self, formula: Formula) -> str:
        """Reason why a formula without alternatives has no value; empty if nothing is missing."""
        return next((self.why(name) for name in formula.names if self.get(name) is None), "")

    def counter(  # noqa: PLR0913
        self,
        name: str,
        readings: Floats,
        at: Floats,
        unit: float,
        size: float | None = None,
        *,
        present: NDArray[np.bool_] | None = None,
        of: Numbers | None = None,
        succeeded: bool = False,
    ) -> Floats:
        """Add a counter from readings at the times `at`; `unit` is one step of the source in base units.

        `readings` are float64[reads], or float64[counters, reads] of several counters, whose rates are added;
        `of` are the segments of the reads, `size` is where counters start again at zero, if that is known,
        and of `succeeded` ones a fall is a successor's. Each increase is divided by the seconds between the
        readings it is from; a counter that was not `present` at all times, bool[counters, reads], counts by
        its share of the time from the first to the last read of each segment. Returns the rate of each.
        """
        counters = np.atleast_2d(readings)
        there = np.ones(counters.shape, dtype=bool) if present is None else present
        of = np.zeros(len(at), np.intp) if of is None else of
        whole = self._spans(at, of)
        seconds = float(whole.sum())
        increases, rates = [], np.zeros(self.segments)
        for one, seen in zip(counters, there, strict=True):
            times, segment = (at, of) if seen.all() else (at[seen], of[seen])
            lived = whole if times is at else self._spans(times, segment)
            if not lived.any():
                continue  # one that was there for a single read counted nothing that is known
            risen = increase(one[seen], size, segment, succeeded=succeeded)
            spans = np.zeros(1) if risen is None else times[risen.last] - times[risen.first]
            if self.segments > 1:
                amounts = np.full(self.segments, np.nan)
                if risen is not None:
                    places = segment[risen.first]
                    amounts[places] = risen.by_segment * lived[places] / spans
                rates += np.where(lived > 0, amounts, 0.0)
            increases.append((risen, lived, spans))
        if self.segments > 1 and increases:
            self.by_segment[name] = rates * unit / np.where(whole > 0, whole, np.nan)
        valid = [(risen, lived, spans) for risen, lived, spans in increases if risen and spans.sum() > 0]
        if len(valid) < len(increases) or not increases or seconds <= 0:
            self.mark_missing(name, self._why_unknown(name, counters, size, of))
            return np.empty(0)
        wraps, restarts, back = (
            sum(getattr(risen, kind) for risen, *_ in valid) for kind in ("wraps", "restarts", "steps_back")
        )
        self.falls += restarts
        if wraps and (size is None or size in SIZES):
            self.falls += wraps
            self.warnings.append(f"{name} wrapped {wraps}x; the wraps are added back")
        if restarts and not succeeded:
            self.warnings.append(f"{name} was reset {restarts}x; counted from zero after each reset")
        if back:
            self.notes.append(f"{name} stepped back {back}x; a step back adds nothing")
        counted = [risen.amount * (lived.sum() / spans.sum()) for risen, lived, spans in valid]
        amount = math.fsum(counted)
        # a step below a base unit is of a clock or a meter, which truncate
        self.put(name, amount * unit / seconds, amount, cut=unit < 1)
        return np.array(counted) * (unit / seconds)

    def _spans(self, at: Floats, of: Numbers) -> Floats:
        """Seconds from the first to the last read of each segment, shape (segments,)."""
        spans, (first, last) = np.zeros(self.segments), edges(of)
        spans[of[first]] = at[last] - at[first]
        return spans

    def _why_unknown(self, name: str, counters: Floats, size: float | None, of: Numbers) -> str:
        """Reason why the increase of these counters is not known; a warning if one of them fell."""
        for readings in counters:
            is_known = ~np.isnan(readings)
            values = readings[is_known]
            if not len(values):
                return "the kernel does not print this field"
            fell = np.flatnonzero(steps(values, size, of[is_known]).unknown)
            if len(fell):
                before, after = values[fell[0]], values[fell[0] + 1]
                reason = f"it fell from {before:,.0f} to {after:,.0f} between two readings"
                self.warnings.append(f"{name} is not known: {reason}")
                self.falls, self.unknown = self.falls + 1, self.unknown or reason
                self.lost.add(name)
                return reason
        return NOT_KNOWN

    def sum_of(self, name: str, parts: Quantities, reason: str) -> None:
        """Add the sum of all `parts`; `reason` is why there are none. A part that is not known has no sum."""
        self.add_events(parts)
        if parts.values and not parts.unknown:
            self.total(name, list(parts.values.values()))
        else:
            self.mark_missing(name, parts.unknown or reason)

    def add_events(self, parts: Quantities) -> None:
        """Add the warnings, notes and falls of the parts of a quantity."""
        self.warnings += parts.warnings
        self.notes += parts.notes
        self.falls += parts.falls

    def set_resolution(self, name: str, step: float) -> None:
        """Set the resolution of a quantity's source: its increase is a multiple of `step`."""
        quantity = self.values.get(name)
        if quantity is not None and quantity.count is not None:
            self.values[name] = Quantity(quantity.rate, quantity.count / step, cut=True)
