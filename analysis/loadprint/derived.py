"""The derived metrics as tables: what a row is called, its unit, its inputs, its formula.

A metric needs named quantities (quantities.py); when one is absent the row says which and why. Values are in
base units (s, B, 1, CPU-seconds per second); `shown` is the unit a person reads, by FACTORS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower", "neither"]

# what a base unit is multiplied with to be shown; kB is 1024 B, as the kernel, sar and iostat mean it
FACTORS = {"ms": 1e3, "µs": 1e6, "kB": 1 / 1024, "kB/s": 1 / 1024}


@dataclass(frozen=True)
class Metric:
    """One row. `compute` gets the rates of `needs` in order; ZeroDivisionError means "did not happen".

    `coarse` leading inputs together must show three steps of their source, else the value is flagged.
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


CPU_STATES = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle")
CPU_LABELS = ("%usr", "%nice", "%sys", "%iowait", "%irq", "%soft", "%steal", "%idle")  # as mpstat names them
SERVER_SWITCHES = (
    "threads.server.voluntary_ctxt_switches",
    "threads.server.nonvoluntary_ctxt_switches",
)

CLOSED_LOOP = "in a closed loop latency follows from throughput (threads / rate): shown, not judged"
IOWAIT = "iowait: a CPU had nothing to run while an I/O was pending; a busy CPU shows none of it"
NOT_SATURATION = "%util is no sign of saturation on a device that serves requests in parallel"
NO_FLUSH = (
    "flushes that reach the device; none arrive where its cache writes through, whatever the server syncs"
)


def _same(value: float) -> float:
    return value


def _sum(*values: float) -> float:
    return sum(values)


def _quotient(above: float, below: float) -> float:
    return above / below


def _percent(share: float) -> float:
    return 100 * share


def rate(key: str, label: str, unit: str, shown: str, source: str) -> Metric:
    """Row that shows one quantity as it is."""
    return Metric(key, label, unit, shown, (source,), _same, f"Δ{source} / s")


def _latency(name: str, label: str) -> Metric:
    shown = rate(f"latency_{name}", f"latency {label}", "s", "ms", f"latency.{name}")
    return replace(
        shown, formula="as the generator reports it", better="lower", per_operation=True, footnote=CLOSED_LOOP
    )


def _better(metric: Metric, better: Better, *, headline: bool = False) -> Metric:
    return replace(metric, better=better, headline=headline)


