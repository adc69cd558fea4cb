"""Identifies the server of an execution, which resumes only with the same server.

The declared server (source, tarball with its checksum, suite, packages) is part of the execution's
hash. Flavour, version and checksum of the program are known after the server is installed;
`confirm` stores them in execution.json and refuses another server later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadprint.commands.campaign.campaign_model import Campaign
from loadprint.commands.campaign.campaign_sides import CampaignSide
from loadprint.configuration.document import DocumentError

Identity = dict[str, Any]
MAIN = "main"  # the campaign's server

# source → the settings of role `server` that select the server
_ROOTFS = ("rootfs_suite", "rootfs_package", "rootfs_mirror")
_SETTINGS = {
    "auto": ("packages", *_ROOTFS),
    "package": ("packages",),
    "rootfs": _ROOTFS,
    "tarball": ("tarball",),
    "existing": ("host", "port", "socket", "user", "database"),
}


def declared(source: str, settings: Mapping[str, Any]) -> Identity:
    """Return the identity of the declared server; a tarball has its absolute path and SHA-256.

    `settings` are those of role `server` without its prefix, and `directories`, which are searched
    in order for a relative tarball. Raises DocumentError if the tarball cannot be read.
    """
    identity: Identity = {"source": source}
    identity |= {name: settings[name] for name in _SETTINGS[source] if settings.get(name)}
    if source == "tarball":
        path = _tarball(str(settings.get("tarball") or ""), settings.get("directories") or ["."])
        identity |= {"tarball": str(path), "sha256": checksum(path)}
    return identity


def of_sides(campaign: Campaign, settings: Mapping[str, Any], main: Identity | None) -> dict[str, Identity]:
    """Return the servers that the sides use, by key: `main` is the campaign's.

    Without `settings` (a plan that is not opened) tarballs are not read.
    """
    servers: dict[str, Identity] = {}
    for side in campaign.columns.values():
        key = key_of(side)
        if key in servers:
            continue
        source = side.server.source
        if source is None:
            servers[key] = main or {"source": campaign.server.source}
        elif settings:
            servers[key] = declared(source, {**settings, "tarball": side.server.tarball or ""})
        else:
            servers[key] = {"source": source} | (
                {"tarball": side.server.tarball} if side.server.tarball else {}
            )
    return servers


def key_of(side: CampaignSide) -> str:
    """Return the key of a side's server: `main`, its source, or `tarball-` and a hash of the path."""
    change = side.server
    if change.source is None:
        return MAIN
    if change.tarball is None:
        return change.source
    return f"tarball-{hashlib.sha256(change.tarball.encode()).hexdigest()[:8]}"


def _tarball(name: str, directories: list[str]) -> Path:
    if not name:
        raise DocumentError("mysql_source=tarball needs -e server_tarball=PATH-OR-URL")
    candidates = [Path(directory, Path(name).expanduser()).absolute() for directory in directories]
    for path in candidates:
        if path.exists():
            return path
    places = ", ".join(dict.fromkeys(map(str, candidates)))
    raise DocumentError(f"server_tarball: no such file: {places}; give an existing path or a URL")


def checksum(path: Path, fix: str = "check the path and its permissions") -> str:
    """Return the SHA-256 of a file in hex. Raises DocumentError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}; {fix}") from None


def confirm(document: dict[str, Any], obtained: Identity, directory: Path) -> bool:
    """Store an installed server in `document` (execution.json); return whether it is stored now.

    `obtained["key"]` is its key among the servers of the sides.

    Raises DocumentError if the execution has used another server.
    """
    key = obtained.pop("key", MAIN)
    identity = document["servers"].setdefault(key, {})
    before = identity.setdefault("obtained", obtained)
    if before == obtained:
        return before is obtained
    raise DocumentError(
        f"{directory}: the execution started with {_named(before)}, the server is now {_named(obtained)}; "
        "start a new execution with -e campaign_new=true"
    )


def _named(obtained: Identity) -> str:
    name = f"{obtained.get('flavour')} {obtained.get('version')}"
    return f"{name} (SHA-256 of its program {str(obtained.get('program_sha256'))[:12]}…)"
