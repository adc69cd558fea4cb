"""What a check looks at: a host's fingerprint, a server's settings, and what a recording adds to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadprint.judging.effective import Server
from loadprint.judging.facts_host import data_disk, data_place
from loadprint.reading.cpusets import parse_cpus

if TYPE_CHECKING:  # brings DuckDB along, which a live host can be checked without
    from loadprint.metrics.quantities import Quantities


class Unknown(Exception):
    """A rule cannot be judged; `str()` says why."""


@dataclass(frozen=True)
class Subject:
    """A host and its server, live or recorded. A CPU set that nobody gave is None, as is a server."""

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
        """Return a fact of the fingerprint by its dotted path. Raises Unknown where it was not read."""
        found: Any = self.fingerprint
        for name in path.split("/"):
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            raise Unknown(f"{path.replace('/', '.')} was not recorded, or this host does not tell it")
        return found

    def variables(self) -> Server:
        """Return the server's settings. Raises Unknown where there are none."""
        if self.server is None or not self.server.variables:
            raise Unknown("no server variables: give a recorded run, or --server-json")
        return self.server

    def require_recording(self) -> Quantities:
        """Return what was measured. Raises Unknown for a live host."""
        if self.measured is None:
            raise Unknown("needs a recording: `loadprint check RUN`")
        return self.measured

    def rate(self, name: str) -> float:
        """Return a quantity of the recording. Raises Unknown with the reason why there is none."""
        found = self.require_recording().get(name)
        if found is None:
            raise Unknown(self.require_recording().why(name))
        return found.rate

    def data(self) -> Mapping[str, Any]:
        """Return where the data lie. Raises Unknown where nobody named the data directory."""
        place = data_place(self.fingerprint)
        if place is None or place.get("filesystem") is None:
            raise Unknown("nobody named the data directory: --data-dir")
        return place

    def disk(self) -> Mapping[str, Any]:
        """Return the one disk under the data. Raises Unknown where it is none or several."""
        self.data()
        found = data_disk(self.fingerprint)
        if found is None:
            raise Unknown("the data do not lie on one disk of this host")
        return found

    def cpus(self) -> Sequence[Mapping[str, Any]]:
        """Return the list of CPUs. Raises Unknown."""
        return [entry for entry in self.fact("cpus/list") if isinstance(entry, Mapping)]

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
        """Memory of the host, or what its control group allows. Raises Unknown."""
        total = float(self.fact("memory/total_kB")) * 1024
        limit = (self.fingerprint.get("limits") or {}).get("memory_bytes")
        return min(total, float(limit)) if isinstance(limit, int | float) else total