THROUGHPUT = (
    replace(
        _better(rate("operations", "operations", "1/s", "/s", "load.events"), "higher", headline=True),
        per_operation=True,
    ),
    _better(rate("statements", "client statements", "1/s", "/s", "load.queries"), "higher", headline=True),
    _better(rate("commits", "commits", "1/s", "/s", "load.commits"), "higher"),
    _better(rate("rows_written", "rows written", "1/s", "/s", "load.rows"), "higher"),
    _better(rate("errors", "errors", "1/s", "/s", "load.errors"), "lower"),
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


def _busy(times: tuple[float, ...]) -> float:
    """Busy = total - idle - iowait - steal; guest time is inside user (/proc/stat, proc(5))."""
    user, nice, system, _, irq, softirq, _, _ = times
    return user + nice + system + irq + softirq


def _kernel(times: tuple[float, ...]) -> float:
    return times[2] + times[4] + times[5]


def cpu_metrics(side: str) -> tuple[Metric, ...]:
    """Rows of one CPU set; %usr holds guest time, as in /proc/stat (mpstat takes it out)."""
    times = tuple(f"cpu.{side}.{state}" for state in CPU_STATES)
    shares = tuple(
        Metric(
            f"cpu_{side}_{state}",
            label,
            "%",
            "%",
            (own, *(name for name in times if name != own)),
            lambda first, *rest: 100 * first / (first + sum(rest)),
            f"100 × {state} / all states",
            footnote=IOWAIT if state == "iowait" else "",
        )
        for state, label, own in zip(CPU_STATES, CPU_LABELS, times, strict=True)
    )
    utilisation = Metric(
        f"cpu_{side}_utilisation",
        "utilisation",
        "%",
        "%",
        times,
        lambda *t: 100 * _busy(t) / sum(t),
        "100 × (total − idle − iowait − steal) / total",
        headline=side == "server",
        coarse=len(times),
    )
    kernel_share = Metric(
        f"cpu_{side}_kernel_share",
        "kernel mode, of busy",
        "%",
        "%",
        times,
        lambda *t: 100 * _kernel(t) / _busy(t),
        "100 × (system + irq + softirq) / busy",
        coarse=len(times),
    )
    process = (f"process.{side}.utime", f"process.{side}.stime")
    own = Metric(
        f"process_{side}_cpu",
        f"{side} process CPU",
        "cores",
        "cores",
        process,
        _sum,
        "Δ(utime + stime) / s",
        coarse=2,
    )
    return utilisation, kernel_share, *shares, own


def _await(key: str, label: str, time: str, count: str) -> Metric:
    """Mean wait of one kind of request, as iostat takes it from diskstats."""
    needs = (f"disk.{{}}.{time}", f"disk.{{}}.{count}")
    return Metric(
        f"disk_{{}}_{key}", label, "s", "ms", needs, _quotient, f"Δ{time} / Δ{count}", better="lower"
    )


def _request(key: str, label: str, sectors: str, count: str) -> Metric:
    needs = (f"disk.{{}}.{sectors}", f"disk.{{}}.{count}")
    return Metric(f"disk_{{}}_{key}", label, "B", "kB", needs, _quotient, f"512 × Δ{sectors} / Δ{count}")


DISK = (
    Metric(
        "disk_{}_await",
        "await, reads and writes",
        "s",
        "ms",
        ("disk.{}.read_ms", "disk.{}.write_ms", "disk.{}.reads", "disk.{}.writes"),
        lambda read_s, write_s, reads, writes: (read_s + write_s) / (reads + writes),
        "Δ(read_ms + write_ms) / Δ(reads + writes)",
        better="lower",
        headline=True,
        coarse=2,
    ),
    _await("r_await", "r_await", "read_ms", "reads"),
    _await("w_await", "w_await", "write_ms", "writes"),
    _await("f_await", "f_await", "flush_ms", "flushes"),
    rate("disk_{}_read_kb", "read", "B/s", "kB/s", "disk.{}.read_sectors"),
    rate("disk_{}_write_kb", "written", "B/s", "kB/s", "disk.{}.write_sectors"),
    rate("disk_{}_reads", "reads", "1/s", "/s", "disk.{}.reads"),
    rate("disk_{}_writes", "writes", "1/s", "/s", "disk.{}.writes"),
    replace(rate("disk_{}_flushes", "flushes", "1/s", "/s", "disk.{}.flushes"), footnote=NO_FLUSH),
    _request("rareq", "read request size", "read_sectors", "reads"),
    _request("wareq", "write request size", "write_sectors", "writes"),
    rate("disk_{}_aqu", "aqu-sz", "1", "", "disk.{}.weighted_ms"),
    Metric(
        "disk_{}_util",
        "%util",
        "%",
        "%",
        ("disk.{}.io_ms",),
        _percent,
        "100 × Δio_ms / ms",
        footnote=NOT_SATURATION,
    ),
)

# sysstat's recordings do not tell reads from writes: shown where a side is one of them
DISK_TOGETHER = (
    rate("disk_{}_transfers", "requests of all kinds", "1/s", "/s", "disk.{}.transfers"),
    _await("transfer_await", "await, all requests", "transfer_ms", "transfers"),
)

NETWORK = (
    rate("nic_{}_rx", "received", "B/s", "kB/s", "nic.{}.rx_bytes"),
    rate("nic_{}_tx", "sent", "B/s", "kB/s", "nic.{}.tx_bytes"),
    rate("nic_{}_rx_packets", "packets received", "1/s", "/s", "nic.{}.rx_packets"),
    rate("nic_{}_tx_packets", "packets sent", "1/s", "/s", "nic.{}.tx_packets"),
)

_SWITCHES = "Δ(voluntary + nonvoluntary) / s over the server's threads"
KERNEL = (
    Metric(
        "switches_server",
        "context switches, server threads",
        "1/s",
        "/s",
        SERVER_SWITCHES,
        _sum,
        _SWITCHES,
        coarse=2,
    ),
    rate("switches_host", "context switches, whole host", "1/s", "/s", "host.ctxt"),
    rate("interrupts_server", "interrupts, server's CPUs", "1/s", "/s", "interrupts.server"),
    rate("interrupts_host", "interrupts, whole host", "1/s", "/s", "host.intr"),
    rate("softirqs_server", "softirqs, server's CPUs", "1/s", "/s", "softirqs.server"),
    Metric(
        "pressure_cpu",
        "some task waited for CPU",
        "%",
        "%",
        ("pressure.cpu_some",),
        _percent,
        "100 × Δtotal_us / µs",
    ),
    Metric(
        "pressure_io",
        "some task waited for I/O",
        "%",
        "%",
        ("pressure.io_some",),
        _percent,
        "100 × Δtotal_us / µs",
    ),
    _better(rate("tcp_retransmits", "TCP segments retransmitted", "1/s", "/s", "tcp.RetransSegs"), "lower"),
)
