"""Groups runs by the machine they ran on (instance), and names its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadprint.reading.recording import Run

# identifiers of a machine apart from its host name; the first recorded one is used
By = Literal["host", "boot", "execution"]
IDENTITIES = ("machine_id", "product_uuid", "instance_id")


@dataclass(frozen=True)
class Instance:
    """One machine: name, type, number of boots, and the indexes of its runs."""

    name: str
    kind: str
    boots: int
    places: tuple[int, ...]


def instances(runs: Sequence[Run], by: By = "host") -> tuple[Instance, ...]:
    """Instances of runs, in the order of their first run.

    With `host`, two boots of one host name are the same instance if one of them has no machine id: counting
    two could overstate the number of instances. Use `boot` or `execution` if each is another machine.
    """
    by_name: dict[str, list[int]] = {}
    unidentified = {_host(run) for run in runs if by == "host" and identity(run) == _host(run)}
    for place, run in enumerate(runs):
        host = _host(run)
        by_name.setdefault(host if host in unidentified else identity(run, by), []).append(place)
    names = _distinct([_host(runs[places[0]]) for places in by_name.values()])
    return tuple(
        Instance(
            name,
            kind(runs[places[0]]),
            len({runs[place].fingerprint("server").boot_id for place in places}),
            tuple(places),
        )
        for name, places in zip(names, by_name.values(), strict=True)
    )


def identity(run: Run, by: By = "host") -> str:
    """Name that identifies a machine."""
    fingerprint = run.fingerprint("server")
    if by == "execution":
        return str(run.path.resolve().parent)
    if by == "boot":
        return f"{_host(run)} {fingerprint.boot_id}"
    for name in IDENTITIES:
        if value := getattr(fingerprint, name, "") or getattr(fingerprint.virtualisation, name, ""):
            return f"{name} {value}"
    return _host(run)


def _host(run: Run) -> str:
    return run.fingerprint("server").host or run.role("server").host or "unknown host"


def kind(run: Run) -> str:
    """Instance type or product, CPU model, number of CPUs and memory."""
    fingerprint = run.fingerprint("server")
    machine, cpus = fingerprint.virtualisation, fingerprint.cpus
    memory = fingerprint.memory.get("total_kB")
    parts = (
        machine.instance_type or machine.product,
        cpus.model,
        f"{len(cpus.list)} CPUs" if cpus.list else "",
        "" if memory is None else f"{memory / 2**20:.0f} GiB",
    )
    return ", ".join(part for part in parts if part)


def _distinct(names: list[str]) -> list[str]:
    """Number different machines with the same host name."""
    return [
        f"{name}#{names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]
