"""Lists columns of the recorded tables."""

from __future__ import annotations

import re

from loadprint.reading.recording import Run

VETH = "veth"
# the supervisor names its end of a veth pair after its process id, which differs in each run
SUPERVISOR_VETH = re.compile(r"lp\d+n\d+")
NUMBER = "^[0-9]+$"  # a CPU in a column `cpus`, not a set of CPUs
NANOSECOND = 1e-9
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
CPU_HOST_FIELDS = ("ctxt", "intr", "softirqs", "processes")
THREAD_FIELDS = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches", "on_cpu_ns", "run_delay_ns")
# entity columns of the tables with a histogram of times, and entity and counter columns of the others
EBPF_HISTOGRAMS = {
    "ebpf_sched": ("role", "state"),
    "ebpf_block": ("device", "operation", "stage"),
    "ebpf_irq": ("kind",),
    "ebpf_syscall_latency": ("role", "syscall"),
    "ebpf_statements": ("role", "command"),
}
EBPF_COUNTERS = {
    "ebpf_switches": (("role",), ("voluntary", "involuntary", "migrations")),
    "ebpf_syscalls": (("role", "syscall"), ("count", "errors")),
}


def stable_name(interface: str) -> str:
    """Interface name that is the same in every run of a campaign."""
    return VETH if SUPERVISOR_VETH.fullmatch(interface) else interface


def page_size(run: Run, role: str) -> float:
    """Bytes of a page, the unit of `rss` (/proc/PID/stat)."""
    return float(run.fingerprint(role).get("page_size") or 4096)
