"""Rows of the processor's own counts and of what held a side back; shown where a run has them."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.derived import Metric, View, percent, quotient, rate, with_direction
from loadprint.metrics.derived_cpu import BUSY, busy_first, busy_share

SIBLINGS = (
    "hardware threads that share a core with one of the server's CPUs: a busy one takes part of that core, "
    "which no CPU time shows"
)
IPC = "of all that ran on the server's CPUs, the kernel included"
MISSES = "as the processor defines a cache miss, usually of the last level, of loads and stores"
WHOLE_PACKAGE = "of whole packages: it holds whatever else runs on them"
PORTS = "each connection opened holds a port for a minute after it is closed"


def _clock(word: str, label: str, view: View) -> Metric:
    row = rate(f"frequency_server_{word}", label, "Hz", "MHz", f"frequency.server.{word}")
    return replace(row, formula=f"{word} over CPUs and ticks", view=view)


PROCESSOR = (
    Metric(
        "ipc",
        "instructions per cycle",
        "1",
        "",
        ("perf.server.instructions", "perf.server.cycles"),
        quotient,
        "Δinstructions / Δcycles",
        better="higher",
        footnote=IPC,
    ),
    _clock("mean", "clock, server's CPUs", "always"),
    _clock("least", "clock, slowest reading", "all"),
    Metric(
        "siblings_busy",
        "thread siblings busy",
        "%",
        "%",
        busy_first("siblings"),
        busy_share,
        "100 × (total − idle − iowait − steal) / total of the siblings",
        coarse=len(BUSY),
        footnote=SIBLINGS,
    ),
    replace(
        rate("power_package", "power of the packages", "W", "W", "energy.package"),
        better="lower",
        footnote=WHOLE_PACKAGE,
    ),
    replace(
        rate("power_dram", "power of the memory", "W", "W", "energy.dram"),
        better="lower",
        view="all",
    ),
    *(
        replace(rate(f"perf_{event}", label, "1/s", "/s", f"perf.server.{event}"), view="all")
        for event, label in (
            ("cycles", "cycles, server's CPUs"),
            ("instructions", "instructions, server's CPUs"),
            ("cache_references", "cache references"),
        )
    ),
    *(
        Metric(
            f"perf_{event}_per_kinstr",
            label,
            "1",
            "",
            (f"perf.server.{event}", "perf.server.instructions"),
            lambda missed, instructions: 1000 * missed / instructions,
            f"1000 × Δ{event} / Δinstructions",
            better="lower",
            view="all",
            footnote=MISSES if event == "cache_misses" else "",
        )
        for event, label in (
            ("cache_misses", "cache misses per 1000 instr."),
            ("dtlb_load_misses", "dTLB misses per 1000 instr."),
            ("branch_misses", "branch misses per 1000 instr."),
        )
    ),
)


def _share_of_time(key: str, label: str, source: str, view: View = "nonzero") -> Metric:
    return Metric(key, label, "%", "%", (source,), percent, f"100 × Δ{source}", better="lower", view=view)


LIMITS = (
    replace(
        _share_of_time("cgroup_throttled", "periods with the CPU quota used", "cgroup.server.throttled"),
        formula="100 × Δnr_throttled / Δnr_periods",
    ),
    replace(
        rate("cgroup_held", "threads held back by the quota", "1", "", "cgroup.server.held"),
        formula="Δthrottled_us / µs",
        better="lower",
        view="all",
    ),
    *(
        replace(
            with_direction(rate(f"allowance_{which}", label, "1/s", "/s", f"allowance.{which}"), "lower"),
            view="nonzero",
        )
        for which, label in (
            ("bw_in", "packets beyond inbound allowance"),
            ("bw_out", "packets beyond outbound allow."),
            ("pps", "packets beyond packet allowance"),
            ("conntrack", "packets beyond connection allow."),
            ("linklocal", "packets beyond link-local allow."),
        )
    ),
    _share_of_time("volume_iops", "held by volume's operations", "nvme.volume_iops"),
    _share_of_time("volume_throughput", "held by volume's throughput", "nvme.volume_throughput"),
    _share_of_time("instance_iops", "held by instance's operations", "nvme.instance_iops"),
    _share_of_time("instance_throughput", "held by instance's throughput", "nvme.instance_throughput"),
    *(
        replace(row, view="all", footnote=PORTS)
        for side in ("load", "server")
        for row in (
            replace(
                rate(f"time_wait_{side}", f"TIME_WAIT, {side} (most)", "1", "", f"sockets.{side}.time_wait"),
                formula="largest in the window",
                better="lower",
            ),
            rate(
                f"opens_{side}", f"connections opened by {side}", "1/s", "/s", f"sockets.{side}.active_opens"
            ),
        )
    ),
)
