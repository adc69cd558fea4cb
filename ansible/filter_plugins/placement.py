"""Filters that choose CPUs and memory nodes of server and load, and the addresses of their veth pair.

They use only `lscpu` and the host's list of addresses; the supervisor verifies the separation during the run.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

_UNBOUND = {"server_nodes": "", "load_nodes": ""}


def _ranges(cpus: Iterable[int]) -> str:
    """Format CPU numbers as in /proc: `0-3,8`."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _numbers(cpus: str) -> set[int]:
    """Parse `0-3,8`."""
    numbers: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.strip().partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def usable(rows: list[dict[str, Any]], allowed: str) -> list[dict[str, Any]]:
    """Return those `cpus` of `lscpu --json` that are online and in the list of CPUs that a process may use.

    A container's cpuset and the kernel's `isolcpus` leave out some that are online.
    """
    chosen = _numbers(allowed)
    return [
        row
        for row in rows
        if int(row["cpu"]) in chosen and str(row.get("online", True)).lower() in {"true", "yes"}
    ]


def cpu_sets(
    rows: list[dict[str, Any]], server: str | None = None, load: str | None = None
) -> dict[str, Any]:
    """Split the usable CPUs of one host between server and load.

    `rows` are those of `usable`. With two or more sockets, the server gets the first half of them; otherwise
    the first half of the physical cores, with their thread siblings; one core cannot be split.
    Lists of the campaign have precedence. Returns `server`, `load` (lists as in /proc), `separated`, `how`,
    and `server_nodes`, `load_nodes`: the memory nodes of the sockets, or "" where memory is not to be bound
    (no split by socket, or sockets that share a node).
    """
    if server and load:
        return {
            **_UNBOUND,
            "server": server,
            "load": load,
            "separated": not _numbers(server) & _numbers(load),
            "how": "as set in the campaign",
        }
    nodes: dict[int, int] = {}
    sockets: dict[int, list[int]] = defaultdict(list)
    cores: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in rows:
        # lscpu prints "-" if the kernel reports no socket or core: then every CPU is a separate core.
        cpu = int(row["cpu"])
        socket = int(row["socket"]) if str(row.get("socket", "-")).isdigit() else 0
        core = int(row["core"]) if str(row.get("core", "-")).isdigit() else cpu
        if str(row.get("node", "-")).isdigit():
            nodes[cpu] = int(row["node"])
        sockets[socket].append(cpu)
        cores[(socket, core)].append(cpu)
    groups = (
        [sockets[key] for key in sorted(sockets)]
        if len(sockets) > 1
        else [cores[key] for key in sorted(cores)]
    )
    every = _ranges(cpu for group in groups for cpu in group)
    if len(groups) < 2:
        return {
            **_UNBOUND,
            "server": every,
            "load": every,
            "separated": False,
            "how": "not separated: there is one physical core",
        }
    half = (len(groups) + 1) // 2
    server_cpus = [cpu for group in groups[:half] for cpu in group]
    load_cpus = [cpu for group in groups[half:] for cpu in group]
    server_nodes, load_nodes = (
        {nodes[cpu] for cpu in cpus if cpu in nodes} for cpus in (server_cpus, load_cpus)
    )
    bound = len(sockets) > 1 and server_nodes and load_nodes and not server_nodes & load_nodes
    return {
        **({"server_nodes": _ranges(server_nodes), "load_nodes": _ranges(load_nodes)} if bound else _UNBOUND),
        "server": _ranges(server_cpus),
        "load": _ranges(load_cpus),
        "separated": True,
        "how": "by socket" if len(sockets) > 1 else "by physical core",
    }


def host_cpus(
    rows: list[dict[str, Any]], role: str, server: str | None = None, load: str | None = None
) -> dict[str, Any]:
    """Return the CPU set of a host with one role: that of the campaign, else all usable CPUs.

    `rows` and the result are those of `cpu_sets`; the set of the other role is empty.
    """
    named = server if role == "server" else load
    every = _ranges(int(row["cpu"]) for row in rows)
    return {"server": "", "load": "", role: named or every, "separated": True, "how": "by host"}


def free_slash30(addresses: list[str], seed: str) -> dict[str, str]:
    """Choose a /30 of 198.18.0.0/15 (RFC 2544: benchmarks between hosts) in which the host has no address.

    `seed` (hexadecimal) spreads concurrent executions. Returns `host` and `peer`, without prefix length.
    """
    taken = {ipaddress.ip_address(address.partition("/")[0]) for address in addresses}
    blocks = list(ipaddress.IPv4Network("198.18.0.0/15").subnets(new_prefix=30))
    first = int(seed[:8], 16) % len(blocks)
    for offset in range(len(blocks)):
        host, peer = blocks[(first + offset) % len(blocks)].hosts()
        if host not in taken and peer not in taken:
            return {"host": str(host), "peer": str(peer)}
    raise ValueError("198.18.0.0/15 is full on this host")


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {
            "cpu_sets": cpu_sets,
            "free_slash30": free_slash30,
            "host_cpus": host_cpus,
            "usable": usable,
        }
