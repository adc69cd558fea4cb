"""What one run did per second, by name: the inputs of every derived metric.

Names are `source.entity.field`, e.g. `disk.vda.reads`, `cpu.server.user`; rates are in base units (s, B, 1) a
second. What was not measured is not in the mapping; `why` tells the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadprint.reading.histograms import Histogram
from loadprint.reading.window import WRAPS, Floats, increase

STEPS = 3  # a value from fewer steps of its source is flagged


@dataclass(frozen=True)
class Quantity:
    """`rate`: base unit per second, or a gauge's value; `count`: raw increase in the source's own unit.

    `count` is None where the value has no coarse source, so that no resolution can be held against it.
    `cut`: the source cuts off what is under a step, as clocks do: its 0 is less than a step, not nothing.
    """

    rate: float
    count: float | None = None
    cut: bool = False


@dataclass
class Quantities:
    """All inputs of one run; `histograms` are by table and entity, what they counted in the window."""

    values: dict[str, Quantity] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what happened and does no harm
    warnings: list[str] = field(default_factory=list)  # what a reader should be warned of
    histograms: dict[tuple[str, ...], Histogram] = field(default_factory=dict)

    def put(self, name: str, rate: float, count: float | None = None, *, cut: bool = False) -> None:
        """Add a quantity; one that is not finite is not there."""
        if not math.isfinite(rate):
            self.mark_missing(name, "not a finite number in the recording")
            return
        self.values[name] = Quantity(rate, count, cut)

    def total(self, name: str, parts: Sequence[Quantity]) -> None:
        """Add the sum of some quantities."""
        count = math.fsum(part.count or 0.0 for part in parts)
        self.put(name, sum(part.rate for part in parts), count, cut=any(part.cut for part in parts))

    def mark_missing(self, prefix: str, reason: str) -> None:
        """Say why names that begin with `prefix` are not here."""
        self.missing.setdefault(prefix, reason)

    def get(self, name: str) -> Quantity | None:
        """Return the quantity, None when it was not measured."""
        return self.values.get(name)

    def why(self, name: str) -> str:
        """Reason why a name is not here: the longest prefix that has one."""
        prefixes = sorted((p for p in self.missing if name.startswith(p)), key=len)
        return self.missing[prefixes[-1]] if prefixes else f"{name} is not in the recording"

    def entities(self, source: str) -> list[str]:
        """Names of the devices or interfaces of a source, in name order."""
        return sorted({name.split(".", 2)[1] for name in self.values if name.startswith(f"{source}.")})

    def counter(  # noqa: PLR0913  what a counter is takes so many words
        self,
        name: str,
        readings: Floats,
        seconds: float,
        unit: float,
        *,
        step_back: bool = False,
        wraps: Sequence[float] | None = None,
    ) -> None:
        """Add a counter from readings over `seconds`; `unit` turns a step of the source into base units.

        `wraps` are sizes behind which this source's counters begin again as a matter of course.
        """
        risen = increase(readings, may_step_back=step_back, wraps=WRAPS if wraps is None else wraps)
        if risen is None or seconds <= 0:
            self.mark_missing(name, "the kernel does not print this field")
            return
        if risen.wraps and wraps is None:
            self.warnings.append(f"{name} wrapped {risen.wraps}x; added back")
        if risen.resets:
            self.warnings.append(f"{name} was reset {risen.resets}x; counted on from zero")
        # things are counted whole; a step of less than a base unit is one of a clock or a meter
        self.put(name, risen.amount * unit / seconds, risen.amount, cut=unit < 1)

    def set_resolution(self, name: str, step: float) -> None:
        """Say that a quantity's source told its increase no finer than `step`."""
        found = self.values.get(name)
        if found is not None and found.count is not None:
            self.values[name] = Quantity(found.rate, found.count / step, cut=True)
