"""The derived metrics, as one table: what each row is called, in which unit, from which inputs, by which formula.

A metric needs named quantities (quantities.py); when one is absent the row says which and why. Units of values are
base units (s, B, 1, CPU-seconds per second); `shown` and `factor` are how a person reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Metric:
    """One row. `compute` gets the rates of `needs` in order; ZeroDivisionError means "did not happen"."""

    key: str
    label: str
    unit: str
    needs: tuple[str, ...]
    compute: Callable[..., float]
    formula: str
    shown: str = ""
    factor: float = 1.0
    better: Better = "neither"
    headline: bool = False
    per_operation: bool = False  # counts the workload's own operation: no ratio across different operations
    percent: bool = False
    coarse: int = 1  # so many leading inputs must show three steps of their source
    footnote: str = ""

    def of(self, entity: str) -> Metric:
        """Same metric of one device or interface."""
        return replace(
            self,
            key=self.key.format(entity),
            label=self.label.format(entity),
            needs=tuple(name.format(entity) for name in self.needs),
        )


def _same(value: float) -> float:
    return value


def _rate(key: str, label: str, unit: str, source: str, **more: object) -> Metric:
    return Metric(key, label, unit, (source,), _same, f"Δ{source} / s", **more)  # type: ignore[arg-type]


CPU_STATES = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle")
KB = 1 / 1024  # kB as the kernel, sar and iostat mean it

CLOSED_LOOP = "closed loop: latency is threads / throughput, not a second finding; no verdict"
IOWAIT = "iowait is idle time with a blocked I/O: busy CPUs hide it; no sentence rests on it alone"
NOT_SATURATION = "%util is no sign of saturation on a device that serves requests in parallel"

THROUGHPUT = (
    _rate("operations", "operations", "1/s", "load.events", shown="/s", better="higher", headline=True, per_operation=True),
    _rate("statements", "client statements", "1/s", "load.queries", shown="/s", better="higher", headline=True),
    _rate("commits", "commits", "1/s", "load.commits", shown="/s", better="higher"),
    _rate("rows_written", "rows written", "1/s", "load.rows", shown="/s", better="higher"),
    _rate("errors", "errors", "1/s", "load.errors", shown="/s", better="lower"),
    *(
        _rate(f"latency_{name}", f"latency {label}", "s", f"latency.{name}", shown="ms", factor=1e3, better="lower",
              per_operation=True, footnote=CLOSED_LOOP)
        for name, label in (("mean", "mean"), ("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
    ),
)  # fmt: skip


def _share(index: int) -> Callable[..., float]:
    return lambda *times: 100 * times[index] / sum(times)


def _busy(
    user: float,
    nice: float,
    system: float,
    iowait: float,
    irq: float,
    softirq: float,
    steal: float,
    idle: float,
) -> float:
    del iowait, steal, idle  # busy = total - idle - iowait - steal; guest is inside user
    return user + nice + system + irq + softirq


def cpu_metrics(side: str) -> tuple[Metric, ...]:
    """Rows of one CPU set; %usr holds guest time, as in /proc/stat (mpstat takes it out)."""
    times = tuple(f"cpu.{side}.{state}" for state in CPU_STATES)
    labels = {"user": "%usr", "nice": "%nice", "system": "%sys", "iowait": "%iowait", "irq": "%irq",
              "softirq": "%soft", "steal": "%steal", "idle": "%idle"}  # fmt: skip
    shares = tuple(
        Metric(f"cpu_{side}_{state}", labels[state], "%", (times[index], *times[:index], *times[index + 1 :]),
               lambda first, *rest: 100 * first / (first + sum(rest)), f"100 × {state} / all states", shown="%", percent=True,
               footnote=IOWAIT if state == "iowait" else "")
        for index, state in enumerate(CPU_STATES)
    )  # fmt: skip
    return (
        Metric(f"cpu_{side}_utilisation", "utilisation", "%", times, lambda *t: 100 * _busy(*t) / sum(t),
               "100 × (total − idle − iowait − steal) / total", shown="%", percent=True, headline=side == "server", coarse=3),
        Metric(f"cpu_{side}_kernel_share", "kernel mode, of busy", "%", times,
               lambda *t: 100 * (t[2] + t[4] + t[5]) / _busy(*t), "100 × (system + irq + softirq) / busy", shown="%",
               percent=True, coarse=3),
        *shares,
        Metric(f"process_{side}_cpu", f"{side} process CPU", "cores", (f"process.{side}.utime", f"process.{side}.stime"),
               lambda u, s: u + s, "Δ(utime + stime) / s", shown="cores", coarse=2),
    )  # fmt: skip


DISK = (
    Metric("disk_{}_await", "await, reads and writes", "s",
           ("disk.{}.read_ms", "disk.{}.write_ms", "disk.{}.reads", "disk.{}.writes"),
           lambda rs, ws, r, w: (rs + ws) / (r + w), "Δ(read_ms + write_ms) / Δ(reads + writes)", shown="ms", factor=1e3,
           better="lower", headline=True, coarse=2),
    Metric("disk_{}_r_await", "r_await", "s", ("disk.{}.read_ms", "disk.{}.reads"), lambda t, n: t / n,
           "Δread_ms / Δreads", shown="ms", factor=1e3, better="lower"),
    Metric("disk_{}_w_await", "w_await", "s", ("disk.{}.write_ms", "disk.{}.writes"), lambda t, n: t / n,
           "Δwrite_ms / Δwrites", shown="ms", factor=1e3, better="lower"),
    Metric("disk_{}_f_await", "f_await", "s", ("disk.{}.flush_ms", "disk.{}.flushes"), lambda t, n: t / n,
           "Δflush_ms / Δflushes", shown="ms", factor=1e3, better="lower"),
    _rate("disk_{}_read_kb", "read", "B/s", "disk.{}.read_sectors", shown="kB/s", factor=KB),
    _rate("disk_{}_write_kb", "written", "B/s", "disk.{}.write_sectors", shown="kB/s", factor=KB),
    _rate("disk_{}_reads", "reads", "1/s", "disk.{}.reads", shown="/s"),
    _rate("disk_{}_writes", "writes", "1/s", "disk.{}.writes", shown="/s"),
    _rate("disk_{}_flushes", "flushes", "1/s", "disk.{}.flushes", shown="/s",
          footnote="with a write-through cache no flush reaches the device: 0 flushes is not \"no fsync\""),
    Metric("disk_{}_rareq", "read request size", "B", ("disk.{}.read_sectors", "disk.{}.reads"), lambda b, n: b / n,
           "512 × Δread_sectors / Δreads", shown="kB", factor=KB),
    Metric("disk_{}_wareq", "write request size", "B", ("disk.{}.write_sectors", "disk.{}.writes"), lambda b, n: b / n,
           "512 × Δwrite_sectors / Δwrites", shown="kB", factor=KB),
    _rate("disk_{}_aqu", "aqu-sz", "1", "disk.{}.weighted_ms", shown=""),
    Metric("disk_{}_util", "%util", "%", ("disk.{}.io_ms",), lambda t: 100 * t, "100 × Δio_ms / ms", shown="%",
           percent=True, footnote=NOT_SATURATION),
)  # fmt: skip

NETWORK = (
    _rate("nic_{}_rx", "received", "B/s", "nic.{}.rx_bytes", shown="kB/s", factor=KB),
    _rate("nic_{}_tx", "sent", "B/s", "nic.{}.tx_bytes", shown="kB/s", factor=KB),
    _rate("nic_{}_rx_packets", "packets received", "1/s", "nic.{}.rx_packets", shown="/s"),
    _rate("nic_{}_tx_packets", "packets sent", "1/s", "nic.{}.tx_packets", shown="/s"),
)
TCP = (
    _rate(
        "tcp_retransmits", "TCP segments retransmitted", "1/s", "tcp.RetransSegs", shown="/s", better="lower"
    ),
)

SERVER_SWITCHES = Metric(
    "switches_server", "context switches, server threads", "1/s",
    ("threads.server.voluntary_ctxt_switches", "threads.server.nonvoluntary_ctxt_switches"),
    lambda v, n: v + n, "Δ(voluntary + nonvoluntary) / s over the server's threads", shown="/s", coarse=2,
)  # fmt: skip
KERNEL = (
    SERVER_SWITCHES,
    _rate("switches_host", "context switches, whole host", "1/s", "host.ctxt", shown="/s"),
    _rate("interrupts_server", "interrupts, server's CPUs", "1/s", "interrupts.server", shown="/s"),
    _rate("interrupts_host", "interrupts, whole host", "1/s", "host.intr", shown="/s"),
    _rate("softirqs_server", "softirqs, server's CPUs", "1/s", "softirqs.server", shown="/s"),
    Metric("pressure_cpu", "some task waited for CPU", "%", ("pressure.cpu_some",), lambda t: 100 * t,
           "100 × Δpressure/cpu some / µs, whole host", shown="%", percent=True),
    Metric("pressure_io", "some task waited for I/O", "%", ("pressure.io_some",), lambda t: 100 * t,
           "100 × Δpressure/io some / µs, whole host", shown="%", percent=True),
)  # fmt: skip


def cost_metrics(
    per: str, denominator: str, disk: str | None, nic: str | None, switches: str
) -> tuple[Metric, ...]:
    """Costs per `denominator` (a quantity's name): CPU, switches, disk and network, of the server's side."""
    own = per == "operation"

    def cost(key: str, label: str, unit: str, needs: tuple[str, ...], **more: object) -> Metric:
        return Metric(f"{key}_per_{per}", label, unit, (*needs, denominator), lambda *v: sum(v[:-1]) / v[-1],
                      f"({' + '.join(needs)}) / {denominator}", better="lower", per_operation=own, coarse=len(needs),
                      **more)  # type: ignore[arg-type]  # fmt: skip

    us = {"shown": "µs", "factor": 1e6}
    counted = {
        "server": ("threads.server.voluntary_ctxt_switches", "threads.server.nonvoluntary_ctxt_switches"),
        "host": ("host.ctxt",),
    }[switches]
    rows = [
        cost(
            "server_cpu",
            "server CPU",
            "s",
            ("process.server.utime", "process.server.stime"),
            headline=True,
            **us,
        ),
        cost("server_user", "server CPU, user", "s", ("process.server.utime",), **us),
        cost("server_system", "server CPU, system", "s", ("process.server.stime",), **us),
        cost("load_cpu", "load CPU", "s", ("process.load.utime", "process.load.stime"), **us),
        cost("switches", "context switches", "1", counted, headline=True),
        cost("interrupts", "interrupts, server's CPUs", "1", ("interrupts.server",)),
    ]
    if disk:
        rows += [
            cost("disk_reads", "disk reads", "1", (f"disk.{disk}.reads",)),
            cost("disk_writes", "disk writes", "1", (f"disk.{disk}.writes",)),
            cost("disk_flushes", "disk flushes", "1", (f"disk.{disk}.flushes",)),
            cost("disk_read_kb", "disk read", "B", (f"disk.{disk}.read_sectors",), shown="kB", factor=KB),
            cost(
                "disk_write_kb",
                "disk written",
                "B",
                (f"disk.{disk}.write_sectors",),
                shown="kB",
                factor=KB,
                headline=True,
            ),
        ]
    if nic:
        rows += [
            cost("net_rx", "network received", "B", (f"nic.{nic}.rx_bytes",), shown="B"),
            cost("net_tx", "network sent", "B", (f"nic.{nic}.tx_bytes",), shown="B", headline=True),
        ]
    if per == "CPU-second":
        gains = (("statements", "client statements", "load.queries"), ("commits", "commits", "load.commits"))
        yields = [
            replace(cost(key, label, "1", (name,)), better="higher", headline=key == "statements")
            for key, label, name in gains
        ]
        rows = yields + [
            row for row in rows if not row.key.startswith(("server_cpu", "server_user", "server_system", "load_cpu"))
        ]
    return tuple(rows)
