"""Finds the disks that have the server's files, by the recorder's fingerprint."""

from __future__ import annotations

import re

from loadprint.reading.run_documents import Fingerprint

ROLES = ("data", "redo", "binlog")
PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")


def server_disks(fingerprint: Fingerprint) -> dict[str, list[str]]:
    """Whole disks with the server's files: disk → roles."""
    held: dict[str, list[str]] = {}
    for place in fingerprint.storage:
        for disk in place.disks if place.role in ROLES else ():
            held.setdefault(disk, []).append(place.role)
    return held


def namespace(disk: str) -> str | None:
    """The NVMe namespace that a disk is a path of; None for any other disk.

    The requests of a namespace with multipath are those of its paths, which the kernel counts too.
    """
    path = PATH.fullmatch(disk)
    return f"{path[1]}{path[2]}" if path else None
