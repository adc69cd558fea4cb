"""Checks CPUs, memory and network: functions return evidence or None, or raise Unknown."""

from __future__ import annotations

from loadprint.commands.check.subject import Subject, Unknown, required
from loadprint.errors import InputError
from loadprint.judging.facts_host import port_count, thread_siblings
from loadprint.metrics.limits import NO_QUOTA
from loadprint.reading.cpusets import cpu_list, parse_cpus

SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
STEAL, THROTTLED = 0.01, 0.01
FEW_CPUS = 4
MIN_PORTS = 10_000
MAX_SWAPPINESS = 10
MAX_PORTS_USED = 0.5


def governor(subject: Subject) -> str | None:
    """A frequency governor other than performance."""
    if subject.guest and subject.fingerprint.governor is None:
        raise Unknown("the hypervisor sets the clock of this guest")
    others = sorted(set(subject.fact("governor")) - {"performance"})
    return f"scaling_governor is {', '.join(others)}" if others else None


def boost(subject: Subject) -> str | None:
    """A clock that may exceed its base frequency."""
    return "the clock may exceed its base frequency" if subject.fact("boost") is True else None


def clocksource(subject: Subject) -> str | None:
    """A clock source outside of the processor."""
    source = str(subject.fact("clocksource"))
    if source not in SLOW_CLOCKS:
        return None
    available = subject.fingerprint.clocksources
    return f"the clock source is {source}{f' (available: {available})' if available else ''}"


def few_cpus(subject: Subject) -> str | None:
    """A single core for server, load and recorder."""
    if not subject.shared_host or _cores(subject) > 1:
        return None
    online = len(subject.cpus())
    return f"{online} CPU{'s are threads of one core' if online > 1 else ''}"


def little_room(subject: Subject) -> str | None:
    """Fewer CPUs than server, load, recorder and kernel can use."""
    count = len(subject.cpus())
    return f"{count} CPUs" if subject.shared_host and _cores(subject) > 1 and count < FEW_CPUS else None


def _cores(subject: Subject) -> int:
    return len(set(subject.cores().values()))


def shared_cores(subject: Subject) -> str | None:
    """CPU sets that overlap, or that contain two threads of one core."""
    if not subject.shared_host:
        return None
    missing = "no CPU sets of server and load: --cpuset server=… --cpuset load=…"
    server_cpus, load_cpus = required(subject.server_cpus, missing), required(subject.load_cpus, missing)
    if common := set(server_cpus) & set(load_cpus):
        return f"CPU {cpu_list(tuple(sorted(common)))} is in both sets"
    subject.cores()
    shared = thread_siblings(subject.cpus(), server_cpus, load_cpus)
    return f"load CPU {cpu_list(shared)} is a thread sibling of a CPU of the server" if shared else None


def cpu_quota(subject: Subject) -> str | None:
    """A control group that limits CPU time to less than the CPUs."""
    limits = subject.fact("limits")
    used, period = limits.cpu_quota_us, limits.cpu_period_us
    if not used or not period:
        return None
    allowed, online = used / period, len(subject.cpus())
    return f"a quota of {allowed:g} CPUs on {online}" if allowed < online else None


def throttled(subject: Subject) -> str | None:
    """Periods in which the server used up its quota."""
    try:
        share = subject.rate("cgroup.server.throttled")
    except Unknown as unknown:
        if str(unknown) == NO_QUOTA:
            return None
        raise
    return f"throttled in {100 * share:.0f} % of periods" if share > THROTTLED else None


def steal(subject: Subject) -> str | None:
    """Stolen time of the server's CPUs."""
    if not subject.fact("virtualisation/guest"):
        return None
    stolen, cores = subject.rate("cpu.server.steal"), subject.rate("cpu.server.cores")
    share = stolen / cores if cores > 0 else 0.0
    return f"{100 * share:.1f} % of the server's CPU time was stolen" if share > STEAL else None


def mitigations(subject: Subject) -> str | None:
    """Mitigations that were switched off at boot."""
    words = str(subject.fact("cmdline")).split()
    off = [word for word in words if word in ("mitigations=off", "nopti", "nospectre_v2", "spectre_v2=off")]
    return f"booted with {' '.join(off)}" if off else None


def thp(subject: Subject) -> str | None:
    """Transparent huge pages for all processes."""
    return "transparent_hugepage/enabled is always" if subject.fact("thp/enabled") == "always" else None


def swap(subject: Subject) -> str | None:
    """Swap that the kernel uses before memory is full."""
    size = subject.fact("memory/swap_kB")
    swappiness = int(subject.fact("sysctl/vm.swappiness"))
    if not size or swappiness <= MAX_SWAPPINESS:
        return None
    return f"{size / (1 << 20):.1f} GiB of swap with vm.swappiness {swappiness}"


def _nodes(subject: Subject) -> int:
    return len([cpus for cpus in subject.nodes() if cpus])


def numa_balancing(subject: Subject) -> str | None:
    """Pages that move between nodes."""
    if _nodes(subject) < 2:
        return None
    on = str(subject.fact("sysctl/kernel.numa_balancing")) != "0"
    return f"kernel.numa_balancing is on, with {_nodes(subject)} memory nodes" if on else None


def zone_reclaim(subject: Subject) -> str | None:
    """Nodes that are reclaimed before another node is used."""
    if _nodes(subject) < 2:
        return None
    mode = str(subject.fact("sysctl/vm.zone_reclaim_mode"))
    return f"vm.zone_reclaim_mode is {mode}" if mode != "0" else None


def _ports(subject: Subject) -> int:
    count = port_count(subject.load_fingerprint or subject.fingerprint)
    return required(count, "sysctl.net.ipv4.ip_local_port_range was not recorded")


def ports(subject: Subject) -> str | None:
    """A small port range."""
    count = _ports(subject)
    return f"{count:,} ports for outgoing connections" if count < MIN_PORTS else None


def time_wait(subject: Subject) -> str | None:
    """Ports in TIME_WAIT."""
    waiting = subject.rate("max(sockets.load.tcp_tw)")
    count = _ports(subject)
    return f"{waiting:,.0f} of {count:,} ports in TIME_WAIT" if waiting / count > MAX_PORTS_USED else None


def recorder_cpus(subject: Subject) -> str | None:
    """A recorder that may run on the server's CPUs although other CPUs exist."""
    subject.require_recording()
    try:
        recorder = set(parse_cpus(subject.fact("recorder/cpus"), "recorder") or ())
    except InputError as error:
        raise Unknown("the recorder's CPU list is not valid") from error
    server_cpus = required(subject.server_cpus, "no CPU set of the server was given")
    shared = recorder & set(server_cpus)
    if not shared or len(subject.cpus()) <= len(server_cpus):
        return None
    return f"the recorder may run on CPU {cpu_list(tuple(sorted(shared)))} of the server's set"
