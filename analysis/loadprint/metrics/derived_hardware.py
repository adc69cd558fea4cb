"""Declares the rows of processor counters and external limits, shown if a run has them."""

from __future__ import annotations

from dataclasses import replace

from loadprint.metrics.derived import Metric, View, percent, quotient, rate, with_direction
from loadprint.metrics.derived_cpu import BUSY, UTILISATION, share, times_of

SIBLINGS = (
    "hardware threads that share a core with a CPU of the server: a busy sibling slows that CPU down, which "
    "CPU times do not show"
)
IPC = "of everything on the server's CPUs, including the kernel"
MISSES = "as the processor defines it: usually loads and stores that miss the last-level cache"
WHOLE_PACKAGE = "of whole packages, including everything else that runs on them"
PORTS = "each opened connection occupies a port for a minute after its close"


def _clock(word: str, label: str, view: View) -> Metric:
    return replace(
        rate(f"frequency_server_{word}", label, "Hz", "MHz", f"frequency.server.{word}"), view=view
    )


PROCESSOR = (
    Metric(
        "ipc",
        "instructions per cycle",
        "1",
        "",
        ("perf.server.instructions", "perf.server.cycles"),
        quotient,
        "{0} / ({1})",
        better="higher",
        footnote=IPC,
    ),
    _clock("mean", "clock, server's CPUs", "always"),
    _clock("least", "clock, lowest", "all"),
    Metric(
        "siblings_busy",
        "thread siblings busy",
        "%",
        "%",
        times_of("siblings", *BUSY),
        share,
        UTILISATION,
        coarse=len(BUSY),
        footnote=SIBLINGS,
    ),
    replace(
        rate("power_package", "package power", "W", "W", "energy.package"),
        better="lower",
        footnote=WHOLE_PACKAGE,
    ),
    replace(
        rate("power_dram", "memory power", "W", "W", "energy.dram"),
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
            "1000 × {0} / ({1})",
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
    return Metric(key, label, "%", "%", (source,), percent, "100 × {0}", better="lower", view=view)


LIMITS = (
    _share_of_time("cgroup_throttled", "periods throttled by CPU quota", "cgroup.server.throttled"),
    replace(
        rate("cgroup_held", "threads throttled by CPU quota", "1", "", "cgroup.server.held"),
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
    _share_of_time("volume_iops", "time at volume's IOPS limit", "nvme.volume_iops"),
    _share_of_time("volume_throughput", "time at volume's B/s limit", "nvme.volume_throughput"),
    _share_of_time("instance_iops", "time at instance's IOPS limit", "nvme.instance_iops"),
    _share_of_time("instance_throughput", "time at instance's B/s limit", "nvme.instance_throughput"),
    *(
        replace(row, view="all", footnote=PORTS)
        for side in ("load", "server")
        for row in (
            replace(
                rate(
                    f"time_wait_{side}", f"TIME_WAIT, {side} (largest)", "1", "", f"sockets.{side}.time_wait"
                ),
                better="lower",
            ),
            rate(
                f"opens_{side}", f"connections opened by {side}", "1/s", "/s", f"sockets.{side}.active_opens"
            ),
        )
    ),
)
