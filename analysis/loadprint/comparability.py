"""What differs between the sides' hosts and servers, before any number: material or harmless.

Facts come from fingerprint.json and server.json. A name that no rule calls harmless is material.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from loadprint.gather import Measured

# identity, places and clocks: they differ between two instances of the same configuration
HARMLESS = (
    "host",
    "boot_id",
    "host.host",
    "host.boot_id",
    "*.boot_id",
    "*.hostname",
    "*.host",
    "*.cmdline.root",
    "*.sysctl.kernel.random.*",
    "*.sysctl.kernel.hostname",
    "*.storage.*.path",
    "*.cpusets.*",
    "*-host.nics.*.state",
    "*-host.nics.*.name",
    "*-host.sysstat.*",
    "*.storage.*",
    "server.hostname",
    "server.datadir",
    "server.socket",
    "server.pid_file",
    "server.port",
    "server.mysqlx_*",
    "server.server_uuid",
    "server.server_id",
    "server.gtid_*",
    "server.timestamp",
    "server.pseudo_thread_id",
    "server.rand_seed*",
    "server.*_file",
    "server.*_dir",
    "server.tmpdir",
    "server.basedir",
    "server.log_error",
    "server.bind_address",
    "server.admin_*",
    "server.ssl_*",
    "server.*_path",
    "server.report_*",
    "server.log_bin_*",
    "server.insert_id",
    "server.last_insert_id",
    "server.identity",
    "server.error_count",
    "server.warning_count",
    "server.statement_id",
    "server.original_commit_timestamp",
    "server.immediate_server_version",
    "server.innodb_*_dir",
    "server.innodb_*_directory",
    "server.innodb_directories",
    "server.secure_file_priv",
    "server.relay_log*",
    "server.caching_sha2_*",
    "server.use_secondary_engine",
    "server.build_id",
)
VOLATILE = (
    "*.memory.*free*",
    "*.memory.*avail*",
    "*.memory.*cached*",
    "*.nics.*.speed",
    "*.frequency*",
    "*.mhz*",
)


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same everywhere; `values` are per side, each distinct value once."""

    name: str
    values: tuple[str, ...]
    material: bool


def differences(sides: Sequence[Sequence[Measured]]) -> list[Difference]:
    """Facts whose values differ between sides or between the repeats of one, material ones first."""
    facts = [[dict(_facts(run)) for run in runs] for runs in sides]
    imported = [[("imported" in run.run.meta) for run in runs] for runs in sides]
    names = sorted({name for side in facts for run in side for name in run})
    found = []
    for name in names:
        if any(fnmatch(name.lower(), pattern) for pattern in VOLATILE):
            continue
        if any(
            unknown and name not in run
            for side, marks in zip(facts, imported, strict=True)
            for run, unknown in zip(side, marks, strict=True)
        ):
            continue  # what another tool did not keep is no difference
        values = tuple(" / ".join(sorted({run.get(name, "absent") for run in side})) for side in facts)
        if len(set(values)) > 1:
            if ".nics." in name and "absent" in " / ".join(values):
                continue  # virtual interfaces come and go
            material = not any(fnmatch(name.lower(), pattern) for pattern in HARMLESS)
            found.append(Difference(name, values, material))
    return sorted(found, key=lambda difference: (not difference.material, difference.name))


def _facts(run: Measured) -> Iterator[tuple[str, str]]:
    imported = "imported" in run.run.meta
    for role, fingerprint in run.run.fingerprints.items():
        told = _flat(f"{role}-host", fingerprint)
        yield from ((name, value) for name, value in told if not imported or value != "None")
    server = run.run.server
    if server:
        yield "server.version", str(server.get("version"))
        for name, value in (server.get("variables") or {}).items():
            yield f"server.{name}", str(value)
    if run.run.result:
        yield "load.connections", connections(run.run.result)


def connections(result: dict[str, Any]) -> str:
    """How the load generator served its connections: a thread each, unless it says otherwise."""
    kind = str(result.get("connections") or "thread")
    return kind if kind == "thread" else f"{kind} on {result.get('workers')} workers"


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}", inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            label = (
                inner.get("name") or inner.get("role") or inner.get("cpu")
                if isinstance(inner, dict)
                else None
            )
            yield from _flat(f"{prefix}.{place if label is None else label}", inner)
    else:
        yield prefix, str(value)
