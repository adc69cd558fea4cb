"""What differs between the parties: hardware, which is the subject, or configuration, which spoils it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from loadprint.comparability import Difference, differences
from loadprint.gather import Measured
from loadprint.qualify.inputs import Part

# what is bought, or follows from it
HARDWARE = (
    "*-host.cpus.*",
    "*-host.memory.*",
    "*-host.block_devices.*",
    "*-host.nics.*",
    "*-host.numa*",
    "*-host.virtualisation.*",
    "*-host.clocksource*",
    "*-host.limits.*",
    "*-host.boost",
    "*-host.root.*",
    # a server and a kernel size these themselves, by CPUs, memory and open files
    "server.innodb_buffer_pool_instances",
    "server.innodb_buffer_pool_chunk_size",
    "server.innodb_page_cleaners",
    "server.innodb_purge_threads",
    "server.innodb_read_io_threads",
    "server.innodb_log_writer_threads",
    "server.innodb_parallel_read_threads",
    "server.innodb_use_native_aio",
    "server.innodb_numa_interleave",
    "server.temptable_max_ram",
    "server.thread_cache_size",
    "server.host_cache_size",
    "server.version_compile_*",
    "*-host.sysctl.fs.file-max",
    "*-host.sysctl.fs.aio-max-nr",
)


@dataclass(frozen=True)
class Configuration:
    """Differences as (name, baseline, candidate): of hardware, accepted ones, and those that spoil."""

    hardware: tuple[tuple[str, str, str], ...]
    accepted: tuple[tuple[str, str, str], ...]
    spoiling: tuple[tuple[str, str, str], ...]


def configuration(
    baseline: Sequence[Measured], candidate: Sequence[Measured], accept: Sequence[str]
) -> Configuration:
    """Sort the material differences of two parties' hosts and servers; `accept` are patterns of names."""
    found = [each for each in differences([baseline, candidate]) if each.material]
    hardware = [each for each in found if _is_hardware(each)]
    others = [each for each in found if each not in hardware]
    accepted = [each for each in others if any(fnmatch(each.name, pattern) for pattern in accept)]
    return Configuration(
        _told(hardware), _told(accepted), _told([each for each in others if each not in accepted])
    )


def other_work(baseline: Part, candidate: Part) -> list[tuple[str, str, str]]:
    """What the parties were not asked alike, as (name, baseline, candidate); empty for the same work."""
    sides = [[_work(run, part) for run in part.runs] for part in (baseline, candidate)]
    names = sorted({name for side in sides for work in side for name in work})
    told = [
        (name, *(" / ".join(sorted({work.get(name, "absent") for work in side})) for side in sides))
        for name in names
    ]
    return [(name, old, new) for name, old, new in told if old != new or " / " in old]


def _work(run: Any, part: Part) -> dict[str, str]:
    """Workload, threads, options, operation and data of a run, as text."""
    result = run.result or {}
    asked = {
        "workload": result.get("workload") or run.meta.get("workload"),
        "operation": result.get("operation") or run.meta.get("operation"),
        "generator": run.meta.get("generator"),
        "threads": result.get("threads"),
        "share of the maximum": part.fraction,
        **{f"option {name}": value for name, value in (run.meta.get("parameters") or {}).items()},
        **{f"data {name}": value for name, value in (part.data.get("options") or {}).items()},
    }
    return {name: str(value) for name, value in asked.items()}


def _is_hardware(difference: Difference) -> bool:
    """Whether a difference is the subject. Mitigations follow the CPU, unless one side went without."""
    if fnmatch(difference.name, "*-host.mitigations.*"):
        return len({"vulnerable" in value.lower() for value in difference.values}) == 1
    return any(fnmatch(difference.name, pattern) for pattern in HARDWARE)


def _told(found: Sequence[Difference]) -> tuple[tuple[str, str, str], ...]:
    return tuple((each.name, each.values[0], each.values[1]) for each in found)
