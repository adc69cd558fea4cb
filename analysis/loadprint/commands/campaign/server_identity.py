"""Identifies the server of an execution: an interrupted execution may only resume with the same server.

What the user asked for (source, tarball with its checksum, suite, packages) is known before any host is
reached and is part of the execution's hash. Flavour, version and the checksum of the program are known once
the server has been obtained; `confirm` stores them in execution.json and refuses another server later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadprint.configuration.document import DocumentError

Identity = dict[str, Any]

# The settings of role `server` that choose the server, by source.
_ROOTFS = ("rootfs_suite", "rootfs_package", "rootfs_mirror")
_SETTINGS = {
    "auto": ("packages", *_ROOTFS),
    "package": ("packages",),
    "rootfs": _ROOTFS,
    "tarball": ("tarball",),
    "existing": ("host", "port", "socket", "user", "database"),
}


def declared(source: str, settings: Mapping[str, Any]) -> Identity:
    """Return what identifies the server before it is obtained; a tarball by absolute path and SHA-256.

    `settings` are those of role `server` without its prefix, and `directories`: where a relative tarball is
    looked for, in this order.
    Raises DocumentError where the tarball cannot be read.
    """
    identity: Identity = {"source": source}
    identity |= {name: settings[name] for name in _SETTINGS[source] if settings.get(name)}
    if source == "tarball":
        path = _tarball(str(settings.get("tarball") or ""), settings.get("directories") or ["."])
        identity |= {"tarball": str(path), "sha256": checksum(path)}
    return identity


def _tarball(given: str, directories: list[str]) -> Path:
    if not given:
        raise DocumentError("mysql_source=tarball needs -e server_tarball=PATH-OR-URL")
    candidates = [Path(directory, Path(given).expanduser()).absolute() for directory in directories]
    for path in candidates:
        if path.exists():
            return path
    places = ", nor ".join(dict.fromkeys(map(str, candidates)))
    raise DocumentError(f"server_tarball: there is no {places}; give an existing path or a URL")


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hex. Raises DocumentError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DocumentError(f"{path}: cannot read it: {error.strerror}") from None


def confirm(document: dict[str, Any], obtained: Identity, directory: Path) -> bool:
    """Store the obtained server in `document` (execution.json); return whether it was not stored before.

    Raises DocumentError where the execution has used another server.
    """
    identity = document.setdefault("server", {})
    before = identity.setdefault("obtained", obtained)
    if before == obtained:
        return before is obtained
    raise DocumentError(
        f"{directory}: this execution began with {_named(before)}, the server is now {_named(obtained)}; "
        "start a new execution with -e campaign_new=true"
    )


def _named(obtained: Identity) -> str:
    name = f"{obtained.get('flavour')} {obtained.get('version')}"
    return f"{name} (SHA-256 of its program {str(obtained.get('program_sha256'))[:12]}…)"
