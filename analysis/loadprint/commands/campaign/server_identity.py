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

from loadprint.configuration.document import DocumentError

Identity = dict[str, Any]

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


def _tarball(name: str, directories: list[str]) -> Path:
    if not name:
        raise DocumentError("mysql_source=tarball needs -e server_tarball=PATH-OR-URL")
    candidates = [Path(directory, Path(name).expanduser()).absolute() for directory in directories]
    for path in candidates:
        if path.exists():
            return path
    places = ", ".join(dict.fromkeys(map(str, candidates)))
    raise DocumentError(f"server_tarball: no such file: {places}; give an existing path or a URL")


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hex. Raises DocumentError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}; check the path and its permissions") from None


def confirm(document: dict[str, Any], obtained: Identity, directory: Path) -> bool:
    """Store the installed server in `document` (execution.json); return whether it is stored now.

    Raises DocumentError if the execution has used another server.
    """
    identity = document.setdefault("server", {})
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
