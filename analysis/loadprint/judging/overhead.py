"""Checks the overhead of the recorder and its eBPF programs: CPU time, CPUs, the journal's disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.errors import InputError
from loadprint.judging.carried import effect_of
from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import STEPS
from loadprint.metrics.turns import PROBED
from loadprint.reading.cpusets import cpu_list, parse_cpus
from loadprint.reading.server_disks import server_disks

LIMIT = 0.01  # of the server's CPUs, for the recorder and its eBPF programs together
EXPENSIVE = ("threads", "mysql", "mysql_statements", "mysql_digests", "perf", "scrape")
PROGRAMS = "ebpf_programs"  # the table of the programs' CPU time; it attaches no program


@dataclass(frozen=True)
class Overhead:
    """Overhead of the recorder on one side: `answer` is `small`, `matters` or `not measured`.

    `reads` lists the probes that were read; `limit` is the limit of `cost`; `share` is the time of the
    recorder and its programs in cores, None if it was not measured. `effect` is what the scheduler's programs
    do to the statements/s of a side that alternates, as a log, and half the width of its interval.
    """

    answer: str
    cost: str
    where: str
    reads: str = ""
    limit: str = ""
    share: float | None = None
    effect: tuple[float, float] | None = None


@dataclass(frozen=True)
class Programs:
    """CPU time of the eBPF programs in cores, mean over the repeats; None with a reason if unknown.

    `on_server` is the part on the server's CPUs, None if the split was not recorded.
    """

    cores: float | None
    on_server: float | None = None
    by_program: tuple[tuple[str, float], ...] = ()
    reason: str = ""


def observed(runs: Sequence[Measured]) -> Overhead:
    """Check all repeats of a side."""
    if not runs[0].run.roles:
        return Overhead("not measured", "no recorder ran", "")
    share, cost = _cost(runs)
    cpus, on_server = _cpus(runs[0])
    journal, on_data = _journal(runs[0])
    where = ", ".join(part for part in (cpus, journal) if part)
    if share is None:
        return Overhead("not measured", cost, where)
    programs = _programs(runs)
    cores = min(len(run.server_cpus or (0,)) for run in runs)
    both = None if programs.cores is None else share + programs.cores
    over = (share if both is None else both) > LIMIT * cores
    if over or on_server or on_data:
        answer = "matters"
    else:
        answer = "not measured" if programs.cores is None else "small"
    text = f"{cost}{_programs_cost(programs, share, over=over)}"
    effect = effect_of(runs, PROBED)
    return Overhead(answer, text, where, _reads(runs[0]), _limit(cores), both, effect)


def _limit(cores: int) -> str:
    of_all = f"the server's {cores} CPUs, i.e. {100 * LIMIT * cores:g} % of " if cores > 1 else ""
    return f"limit {100 * LIMIT:g} % of {of_all}a core"


def _reads(run: Measured) -> str:
    """The number of probes that were read, and the expensive ones by name."""
    if run.window is None:
        return ""
    read = list(run.window.read)
    expensive = [name for name in EXPENSIVE if name in read]
    ebpf = len(_attached(run))
    named = [*expensive, *([f"{ebpf} eBPF"] if ebpf else [])]
    return f"{len(read)} probes" + (f", including {', '.join(named)}" if named else "")


def _attached(run: Measured) -> list[str]:
    """The tables that eBPF programs filled."""
    read = run.window.read if run.window else {}
    return [name for name in read if name.startswith("ebpf_") and name != PROGRAMS]


def _programs(runs: Sequence[Measured]) -> Programs:
    """CPU time of the programs; 0 if no repeat had any."""
    by_program: dict[str, float] = {}
    on_server: float | None = 0.0
    for run in runs:
        if not _attached(run):
            continue
        q = run.quantities
        lost = [name for name in q.missing if name.startswith("programs.")]
        names = sorted(name for (name,) in q.entities["programs"])
        if lost or not names:
            return Programs(None, reason=q.why(lost[0] if lost else "programs."))
        for name in names:
            cpu, part = q.get(f"programs.{name}.cpu"), q.get(f"programs.{name}.server_cpu")
            if cpu is not None:
                by_program[name] = by_program.get(name, 0.0) + cpu.rate / len(runs)
            on_server = None if part is None or on_server is None else on_server + part.rate / len(runs)
    by_cost = sorted(by_program.items(), key=lambda item: (-item[1], item[0]))
    return Programs(sum(by_program.values()), on_server, tuple(by_cost))


def _programs_cost(programs: Programs, recorder: float, *, over: bool) -> str:
    """Text after the recorder's cost; empty if no program was attached."""
    if programs.cores is None:
        return f", the time of its eBPF programs not measured: {programs.reason}"
    if not programs.by_program:
        return ""
    split = (
        "on all CPUs of the host"
        if programs.on_server is None
        else f"{100 * programs.on_server:.2f} % on the server's CPUs"
    )
    text = f", its eBPF programs {100 * programs.cores:.2f} % ({split})"
    text += f", together {100 * (recorder + programs.cores):.2f} %"
    if over:
        name, cores = programs.by_program[0]
        text += f"; most expensive program {name.rpartition(':')[2]}, {100 * cores:.2f} %"
    return text


def _cost(runs: Sequence[Measured]) -> tuple[float | None, str]:
    """Mean share of a core over the repeats, with the memory of the largest."""
    costs = [cost for run in runs if (cost := run.quantities.get("process.recorder.cpu"))]
    memory = [rss.rate for run in runs if (rss := run.quantities.get("max(process.recorder.rss)"))]
    resident = f" and {max(memory) / 1e6:.0f} MB" if memory else ""
    if not costs:
        return None, f"CPU not measured: {runs[0].quantities.why('process.recorder.cpu')}"
    share = sum(cost.rate for cost in costs) / len(costs)
    if sum(cost.count or 0 for cost in costs) < STEPS:
        return share, f"CPU under {STEPS} ticks of its clock{resident}"
    return share, f"{100 * share:.2f} % of a core{resident}"


def _cpus(run: Measured) -> tuple[str, bool]:
    """CPUs of the recorder, and whether they are the server's although others were free."""
    cpus = run.run.fingerprint("server").recorder.cpus
    try:
        allowed = set(parse_cpus(cpus, "recorder") or ())
    except InputError:
        allowed = set()
    if not allowed or run.server_cpus is None:
        return "", False
    shared = allowed & set(run.server_cpus)
    if not shared:
        return f"recorder on CPU {cpu_list(tuple(sorted(allowed)))}, not the server's", False
    online = run.run.fingerprint("server").cpus.online
    others_free = online is None or online > len(run.server_cpus)
    return f"*recorder on the server's CPU {cpu_list(tuple(sorted(shared)))}*", others_free


def _journal(run: Measured) -> tuple[str, bool]:
    """Where the journal was while recording, and whether that is a disk of the data."""
    journal = run.run.fingerprint("server").place("journal")
    data = set(server_disks(run.run.fingerprint("server")))
    if journal is None:
        return "", False
    disks = set(journal.disks)
    if not disks:
        return f"journal in {'memory' if journal.filesystem == 'tmpfs' else journal.filesystem}", False
    if disks & data:
        return f"*journal on the data's disk {', '.join(sorted(disks & data))}*", True
    return f"journal on {', '.join(sorted(disks))}" + (", not the data's" if data else ""), False
