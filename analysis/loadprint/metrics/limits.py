"""Reads quantities of external limits: cgroup quotas and cloud allowances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loadprint.metrics.quantities import NOT_KNOWN, Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.queries import Columns, by_entity, quote, select_list

EXCEEDED = "_allowance_exceeded"  # ENA: packets queued or dropped because an allowance was used up
NVME = ("volume_iops", "volume_throughput", "instance_iops", "instance_throughput")
HELD = {"us": "throttled_us", "ns": "throttled_ns"}
NO_QUOTA = "its control groups have no CPU quota"


def cgroup(source: Source) -> None:
    """Share of periods in which the server's processes were throttled: `cgroup.server.throttled`, 0 to 1.

    Of a group and its ancestors the one that throttled most counts; `.held` is the time that runnable threads
    were throttled, in seconds per second.
    """
    rows = source.rows(
        "cgroup",
        "SELECT tick, path, quota_us::DOUBLE AS quota, nr_periods::DOUBLE AS periods,"
        " nr_throttled::DOUBLE AS throttled, throttled_us::DOUBLE AS us, throttled_ns::DOUBLE AS ns"
        " FROM t WHERE role = 'server'",
    )
    if rows is None:
        source.out.mark_missing("cgroup", source.window.why_missing("cgroup"))
        return
    shares = [
        share for _, series in by_entity(rows, "path") if (share := _throttled(source, series)) is not None
    ]
    if not shares:
        source.out.mark_missing("cgroup.server", NO_QUOTA)
        return
    throttled, held = max(shares)
    source.out.put("cgroup.server.throttled", throttled)
    source.out.put("cgroup.server.held", held)


def _throttled(source: Source, series: Columns) -> tuple[float, float] | None:
    """Throttled share of periods and throttled time of one group; None without a quota."""
    if np.isnan(series["quota"]).all():
        return None
    rates = Quantities(source.out.segments)
    apart = replace(source, out=rates, charted=False)
    for name, column in {"periods": "nr_periods", "throttled": "nr_throttled", **HELD}.items():
        apart.counter(f"cgroup.{column}", name, series["tick"], series[name])
    periods, throttled = rates.get("periods"), rates.get("throttled")
    if periods is None or throttled is None or periods.rate <= 0:
        return None
    held = max((time.rate for name in HELD if (time := rates.get(name))), default=0.0)
    return throttled.rate / periods.rate, held


def allowances(source: Source) -> None:
    """Packets above an instance's network allowances, of all interfaces: `allowance.<which>` per second."""
    rows = source.rows(
        "ethtool",
        f"SELECT tick, metric, value::DOUBLE AS value FROM t WHERE ends_with(metric, {quote(EXCEEDED)})",
    )
    if rows is None:
        source.out.mark_missing("allowance", source.window.why_missing("ethtool"))
        return
    limits: dict[str, Quantities] = {}
    for metric, series in by_entity(rows, "metric"):
        which = metric.rpartition(".")[2].removesuffix(EXCEEDED)
        parts = limits.setdefault(which, Quantities(source.out.segments))
        replace(source, out=parts, charted=False).counter(
            "ethtool.value", metric, series["tick"], series["value"]
        )
    for which, parts in limits.items():
        source.out.sum_of(f"allowance.{which}", parts, NOT_KNOWN)
    source.out.mark_missing("allowance", "the drivers of these interfaces do not count exceeded allowances")


def volumes(source: Source) -> None:
    """Time that the limits of cloud volumes throttled I/O: `nvme.<limit>`, seconds per second."""
    names = select_list({name: f"{name}_exceeded_us::DOUBLE" for name in NVME})
    rows = source.rows("nvme", f"SELECT tick, controller, {names} FROM t")
    if rows is None:
        source.out.mark_missing("nvme", source.window.why_missing("nvme"))
        return
    for name in NVME:
        parts = Quantities(source.out.segments)
        apart = replace(source, out=parts, charted=False)
        for controller, series in by_entity(rows, "controller"):
            column, of_one = f"nvme.{name}_exceeded_us", f"nvme.{controller}.{name}"
            apart.counter(column, of_one, series["tick"], series[name])
        source.out.add_events(parts)
        if parts.values and not parts.unknown:
            source.out.put(f"nvme.{name}", max(held.rate for held in parts.values.values()))
    source.out.mark_missing("nvme", "no device reports the time it was throttled by its limits")
