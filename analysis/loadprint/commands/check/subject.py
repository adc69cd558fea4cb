"""Holds the facts for rules: a host's fingerprint, server settings, recorded quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from loadprint.judging.effective import Server
from loadprint.judging.facts_host import data_disk, data_place
from loadprint.reading.cpusets import cores_of, parse_cpus

if TYPE_CHECKING:  # it imports DuckDB, which the check of a live host does not need
    from loadprint.metrics.quantities import Quantities


Value = TypeVar("Value")


class Unknown(Exception):
    """A rule cannot be applied; `str()` is the reason."""


def known(value: Value | None, reason: str) -> Value:
    """Return the value. Raises Unknown with the reason if it is None."""
    if value is None:
        raise Unknown(reason)
    return value


@dataclass(frozen=True)
class Subject:
    """A host and its server, live or recorded. Unknown CPU sets, and an unknown server, are None."""

    name: str
    fingerprint: Mapping[str, Any]
    server: Server | None = None
    server_cpus: tuple[int, ...] | None = None
    load_cpus: tuple[int, ...] | None = None
    shared_host: bool = True
    measured: Quantities | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    data_bytes: float | None = None
    load_fingerprint: Mapping[str, Any] | None = None

    def fact(self, path: str) -> Any:
        """Return a fact of the fingerprint, by its path with slashes. Raises Unknown if it is missing."""
        value: Any = self.fingerprint
        for name in path.split("/"):
            value = value.get(name) if isinstance(value, Mapping) else None
        return known(value, f"{path.replace('/', '.')} was not recorded, or is not available on this host")

    def variables(self) -> Server:
        """Return the server's settings. Raises Unknown if there are none."""
        if self.server is None or not self.server.variables:
            raise Unknown("no server variables: give a recorded run, or --server-json")
        return self.server

    def require_recording(self) -> Quantities:
        """Return the measured quantities. Raises Unknown for a live host."""
        return known(self.measured, "needs a recording: `loadprint check RUN`")

    def rate(self, name: str) -> float:
        """Return a quantity of the recording. Raises Unknown with the reason if it is missing."""
        measured = self.require_recording()
        return known(measured.get(name), measured.why(name)).rate

    def data(self) -> Mapping[str, Any]:
        """Return the file system of the data. Raises Unknown if no data directory was given."""
        place = data_place(self.fingerprint)
        if place is None or place.get("filesystem") is None:
            raise Unknown("the data directory is not known: --data-dir")
        return place

    def disk(self) -> Mapping[str, Any]:
        """Return the disk of the data. Raises Unknown if there is none, or more than one."""
        self.data()
        return known(data_disk(self.fingerprint), "the data are not on exactly one disk of this host")

    def cpus(self) -> Sequence[Mapping[str, Any]]:
        """Return the list of CPUs. Raises Unknown."""
        return [entry for entry in self.fact("cpus/list") if isinstance(entry, Mapping)]

    def cores(self) -> dict[int, str]:
        """Return CPU → core, as `cores_of`. Raises Unknown if a CPU has no core."""
        cores = cores_of(self.cpus())
        complete = len(cores) == len(self.cpus())
        return known(cores if complete else None, "the kernel did not report which CPUs share a core")

    def nodes(self) -> list[set[int]]:
        """CPUs of each memory node. Raises Unknown."""
        listed = [node.get("cpus") for node in self.fact("cpus/numa") if isinstance(node, Mapping)]
        return [set(parse_cpus(cpus, "cpus.numa") or ()) for cpus in listed]

    @property
    def guest(self) -> bool:
        """Whether the host is a virtual machine."""
        return bool((self.fingerprint.get("virtualisation") or {}).get("guest"))

    @property
    def memory_bytes(self) -> float:
        """Memory of the host, or the limit of its control group. Raises Unknown."""
        total = float(self.fact("memory/total_kB")) * 1024
        limit = (self.fingerprint.get("limits") or {}).get("memory_bytes")
        return min(total, float(limit)) if isinstance(limit, int | float) else total
