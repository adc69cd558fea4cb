"""Checks who can change a path, once, when a user names it for output; replaces files in one step.

`python3 safe_files.py DIRECTORY USE [CHECKOUT]` creates a directory for a playbook, and refuses one that
other users can change; the owner of CHECKOUT may. USE is `own`, or `shared` for a directory in which the
playbook creates names exclusively: it may be sticky, as /tmp is. Imports only the standard library,
because playbooks run it on hosts without packages.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import secrets
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

MAX_LINKS = 40  # of a path, as in the kernel


class Unsafe(OSError):
    """A path that other users can change; `strerror` has the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.EPERM, reason, str(path))


def replace(path: Path, content: str | bytes, mode: int = 0o644, *, durable: bool = False) -> None:
    """Write a file in one step; a link of this name is replaced, not followed. Raises OSError.

    `durable`: the content is on the disk before it gets its name.
    """
    content = content.encode() if isinstance(content, str) else content
    # a random name: in a sticky directory, another user's file of this name could not be removed
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, mode), "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


def require_output(directory: Path, *, create: bool = False, shared: bool = True) -> None:
    """As root: check who can change a directory that a user named for output; `create` it, for all users.

    The user of sudo may change it. `shared` as in `require_trusted`. Raises OSError.
    """
    if os.geteuid() == 0:
        require_trusted(directory, create=create, owners=_sudo_user(), shared=shared)
    if create:
        directory.mkdir(parents=True, exist_ok=True)


def write_output(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file that a user named. Raises OSError.

    A file or link is replaced; one with fewer permissions keeps them. Devices, pipes, and the links of /dev
    and /proc to open files, such as /dev/stdout, are written to.
    """
    path = path.absolute()
    require_output(path.parent)
    directory = os.path.realpath(path.parent)
    if directory == "/dev" or directory.startswith("/proc/"):
        path.write_bytes(content)
        return
    try:
        state = path.lstat()
    except FileNotFoundError:
        state = None
    if state is None or stat.S_ISLNK(state.st_mode):
        replace(path, content, mode)
    elif stat.S_ISREG(state.st_mode):
        replace(path, content, mode & state.st_mode)
    elif state.st_uid in _trusted_users(_sudo_user()):
        path.write_bytes(content)
    else:  # a write could block
        raise Unsafe(path, f"is not a file, and belongs to the user {_name(state.st_uid)}")


def read_file(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; a pipe does not block it. Raises OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"is larger than {limit} bytes", str(path))
    return content


def require_trusted(
    path: Path, *, create: bool = False, owners: Iterable[int] = (), shared: bool = False
) -> None:
    """Check that only root, the caller, the owner of this program and `owners` can change what a path names.

    Each component, also of links, has to belong to one of them, and no other user may write to it,
    except to a sticky directory such as /tmp, where they cannot rename or remove the next component.
    `create`: directories that do not exist are created. `shared`: the last one may be sticky, because
    what it will contain is created exclusively. Raises Unsafe with the first other component, and
    OSError if one does not exist.
    """
    users = _trusted_users(owners)
    # A component is looked up after its parents were found unchangeable, so that it stays what it was.
    here, names, links = Path("/"), [*reversed(path.absolute().parts)], 0
    while names:
        if (name := names.pop()) == "..":
            here = here.parent
            continue
        step = here / name
        try:
            state = step.lstat()
        except FileNotFoundError:
            if not create:
                raise
            step.mkdir(mode=0o755)
            state = step.lstat()
        if reason := _distrust(state, users, sticky=shared or bool(names)):
            raise Unsafe(step, reason)
        if stat.S_ISLNK(state.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            names += reversed(Path(os.readlink(step)).parts)
        else:
            here = step


def _distrust(state: os.stat_result, users: set[int], *, sticky: bool) -> str:
    """Return why other users can change a file, or an empty text."""
    if state.st_uid not in users:
        return f"belongs to the user {_name(state.st_uid)}, who can change it"
    mode = state.st_mode
    if stat.S_ISLNK(mode) or (sticky and stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return ""
    if mode & stat.S_IWOTH:
        return "can be changed by all users"
    if mode & stat.S_IWGRP and state.st_gid != 0:
        return f"can be changed by its group, {state.st_gid} (`chmod g-w` prevents it)"
    return ""


def _trusted_users(owners: Iterable[int]) -> set[int]:
    return {0, os.geteuid(), os.stat(__file__).st_uid, *owners}


def _sudo_user() -> set[int]:
    """The user of sudo, if this is root."""
    return {int(os.environ.get("SUDO_UID") or 0)} if os.geteuid() == 0 else set()


def _name(uid: int) -> str:
    try:
        return f"`{pwd.getpwuid(uid).pw_name}`"
    except KeyError:
        return str(uid)


def main(path: str, use: str, checkout: str | None = None) -> int:
    """Create a directory that other users cannot change, or refuse it in one line."""
    try:
        owners = {os.stat(checkout).st_uid} if checkout else set()
        require_trusted(Path(path), create=True, owners=owners, shared=use == "shared")
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; name another directory", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
