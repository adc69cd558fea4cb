"""The derived metrics as tables: what a row is called, its unit, its inputs, its formula.

A metric needs named quantities (quantities.py); when one is absent the row says which and why. Values are in
base units (s, B, 1, CPU-seconds per second); `shown` is the unit a person reads, by FACTORS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower", "neither"]
# where a row is shown: in every view, there only where something happened, or with --all
View = Literal["always", "nonzero", "all"]

# what a base unit is multiplied with to be shown; kB is 1024 B, as the kernel, sar and iostat mean it
FACTORS = {"ms": 1e3, "µs": 1e6, "kB": 1 / 1024, "kB/s": 1 / 1024, "MHz": 1e-6, "mJ": 1e3}


@dataclass(frozen=True)
class Metric:
    """One row. `compute` gets the rates of `needs` in order; ZeroDivisionError means "did not happen".

    `coarse` leading inputs together must show three steps of their source, else the value is flagged.
    `rounding` is how far a value may be off by its source's own steps, as a share of it (a bucket's middle).
    `mixed_flavours_footnote` applies only where MySQL is compared with MariaDB.
    `per_operation` rows count the workload's own operation: no ratio between different operations.
    """

    key: str
    label: str
    unit: str
    shown: str
    needs: tuple[str, ...]
    compute: Callable[..., float]
    formula: str
    better: Better = "neither"
    headline: bool = False
    per_operation: bool = False
    coarse: int = 1
    footnote: str = ""
    mixed_flavours_footnote: str = ""
    view: View = "always"
    rounding: float = 0.0

    @property
    def factor(self) -> float:
        """Factor from the base unit to the shown one."""
        return FACTORS.get(self.shown, 1.0)

    @property
    def percent(self) -> bool:
        """Whether differences are also told in points."""
        return self.unit == "%"

    def of(self, entity: str) -> Metric:
        """Same metric of one device or interface."""
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

CLOSED_LOOP = "in a closed loop latency follows from throughput (threads / rate): shown, not judged"


def as_is(value: float) -> float:
    """A quantity as it is."""
    return value


def added(*values: float) -> float:
    """Sum of all."""
    return sum(values)


def quotient(above: float, below: float) -> float:
    """First by second."""
    return above / below


def percent(share: float) -> float:
    """Share as a percentage."""
    return 100 * share


def rate(key: str, label: str, unit: str, shown: str, source: str) -> Metric:
    """Row that shows one quantity as it is."""
    return Metric(key, label, unit, shown, (source,), as_is, f"Δ{source} / s")


def seen(view: View, *metrics: Metric) -> tuple[Metric, ...]:
    """The same rows, shown elsewhere."""
    return tuple(replace(metric, view=view) for metric in metrics)


def _latency(name: str, label: str) -> Metric:
    shown = rate(f"latency_{name}", f"latency {label}", "s", "ms", f"latency.{name}")
    return replace(
        shown, formula="as the generator reports it", better="lower", per_operation=True, footnote=CLOSED_LOOP
    )


def directed(metric: Metric, better: Better, *, headline: bool = False) -> Metric:
    """The same row with a direction, and a verdict where `headline`."""
    return replace(metric, better=better, headline=headline)


THROUGHPUT = (
    replace(
        directed(rate("operations", "operations", "1/s", "/s", "load.events"), "higher", headline=True),
        per_operation=True,
    ),
    directed(rate("statements", "client statements", "1/s", "/s", "load.queries"), "higher", headline=True),
    directed(rate("commits", "commits", "1/s", "/s", "load.commits"), "higher"),
    directed(rate("rows_written", "rows written", "1/s", "/s", "load.rows"), "higher"),
    *seen("nonzero", directed(rate("errors", "errors", "1/s", "/s", "load.errors"), "lower")),
)
STEADINESS = (
    replace(
        rate("throughput_cv", "spread of the seconds", "%", "%", "load.cv"),
        compute=percent,
        formula="100 × sd / mean of operations/s",
        better="lower",
    ),
    replace(
        rate("throughput_min_over_median", "worst second, of the median", "%", "%", "load.worst_second"),
        compute=percent,
        formula="100 × min / median of operations/s",
        better="higher",
        view="all",
    ),
)
P99 = 3  # its place
LATENCY = (
    _latency("mean", "mean"),
    _latency("p50", "p50"),
    _latency("p95", "p95"),
    _latency("p99", "p99"),
    _latency("p999", "p99.9"),
    _latency("max", "max"),
)


def latency(*, equal_load: bool) -> tuple[Metric, ...]:
    """Latency rows; a finding, with a verdict on p99, only where all sides were driven at one rate."""
    if not equal_load:
        return LATENCY
    return tuple(
        replace(metric, footnote="", headline=metric.key == "latency_p99", formula="from the intended start")
        for metric in LATENCY
    )


_SWITCHES = "Δ(voluntary + nonvoluntary) / s over the server's threads"
KERNEL = (
    Metric(
        "switches_server",
        "context switches, server threads",
        "1/s",
        "/s",
        SERVER_SWITCHES,
        added,
        _SWITCHES,
        coarse=2,
    ),
    *seen("all", rate("switches_host", "context switches, whole host", "1/s", "/s", "host.ctxt")),
    rate("interrupts_server", "interrupts, server's CPUs", "1/s", "/s", "interrupts.server"),
    *seen(
        "all",
        rate("interrupts_host", "interrupts, whole host", "1/s", "/s", "host.intr"),
        rate("softirqs_server", "softirqs, server's CPUs", "1/s", "/s", "softirqs.server"),
        rate("forks_host", "processes and threads created", "1/s", "/s", "host.processes"),
    ),
    Metric(
        "pressure_cpu",
        "some task waited for CPU",
        "%",
        "%",
        ("pressure.cpu_some",),
        percent,
        "100 × Δtotal_us / µs",
    ),
    Metric(
        "pressure_io",
        "some task waited for I/O",
        "%",
        "%",
        ("pressure.io_some",),
        percent,
        "100 × Δtotal_us / µs",
    ),
    *seen(
        "all",
        Metric(
            "pressure_io_full",
            "all tasks waited for I/O",
            "%",
            "%",
            ("pressure.io_full",),
            percent,
            "100 × Δtotal_us / µs",
        ),
        Metric(
            "pressure_memory",
            "some task waited for memory",
            "%",
            "%",
            ("pressure.memory_some",),
            percent,
            "100 × Δtotal_us / µs",
        ),
    ),
    *seen(
        "nonzero",
        directed(
            rate("tcp_retransmits", "TCP segments retransmitted", "1/s", "/s", "tcp.RetransSegs"), "lower"
        ),
    ),
)
