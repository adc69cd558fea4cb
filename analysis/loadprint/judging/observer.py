"""Whether the observer mattered: what the recorder took, on which CPUs it ran, where its journal lay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.errors import InputError
from loadprint.metrics.gather import Measured
from loadprint.reading.cpusets import cpu_list, parse_cpus
from loadprint.tables.rows import STEPS

MUCH = 0.01  # of a core: ten times what a recorder at one tick a second should take
DEAR = ("threads", "mysql", "mysql_statements", "mysql_digests", "perf", "scrape")


@dataclass(frozen=True)
class Observer:
    """What the recorder took on one side: `answer` is `small`, `matters` or `cannot tell`.

    `reads` is what it took that for.
    """

    answer: str
    cost: str
    where: str
    reads: str = ""


def observed(runs: Sequence[Measured]) -> Observer:
    """Judge all repeats of a side."""
    if not runs[0].run.roles:
        return Observer("cannot tell", "no recorder ran", "")
    share, cost = _cost(runs)
    cpus, on_server = _cpus(runs[0])
    journal, on_data = _journal(runs[0])
    where = ", ".join(part for part in (cpus, journal) if part)
    if share is None:
        return Observer("cannot tell", cost, where)
    matters = share > MUCH or on_server or on_data
    return Observer("matters" if matters else "small", cost, where, _reads(runs[0]))


def _reads(run: Measured) -> str:
    """How many probes were read, and those beyond a host's few files: each costs by what there is of it."""
    if run.window is None:
        return ""
    read = list(run.window.middle_ns)
    dear = [name for name in DEAR if name in read]
    ebpf = sum(name.startswith("ebpf_") for name in read)
    named = [*dear, *([f"{ebpf} of eBPF"] if ebpf else [])]
    return f"reads {len(read)} probes" + (f" ({', '.join(named)} among them)" if named else "")


def _cost(runs: Sequence[Measured]) -> tuple[float | None, str]:
    """Mean share of a core over the repeats, with the memory of the largest."""
    found = [cost for run in runs if (cost := run.quantities.get("process.recorder.cpu"))]
    memory = [rss.rate for run in runs if (rss := run.quantities.get("process.recorder.rss"))]
    held = f" and {max(memory) / 1e6:.0f} MB" if memory else ""
    if not found:
        return None, f"CPU not measured: {runs[0].quantities.why('process.recorder.cpu')}"
    share = sum(cost.rate for cost in found) / len(found)
    if sum(cost.count or 0 for cost in found) < STEPS:
        return share, f"CPU under {STEPS} ticks of its clock{held}"
    return share, f"{100 * share:.2f} % of a core{held}"


def _cpus(run: Measured) -> tuple[str, bool]:
    """Where the recorder might run, and whether that is among the server's CPUs though others were free."""
    told = (run.run.fingerprint("server").get("recorder") or {}).get("cpus")
    try:
        own = set(parse_cpus(told, "recorder") or ())
    except InputError:
        own = set()
    if not own or run.server_cpus is None:
        return "", False
    shared = own & set(run.server_cpus)
    if not shared:
        return f"on CPU {cpu_list(tuple(sorted(own)))} outside of the server's", False
    online = (run.run.fingerprint("server").get("cpus") or {}).get("online")
    room = not isinstance(online, int) or online > len(run.server_cpus)
    return f"*on the server's CPU {cpu_list(tuple(sorted(shared)))}*", room


def _journal(run: Measured) -> tuple[str, bool]:
    """Where the journal lay while recording, and whether that is a disk of the data."""
    storage = run.run.fingerprint("server").get("storage") or []
    listed = [entry for entry in storage if isinstance(entry, dict)]
    journal = next((entry for entry in listed if entry.get("role") == "journal"), None)
    data = {
        disk for e in listed if e.get("role") in ("data", "redo", "binlog") for disk in e.get("disks") or []
    }
    if journal is None:
        return "", False
    disks = set(journal.get("disks") or [])
    if not disks:
        return (
            f"journal in {'memory' if journal.get('filesystem') == 'tmpfs' else journal.get('filesystem')}",
            False,
        )
    if disks & data:
        return f"*journal on the data's disk {', '.join(sorted(disks & data))}*", True
    return f"journal on {', '.join(sorted(disks))}, not the data's", False
