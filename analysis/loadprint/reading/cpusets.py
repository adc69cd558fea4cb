"""Reads and formats CPU lists, and finds a role's CPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loadprint.errors import InputError
from loadprint.reading.bounds import MAX_CPUS
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import CpuOfHost, Fingerprint


def cpuset(run: Run, role: str) -> tuple[int, ...] | None:
    """CPUs of a role: those given, else all of its host if it does not share it; None if unknown."""
    given = given_cpus(run, role)
    return host_cpus(run, role) if given is None and not run.shares_host else given


def host_cpus(run: Run, role: str) -> tuple[int, ...] | None:
    """CPUs of a role's host by its fingerprint; None if it does not list them."""
    rows = run.fingerprints.get(role, Fingerprint()).cpus.list
    return tuple(sorted(int(row.cpu) for row in rows if row.cpu is not None)) or None


def cores_of(cpus: Iterable[CpuOfHost]) -> dict[int, str]:
    """CPU → its core: the kernel's list of the core's threads.

    Core numbers do not identify a core: they repeat on each die or cluster of a package. CPUs without such
    a list are left out.
    """
    return {
        int(row.cpu): str(row.siblings) for row in cpus if row.cpu is not None and row.siblings is not None
    }


def given_cpus(run: Run, role: str) -> tuple[int, ...] | None:
    """CPUs of a role from run.json, else from its fingerprint; None where none were given."""
    given = run.role(role).cpus or run.fingerprint(role).cpusets.get(role)
    return parse_cpus(given, f"{run.path / 'run.json'}: CPUs of {role}")


def parse_cpus(given: Any, place: str) -> tuple[int, ...] | None:
    """Read a CPU list in the syntax of taskset ("0-3,8") or as JSON numbers. Raises InputError."""
    if given is None or given in ("", []):
        return None
    if isinstance(given, int):
        given = [given]
    parts = given if isinstance(given, list) else str(given).split(",")
    cpus: set[int] = set()
    try:
        for part in parts:
            first, _, last = str(part).partition("-")
            if int(last or first) >= MAX_CPUS:
                raise ValueError(part)
            cpus.update(range(int(first), int(last or first) + 1))
    except ValueError as error:
        raise InputError(place, f"{given!r} is not a CPU list", "use the syntax of taskset: 0-3,8") from error
    return tuple(sorted(cpus))


def cpu_list(cpus: tuple[int, ...] | None) -> str:
    """Format CPUs in the syntax of taskset."""
    if cpus is None:
        return "not given (whole host)"
    spans: list[list[int]] = []
    for cpu in cpus:
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def named(cpus: tuple[int, ...]) -> str:
    """Format CPUs with the noun: CPU 0, CPUs 0-3."""
    return f"CPU{'' if len(cpus) == 1 else 's'} {cpu_list(cpus)}"
