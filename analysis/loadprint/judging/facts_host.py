"""Collects the facts of a host that decide the comparability of its runs, from its fingerprint."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import translate
from pathlib import Path
from typing import Any

from loadprint.judging.findings import Fact
from loadprint.reading.cpusets import cores_of
from loadprint.reading.documents import JsonObject
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import BlockDevice, CpuOfHost, Fingerprint

RULES = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))
HOST = RULES["host"]
SETTINGS = "sysctl and boot"
GIB_IN_KB = 1 << 20
BOOT_WORD = "boot: "
BOOTED = (SETTINGS, "boot parameters recorded")


def any_of(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that matches a name against shell patterns, compiled to one expression."""
    match = re.compile("|".join(translate(pattern) for pattern in patterns)).match
    return lambda name: match(name) is not None


_left_out, _harmless, _optional = (any_of(HOST[name]) for name in ("left_out", "harmless", "optional"))
_places = [(any_of(patterns), group) for group, patterns in HOST["groups"].items()]


def host_facts(run: Run, server_cpus: Sequence[int] | None) -> Iterator[Fact]:
    """Facts of all hosts of a run, without nulls: those were not read.

    Their names include the host's role if there are several hosts.
    """
    for prefix, fingerprint in _fingerprints(run):
        for name, value in {**_flat("", fingerprint), **_derived(fingerprint)}.items():
            if value is None or _left_out(name):
                continue
            group = next((group for belongs, group in _places if belongs(name)), SETTINGS)
            yield Fact(group, prefix + name, str(value), not _harmless(name), optional=_optional(name))
    if server_cpus is not None:
        yield Fact("placement", "number of server CPUs", str(len(server_cpus)), material=True)


def expected_facts(run: Run) -> set[str]:
    """Names of the facts that all hosts of a run have; none without a record of a host."""
    return {prefix + name for prefix, _ in _fingerprints(run) for name in HOST["expected"]}


def _fingerprints(run: Run) -> Iterator[tuple[str, Fingerprint]]:
    """The fingerprints of a run, with the prefix of their facts."""
    several = len(run.fingerprints) > 1
    for role, fingerprint in run.fingerprints.items():
        yield f"{role}: " if several else "", fingerprint


def _derived(fingerprint: Fingerprint) -> dict[str, Any]:
    """Facts from several entries: memory, the disk under the data by any name, boot parameters."""
    facts: dict[str, Any] = {}
    if total := fingerprint.memory.get("total_kB"):
        facts["memory.total"] = f"{total / GIB_IN_KB:.0f} GiB"
    if data := fingerprint.place("data"):
        facts["data file system"] = data.filesystem
        facts["data mount options"] = _options(data.options)
    if disk := data_disk(fingerprint):
        facts |= {f"data disk.{name}": getattr(disk, name, None) for name in HOST["disk"]}
    if fingerprint.cmdline is not None:
        facts[BOOTED[1]] = "yes"
    for word in (fingerprint.cmdline or "").split(" -- ")[0].split():
        name, _, value = word.partition("=")
        if not name.lower().startswith(tuple(HOST["identity"])):
            facts[f"{BOOT_WORD}{name}"] = value or "set"
    return facts


def data_disks(fingerprint: Fingerprint) -> tuple[str, ...]:
    """The disks with the data; none if they were not recorded."""
    data = fingerprint.place("data")
    return data.disks if data else ()


def data_disk(fingerprint: Fingerprint) -> BlockDevice | None:
    """The disk under the data, if that is one."""
    disks = data_disks(fingerprint)
    return next((device for device in fingerprint.block_devices if (device.name,) == disks), None)


def port_count(fingerprint: Fingerprint) -> int | None:
    """Size of the port range for outgoing connections; None if it was not recorded."""
    text = fingerprint.sysctl.get("net.ipv4.ip_local_port_range")
    try:
        first, last = (int(word) for word in str(text).split())
    except ValueError:
        return None
    return last - first + 1 if last >= first else None


def thread_siblings(cpus: Sequence[CpuOfHost], server: Iterable[int], load: Iterable[int]) -> tuple[int, ...]:
    """CPUs of the load that are hardware threads of a core of the server; `cpus` lists those of the host."""
    cores = cores_of(cpus)
    server_cores = {cores[cpu] for cpu in server if cpu in cores}
    return tuple(sorted(cpu for cpu in load if cores.get(cpu) in server_cores))


def described(fingerprint: Fingerprint) -> str:
    """CPUs, memory, kernel and data disk in one line; what was not read is left out."""
    cpus, disks, release = fingerprint.cpus, data_disks(fingerprint), fingerprint.kernel.release
    parts = [
        f"{cpus.online} CPUs" if cpus.online else "",
        cpus.model,
        f"{cpus.sockets} socket{'s' if cpus.sockets != 1 else ''}" if cpus.sockets else "",
        _derived(fingerprint).get("memory.total") or "",
        f"Linux {release.partition('-')[0]}" if release else "",
        "a virtual machine" if fingerprint.virtualisation.guest else "",
        f"data on {', '.join(disks)}" if disks else "",
    ]
    return ", ".join(part for part in parts if part) or "unknown"


def _options(options: Any) -> str | None:
    """Mount options once each, in alphabetical order."""
    return ",".join(sorted(set(str(options).split(",")))) if options else None


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    """Nested objects as dotted names; entries of lists by their name, role or node."""
    if isinstance(value, dict | JsonObject):
        entries = [(str(name), inner) for name, inner in value.items()]
    elif isinstance(value, list | tuple):
        entries = [(_called(inner, place), inner) for place, inner in enumerate(value)]
    else:
        return {prefix: value}
    facts: dict[str, Any] = {}
    for name, inner in entries:
        facts |= _flat(f"{prefix}.{name}" if prefix else name, inner)
    return facts


def _called(inner: Any, place: int) -> str:
    entries = dict(inner.items()) if isinstance(inner, dict | JsonObject) else {}
    keys = (key for key in ("name", "role", "node", "cpu") if entries.get(key) is not None)
    return str(next((entries[key] for key in keys), place))
