"""Which machine a run was on: runs of one instance are pooled below it, instances are the units of a type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loadprint.reading.recording import Run

# what names a machine, whatever its host is called; the first that a recorder wrote down counts
By = Literal["host", "boot", "execution"]
IDENTITIES = ("machine_id", "product_uuid", "instance_id")


@dataclass(frozen=True)
class Instance:
    """One machine: its name, what it is, and its places in the list of runs it was made from."""

    name: str
    kind: str
    boots: int
    places: tuple[int, ...]


def instances(runs: Sequence[Run], by: By = "host") -> tuple[Instance, ...]:
    """Instances of runs, in the order of their first run.

    By `host`, two boots of one host name are one instance that was booted again, where the recorder of
    one of them wrote no machine id: calling them two would claim more instances than there may be. `boot` and
    `execution` are for who knows that each is another machine.
    """
    found: dict[str, list[int]] = {}
    untold = {_host(run) for run in runs if by == "host" and identity(run) == _host(run)}
    for place, run in enumerate(runs):
        host = _host(run)
        found.setdefault(host if host in untold else identity(run, by), []).append(place)
    names = _distinct([_host(runs[places[0]]) for places in found.values()])
    return tuple(
        Instance(
            name,
            kind(runs[places[0]]),
            len({str(runs[place].fingerprint("server").get("boot_id")) for place in places}),
            tuple(places),
        )
        for name, places in zip(names, found.values(), strict=True)
    )


def identity(run: Run, by: By = "host") -> str:
    """Name that tells a machine from others."""
    fingerprint = run.fingerprint("server")
    if by == "execution":
        return str(run.path.resolve().parent)
    if by == "boot":
        return f"{_host(run)} {fingerprint.get('boot_id')}"
    for name in IDENTITIES:
        if found := fingerprint.get(name) or (fingerprint.get("virtualisation") or {}).get(name):
            return f"{name} {found}"
    return _host(run)


def _host(run: Run) -> str:
    declared: Any = ((run.meta.get("roles") or {}).get("server") or {}).get("host")
    return str(run.fingerprint("server").get("host") or declared or "unknown host")


def kind(run: Run) -> str:
    """What the machine calls itself, its CPU model and how many it has."""
    fingerprint = run.fingerprint("server")
    machine, cpus = fingerprint.get("virtualisation") or {}, fingerprint.get("cpus") or {}
    listed = cpus.get("list") or cpus.get("cpus") or []
    memory = (fingerprint.get("memory") or {}).get("total_kB")
    told = (
        machine.get("instance_type") or machine.get("product"),
        cpus.get("model"),
        f"{len(listed)} CPUs" if listed else None,
        f"{memory / 2**20:.0f} GiB" if isinstance(memory, int) else None,
    )
    return ", ".join(str(part) for part in told if part)


def _distinct(names: list[str]) -> list[str]:
    """Number hosts that share a name and are not one machine."""
    return [
        f"{name}#{names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]
