"""Declares the rows of one disk and one network interface; `{}` in keys and inputs is its name."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.derived import Metric, percent, quotient, rate

NOT_SATURATION = "%util does not show saturation of a device that serves requests in parallel"
NO_FLUSH = "flushes that reach the device; a device with a write-through cache gets none"


def _await(key: str, label: str, time: str, count: str) -> Metric:
    """Mean wait of one kind of request, as in iostat."""
    needs = (f"disk.{{}}.{time}", f"disk.{{}}.{count}")
    return Metric(f"disk_{{}}_{key}", label, "s", "ms", needs, quotient, "{Δ0} / 1000 / {Δ1}", better="lower")


def _request(key: str, label: str, sectors: str, count: str) -> Metric:
    needs = (f"disk.{{}}.{sectors}", f"disk.{{}}.{count}")
    return Metric(f"disk_{{}}_{key}", label, "B", "kB", needs, quotient, "512 × {Δ0} / {Δ1}")


DISK: tuple[Metric, ...] = (
    Metric(
        "disk_{}_await",
        "await, reads and writes",
        "s",
        "ms",
        ("disk.{}.read_ms", "disk.{}.write_ms", "disk.{}.reads", "disk.{}.writes"),
        lambda read_s, write_s, reads, writes: (read_s + write_s) / (reads + writes),
        "{Δ0+1} / 1000 / {Δ2+3}",
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
        percent,
        "100 × {0}",
        footnote=NOT_SATURATION,
    ),
)

# sysstat's recordings do not separate reads from writes: shown if a side is imported from one
DISK_TOGETHER = (
    rate("disk_{}_transfers", "requests of all kinds", "1/s", "/s", "disk.{}.transfers"),
    _await("transfer_await", "await, all requests", "transfer_ms", "transfers"),
)

NETWORK = (
    rate("nic_{}_rx", "received", "B/s", "kB/s", "nic.{}.rx_bytes"),
    rate("nic_{}_tx", "sent", "B/s", "kB/s", "nic.{}.tx_bytes"),
    rate("nic_{}_rx_packets", "packets received", "1/s", "/s", "nic.{}.rx_packets"),
    rate("nic_{}_tx_packets", "packets sent", "1/s", "/s", "nic.{}.tx_packets"),
    *(
        replace(
            rate(f"nic_{{}}_{way}_{what}", f"{what}, {direction}", "1/s", "/s", f"nic.{{}}.{way}_{what}"),
            better="lower",
            view="nonzero",
        )
        for what in ("drops", "errors")
        for way, direction in (("rx", "received"), ("tx", "sent"))
    ),
)
