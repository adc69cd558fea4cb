"""Holds the facts for rules: a host's fingerprint, server settings, recorded quantities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from loadprint.judging.effective import Server
from loadprint.judging.facts_host import data_disk
from loadprint.reading.cpusets import cores_of, parse_cpus
from loadprint.reading.documents import JsonObject
from loadprint.reading.run_documents import BlockDevice, CpuOfHost, Fingerprint, LoadResult, StoragePlace

if TYPE_CHECKING:  # it imports DuckDB, which the check of a live host does not need
    from loadprint.metrics.quantities import Quantities


NO_RESULT = LoadResult()
Value = TypeVar("Value")


class Unknown(Exception):
    """A rule cannot be applied; `str()` is the reason."""


def required(value: Value | None, reason: str) -> Value:
    """Return the value. Raises Unknown with the reason if it is None."""
    if value is None:
        raise Unknown(reason)
    return value


@dataclass(frozen=True)
class Subject:
    """A host and its server, live or recorded. Unknown CPU sets, and an unknown server, are None."""

    name: str
    fingerprint: Fingerprint
    server: Server | None = None
    server_cpus: tuple[int, ...] | None = None
    load_cpus: tuple[int, ...] | None = None
    shared_host: bool = True
    measured: Quantities | None = None
    result: LoadResult = NO_RESULT
    data_bytes: float | None = None
    load_fingerprint: Fingerprint | None = None

    def fact(self, path: str) -> Any:
        """Return a fact of the fingerprint, by its path with slashes. Raises Unknown if it is missing."""
        value: Any = self.fingerprint
        for name in path.split("/"):
            fields = dict(value.items()) if isinstance(value, dict | JsonObject) else {}
            value = fields.get(name)
        return required(value, f"{path.replace('/', '.')} was not recorded, or is not available on this host")

    def variables(self) -> Server:
        """Return the server's settings. Raises Unknown if there are none."""
        if self.server is None or not self.server.variables:
            raise Unknown("no server variables: give a recorded run, or --server-json")
        return self.server

    def require_recording(self) -> Quantities:
        """Return the measured quantities. Raises Unknown for a live host."""
        return required(self.measured, "needs a recording: `loadprint check RUN`")

    def rate(self, name: str) -> float:
        """Return a quantity of the recording. Raises Unknown with the reason if it is missing."""
        measured = self.require_recording()
        return required(measured.get(name), measured.why(name)).rate

    def data(self) -> StoragePlace:
        """Return the file system of the data. Raises Unknown if no data directory was given."""
        place = self.fingerprint.place("data")
        if place is None or place.filesystem is None:
            raise Unknown("the data directory is not known: --data-dir")
        return place

    def disk(self) -> BlockDevice:
        """Return the disk of the data. Raises Unknown if there is none, or more than one."""
        self.data()
        return required(data_disk(self.fingerprint), "the data are not on exactly one disk of this host")

    def cpus(self) -> Sequence[CpuOfHost]:
        """Return the list of CPUs. Raises Unknown."""
        self.fact("cpus/list")
        return self.fingerprint.cpus.list

    def cores(self) -> dict[int, str]:
        """Return CPU → core, as `cores_of`. Raises Unknown if a CPU has no core."""
        cores = cores_of(self.cpus())
        complete = len(cores) == len(self.cpus())
        return required(cores if complete else None, "the kernel did not report which CPUs share a core")

    def nodes(self) -> list[set[int]]:
        """CPUs of each memory node. Raises Unknown."""
        return [set(parse_cpus(node.cpus, "cpus.numa") or ()) for node in self.fact("cpus/numa")]

    @property
    def guest(self) -> bool:
        """Whether the host is a virtual machine."""
        return bool(self.fingerprint.virtualisation.guest)

    @property
    def memory_bytes(self) -> float:
        """Memory of the host, or the limit of its control group. Raises Unknown."""
        total = float(self.fact("memory/total_kB")) * 1024
        limit = self.fingerprint.limits.memory_bytes
        return total if limit is None else min(total, float(limit))
