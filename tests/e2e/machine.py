"""What a run may not leave behind: processes, mounts, network devices, files outside its directory."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = (
    "mysqld",
    "mariadbd",
    "loadprint-",
    "debootstrap",
    "node-exporter",
    "mysqld-exporter",
    "_exporter",
    "fio",
    "iperf3",
    "sockperf",
)
# A server may take its time to shut down; nothing waits so long where all is well.
PATIENCE_S = 300.0
WATCHED = ("/tmp", "/dev/shm", "/run/netns", "/var/lib", "/etc", "/sys/class/net")


@dataclass(frozen=True)
class Machine:
    """One look at the machine."""

    processes: frozenset[tuple[int, str]]
    mounts: tuple[str, ...]
    files: frozenset[str]


def look() -> Machine:
    """Look at the machine now."""
    return Machine(
        processes=frozenset(ours()),
        mounts=tuple(Path("/proc/self/mounts").read_text().splitlines()),
        files=frozenset(
            f"{folder}/{name}" for folder in WATCHED if Path(folder).is_dir() for name in os.listdir(folder)
        ),
    )


def ours() -> list[tuple[int, str]]:
    """List the processes of the programs that a campaign starts, as (pid, command line)."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if any(part in Path(command).name for part in PROGRAMS):
                found.append((int(folder.name), command))
    return found


def settled(before: Machine) -> list[str]:
    """Wait until nothing is left since `before`; list what still is after a long time."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := added(before, look())) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def added(before: Machine, now: Machine) -> list[str]:
    """List what is there now and was not before, or is mounted otherwise."""
    return [
        *(f"process {pid} {command}" for pid, command in sorted(now.processes - before.processes)),
        *(f"mount {line}" for line in sorted(set(now.mounts) ^ set(before.mounts))),
        *(f"file {name}" for name in sorted(now.files - before.files)),
    ]
