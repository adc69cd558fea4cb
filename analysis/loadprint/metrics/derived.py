"""Declares the derived metrics as tables: label, unit, inputs and formula of each row.

A metric needs named quantities (quantities.py); if one is missing, a footnote of the row names it and the
reason. Values are in base units (s, B, 1, CPU-seconds per second); `shown` is the printed unit, by FACTORS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower", "neither"]
# rows are shown in every view, only if there is a value, only if it is not 0, with --all, or without it
View = Literal["always", "measured", "nonzero", "all", "usual"]

# printed value ÷ base value; a kB is 1024 B, as in the kernel, sar and iostat
FACTORS = {"ms": 1e3, "µs": 1e6, "kB": 1 / 1024, "kB/s": 1 / 1024, "MHz": 1e-6, "mJ": 1e3}


@dataclass(frozen=True)
class Metric:
    """One row. `compute` gets the rates of `needs` in order; ZeroDivisionError means "did not occur".

    `formula` is the same as text, a template of formulas.py.
    The first `coarse` inputs together must have three steps of their source, else the value is flagged.
    `rounding` is the largest error from the source's resolution, as a share of the value (half a bucket).
    The first `sampled` inputs have a sampling error, which is part of the interval.
    `mixed_flavours_footnote` applies only where MySQL is compared with MariaDB.
    `per_operation` rows depend on the workload's operation: no ratio between different operations.
    `part` rows are parts of the row above them and not of a sum.
    """

    key: str
    label: str
    unit: str
    shown: str
    needs: tuple[str, ...]
    compute: Callable[..., float]
    formula: str = "{0}"
    better: Better = "neither"
    headline: bool = False
    per_operation: bool = False
    coarse: int = 1
    footnote: str = ""
    mixed_flavours_footnote: str = ""
    view: View = "always"
    rounding: float = 0.0
    sampled: int = 0
    part: bool = False

    @property
    def factor(self) -> float:
        """Factor from the base unit to the printed unit."""
        return FACTORS.get(self.shown, 1.0)

    @property
    def percent(self) -> bool:
        """Whether differences are also printed in percentage points."""
        return self.unit == "%"

    def of(self, entity: str) -> Metric:
        """The metric of one device or interface."""
        return replace(
            self,
            key=self.key.format(entity),
            label=self.label.format(entity),
            needs=tuple(name.format(entity) for name in self.needs),
        )


SERVER_SWITCHES = (
    "threads.server.voluntary_ctxt_switches",
    "threads.server.nonvoluntary_ctxt_switches",
)

CLOSED_LOOP = (
    "of one database transaction, which can contain many operations; closed loop: latency follows from "
    "threads ÷ throughput; not judged"
)


def as_is(value: float) -> float:
    """The quantity itself."""
    return value


def added(*values: float) -> float:
    """Sum of the quantities."""
    return sum(values)


def quotient(above: float, below: float) -> float:
    """First quantity ÷ second."""
    return above / below


def percent(share: float) -> float:
    """A share of 1 in percent."""
    return 100 * share


def rate(key: str, label: str, unit: str, shown: str, source: str) -> Metric:
    """Row of one quantity."""
    return Metric(key, label, unit, shown, (source,), as_is)


def with_view(view: View, *metrics: Metric) -> tuple[Metric, ...]:
    """The same rows in another view."""
    return tuple(replace(metric, view=view) for metric in metrics)


def _latency(name: str, label: str) -> Metric:
    shown = rate(f"latency_{name}", f"latency {label}", "s", "ms", f"latency.{name}")
    return replace(shown, better="lower", per_operation=True, footnote=CLOSED_LOOP)


def with_direction(metric: Metric, better: Better, *, headline: bool = False) -> Metric:
    """The same row with a direction, and with a verdict if `headline`."""
    return replace(metric, better=better, headline=headline)


THROUGHPUT = (
    replace(
        with_direction(rate("operations", "operations", "1/s", "/s", "load.events"), "higher", headline=True),
        per_operation=True,
    ),
    with_direction(
        rate("statements", "client statements", "1/s", "/s", "load.queries"), "higher", headline=True
    ),
    with_direction(rate("commits", "commits", "1/s", "/s", "load.commits"), "higher"),
    with_direction(rate("rows_written", "rows written", "1/s", "/s", "load.rows"), "higher"),
    *with_view("nonzero", with_direction(rate("errors", "errors", "1/s", "/s", "load.errors"), "lower")),
)
_SECONDS = "rates(throughput.events)"
STEADINESS = (
    replace(
        rate("throughput_cv", "throughput variation (CV)", "%", "%", "load.cv"),
        compute=percent,
        formula=f"100 × sd({_SECONDS}) / mean({_SECONDS})",
        better="lower",
    ),
    replace(
        rate("throughput_min_over_median", "worst second / median", "%", "%", "load.worst_second"),
        compute=percent,
        formula=f"100 × min({_SECONDS}) / median({_SECONDS})",
        better="higher",
        view="all",
    ),
)
P99 = 3  # index in LATENCY
LATENCY = (
    _latency("mean", "mean"),
    _latency("p50", "p50"),
    _latency("p95", "p95"),
    _latency("p99", "p99"),
    _latency("p999", "p99.9"),
    _latency("max", "max"),
)


def latency(*, equal_load: bool) -> tuple[Metric, ...]:
    """Latency rows; p99 has a verdict only if all sides were driven at one rate."""
    if not equal_load:
        return LATENCY
    return tuple(replace(metric, footnote="", headline=metric.key == "latency_p99") for metric in LATENCY)


KERNEL = (
    Metric(
        "switches_server",
        "context switches, server threads",
        "1/s",
        "/s",
        SERVER_SWITCHES,
        added,
        "{0+1}",
        coarse=2,
    ),
    *with_view("all", rate("switches_host", "context switches, whole host", "1/s", "/s", "host.ctxt")),
    rate("interrupts_server", "interrupts, server's CPUs", "1/s", "/s", "interrupts.server"),
    *with_view(
        "all",
        rate("interrupts_host", "interrupts, whole host", "1/s", "/s", "host.intr"),
        rate("softirqs_server", "softirqs, server's CPUs", "1/s", "/s", "softirqs.server"),
        rate("forks_host", "processes and threads created", "1/s", "/s", "host.processes"),
    ),
    Metric(
        "pressure_cpu",
        "PSI cpu some",
        "%",
        "%",
        ("pressure.cpu_some",),
        percent,
        "100 × {0}",
    ),
    Metric(
        "pressure_io",
        "PSI io some",
        "%",
        "%",
        ("pressure.io_some",),
        percent,
        "100 × {0}",
    ),
    *with_view(
        "all",
        Metric(
            "pressure_io_full",
            "PSI io full",
            "%",
            "%",
            ("pressure.io_full",),
            percent,
            "100 × {0}",
        ),
        Metric(
            "pressure_memory",
            "PSI memory some",
            "%",
            "%",
            ("pressure.memory_some",),
            percent,
            "100 × {0}",
        ),
    ),
    *with_view(
        "nonzero",
        with_direction(
            rate("tcp_retransmits", "TCP segments retransmitted", "1/s", "/s", "tcp.RetransSegs"), "lower"
        ),
    ),
)
