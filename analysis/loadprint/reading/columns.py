"""Columns of the recorded tables that are read together, and names of their entities."""

from __future__ import annotations

import re

from loadprint.reading.declared import DECLARED

VETH = "veth"
# the supervisor names its end of a veth pair after its process id, which differs in each run
SUPERVISOR_VETH = re.compile(r"lp\d+n\d+")
NANOSECOND = 1e-9
_CPU, _THREADS = DECLARED["cpu"], DECLARED["threads"]
# guest time is also in user and nice
CPU_FIELDS = tuple(name for name in _CPU.of_kind("counter", "tick") if not name.startswith("guest"))
CPU_HOST_FIELDS = _CPU.of_kind("counter", "1")
# no row reads how often a thread was put on a CPU
THREAD_FIELDS = tuple(name for name in _THREADS.of_kind("counter", "1", "ns") if name != "timeslices")
# entity columns of the tables with a histogram of times, and entity and counter columns of the others; of
# ebpf_tcp the connections to the server's port are added up
EBPF_HISTOGRAMS = {
    name: table.entity
    for name, table in DECLARED.items()
    if name.startswith("ebpf_") and "ns" in table.columns.get("buckets", ()) and name != "ebpf_tcp"
}
EBPF_COUNTERS = {
    name: (DECLARED[name].entity, DECLARED[name].of_kind("counter", "1"))
    for name in ("ebpf_switches", "ebpf_syscalls")
}


def stable_name(interface: str) -> str:
    """Interface name that is the same in every run of a campaign."""
    return VETH if SUPERVISOR_VETH.fullmatch(interface) else interface
