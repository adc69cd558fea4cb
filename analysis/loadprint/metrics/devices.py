"""Selects the disks and interfaces of a comparison: the data device first, then the others in use.

Partitions, dm, md and loop devices are excluded, because the disk below counts their I/O again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.metrics.gather import Measured
from loadprint.reading.server_disks import ROLES, namespace, server_disks

MIN_BYTES = 1000  # per second, in any run: less is background traffic
PLAIN_SHARE = 0.01  # of the busiest interface's bytes
STACKED = ("loop", "dm-", "md", "ram", "zram", "sr", "fd")


@dataclass(frozen=True)
class Device:
    """One disk or interface of the table; `per_side` is its name on each side, None if a side has none.

    `has_files`: it has files of the server. `plain`: it has, or it carried the load.
    """

    title: str
    per_side: tuple[str | None, ...]
    plain: bool = True
    has_files: bool = False

    @property
    def name(self) -> str:
        """Name on the first side that has it."""
        return next(name for name in self.per_side if name)


def disks(sides: Sequence[Sequence[Measured]]) -> list[Device]:
    """Data device, then every other whole disk with I/O in a window."""
    held = [server_disks(runs[0].run.fingerprint("server")) for runs in sides]
    data = tuple(next((disk for disk, roles in of_side.items() if "data" in roles), None) for of_side in held)
    devices = []
    if any(data):
        roles = {role for name, of_side in zip(data, held, strict=True) if name for role in of_side[name]}
        names = " | ".join(dict.fromkeys(name for name in data if name))
        devices.append(Device(f"Disk {names} ({_listed(roles)})", data, has_files=True))
    for disk in sorted({disk for runs in sides for run in runs for disk in _used(run)} - set(data)):
        roles = {role for of_side in held for role in of_side.get(disk, [])}
        title = f"Disk {disk}{f' ({_listed(roles)})' if roles else ''}"
        plain = bool(roles) or not any(data)
        devices.append(Device(title, (disk,) * len(sides), plain=plain, has_files=bool(roles)))
    return devices


def interfaces(sides: Sequence[Sequence[Measured]]) -> list[Device]:
    """Interfaces that carried a kB per second, busiest first; `lo` last: it counts every byte twice."""
    carried: Counter[str] = Counter()
    for run in (run for runs in sides for run in runs):
        for (name,) in sorted(run.quantities.entities["nic"]):
            both = [run.quantities.get(f"nic.{name}.{way}_bytes") for way in ("rx", "tx")]
            carried[name] = max(carried[name], int(sum(way.rate for way in both if way)))
    used = [name for name, rate in carried.most_common() if rate >= MIN_BYTES and name != "lo"]
    largest = max((carried[name] for name in used), default=0)
    devices = [
        Device(f"Network {name}", (name,) * len(sides), plain=carried[name] >= PLAIN_SHARE * largest)
        for name in used
    ]
    if carried["lo"] >= MIN_BYTES:
        plain = carried["lo"] >= PLAIN_SHARE * largest
        devices.append(Device("Network lo (counts every byte twice)", ("lo",) * len(sides), plain=plain))
    return devices


def is_idle(runs: Sequence[Measured], interface: str | None) -> bool:
    """Whether an interface carried hardly any traffic in all runs of a side, or does not exist."""
    ways = [run.quantities.get(f"nic.{interface}.{way}_bytes") for run in runs for way in ("rx", "tx")]
    return all(way is None or way.rate < MIN_BYTES for way in ways)


def _listed(roles: set[str]) -> str:
    return ", ".join(role for role in ROLES if role in roles)


def _used(run: Measured) -> list[str]:
    q = run.quantities
    attached = {device.name for device in run.run.fingerprint("server").block_devices}
    multipath = {namespace(name) for name in attached}
    used = []
    for (disk,) in sorted(q.entities["disk"]):
        if disk.startswith(STACKED) or disk in multipath or (attached and disk not in attached):
            continue
        counts = [q.get(f"disk.{disk}.{name}") for name in ("reads", "writes", "flushes", "transfers")]
        if sum(count.rate for count in counts if count) > 0:
            used.append(disk)
    return used
