"""Defines a row of a table or chart, as an entry of the catalogue or a ledger declares it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from loadprint.catalogue.formula import Formula, Name

Better = Literal["higher", "lower", "neither"]
# rows are shown in every view, only if there is a value, only if it is not 0, with --all, without it, or
# never: they are only charts
View = Literal["always", "measured", "nonzero", "all", "usual", "chart"]
At = Literal["saturation", "equal-load", "any"]  # the load at which `loadprint qualify` judges a row

# of charts over time, in the order of the page
SECTIONS: dict[str, str] = {
    "throughput": "Throughput and latency",
    "cpu": "CPU",
    "disk": "Disk",
    "network": "Network",
    "kernel": "Switches and interrupts",
    "waiting": "Off-CPU and run queue, by eBPF",
    "memory": "Memory",
    "pressure": "Pressure stalls",
    "mysql": "Inside MySQL",
}
# shown unit: base unit, and printed value ÷ base value; a kB is 1024 B, as in the kernel, sar and iostat
UNITS = {
    "": ("1", 1.0),
    "/s": ("1/s", 1.0),
    "/min": ("1/min", 1.0),
    "%": ("%", 1.0),
    "cores": ("cores", 1.0),
    "s": ("s", 1.0),
    "ms": ("s", 1e3),
    "µs": ("s", 1e6),
    "B": ("B", 1.0),
    "kB": ("B", 1 / 1024),
    "MiB": ("B", 1 / 1048576),
    "kB/s": ("B/s", 1 / 1024),
    "MHz": ("Hz", 1e-6),
    "mJ": ("J", 1e3),
    "W": ("W", 1.0),
}


@dataclass(frozen=True)
class Screens:
    """The screens that show a row, besides the whole table.

    `first` is its heading on the first screen, `sar` its place in the published SAR table, `instead_of` the
    row that it replaces on the first screen where a side lacks that one. `unlike`: it is there also if the
    sides count different operations.
    """

    first: str = ""
    sar: int = 0
    instead_of: str = ""
    unlike: bool = False


@dataclass(frozen=True)
class Metric:
    """One row; its value is in the base unit of `shown`.

    `computed` is printed in place of a formula of quantities that code computes.
    The inputs in `formula.counted` together must have three steps of their source, else the value is flagged.
    `rounding` is the largest error from the source's resolution, as a share of the value (half a bucket).
    The first `sampled` inputs have a sampling error, which is part of the interval.
    `between_flavours` is a footnote where MySQL is compared with MariaDB.
    `untested` rows have intervals and no mark.
    `per_operation` rows depend on the workload's operation: no ratio between different operations.
    `part` rows are parts of the row above them and not of a sum.
    `chart` is the section of its chart, and the chart's title. `optional`: the usual view has it if a run has
    all inputs. `named` is the named formula that it shows unchanged. `tolerance` is in percent.
    """

    key: str
    label: str
    shown: str
    formula: Formula
    better: Better = "neither"
    headline: bool = False
    per_operation: bool = False
    untested: bool = False
    footnote: str = ""
    between_flavours: str = ""
    view: View = "always"
    rounding: float = 0.0
    sampled: int = 0
    part: bool = False
    computed: str = ""
    chart: tuple[str, str] | None = None
    optional: bool = False
    named: str = ""
    tolerance: float | None = None
    tolerated_at: At | None = None
    screens: Screens = Screens()

    @property
    def unit(self) -> str:
        """The base unit of its value."""
        return UNITS[self.shown][0]

    @property
    def factor(self) -> float:
        """Factor from the base unit to the printed unit."""
        return UNITS[self.shown][1]

    @property
    def percent(self) -> bool:
        """Whether differences are also printed in percentage points."""
        return self.shown == "%"

    @property
    def text(self) -> str:
        """The formula as it is printed."""
        return self.computed or self.formula.text

    @property
    def quantity(self) -> str | None:
        """The quantity that it shows unchanged; None of a formula."""
        return self.named or (self.formula.tree.name if isinstance(self.formula.tree, Name) else None)

    def of(self, entity: str) -> Metric:
        """The metric of one device, interface, role or CPU set: `{}` is replaced."""
        return replace(
            self,
            key=self.key.replace("{}", entity),
            label=self.label.replace("{}", entity),
            formula=self.formula.of(entity),
            computed=self.computed.replace("{}", entity),
            screens=replace(self.screens, instead_of=self.screens.instead_of.replace("{}", entity)),
        )


def with_view(view: View, *metrics: Metric) -> tuple[Metric, ...]:
    """The same rows in another view, and not on the first screen."""
    return tuple(replace(metric, view=view, screens=Screens()) for metric in metrics)
