"""Opens files relative to the descriptor of their directory, and checks who can change a path.

For directories that another user may own or write: no link is followed, and renaming a directory
redirects no file. `python3 safe_files.py DIRECTORY
USE [CHECKOUT]` creates a directory for a playbook, and refuses one that other users can change; the
owner of CHECKOUT may. USE is `own`, or `shared` for a directory in which the playbook creates names
exclusively: it may be sticky, as /tmp is. Imports only the standard library, because playbooks
run it on hosts without packages.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MAX_LINKS = 40  # of a path, as in the kernel


class Unsafe(OSError):
    """A path that other users can change; `strerror` has the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.EPERM, reason, str(path))


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Give errors the whole path instead of the name in an open directory."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


class Directory:
    """An open directory; `path` is for messages."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.fd, self.path = descriptor, path

    @classmethod
    def open(cls, path: Path) -> Directory:
        """Open a directory that a user named; links in its path are followed. Raises OSError."""
        return cls(os.open(path, DIRECTORY), path)

    @classmethod
    def new(cls, path: Path) -> Directory:
        """Create a directory, and its parents if they do not exist. Raises FileExistsError, OSError."""
        parent = path.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        made = cls.open(parent).make(path.name)
        made.path = path
        return made

    @property
    def by_descriptor(self) -> Path:
        """A path of the open directory, for programs: it is valid also if the directory was renamed."""
        return Path(f"/proc/self/fd/{self.fd}")

    def sub(self, name: str) -> Directory:
        """Open a subdirectory. Raises OSError, also for a link."""
        with _named(self.path / name):
            descriptor = os.open(name, DIRECTORY | os.O_NOFOLLOW, dir_fd=self.fd)
        return Directory(descriptor, self.path / name)

    def make(self, name: str) -> Directory:
        """Create a subdirectory that only this user can write. Raises FileExistsError, OSError."""
        with _named(self.path / name):
            os.mkdir(name, 0o755, dir_fd=self.fd)
        made = self.sub(name)
        state = os.fstat(made.fd)
        if state.st_uid != os.geteuid() or state.st_mode & OTHERS_WRITE or os.listdir(made.fd):
            reason = (
                f"has the owner {state.st_uid} and the mode {state.st_mode & 0o7777:o} after its creation"
            )
            raise Unsafe(made.path, f"{reason}: its file system has none, or another user replaced it")
        return made

    def require(self, name: str) -> Directory:
        """Open a subdirectory, and create it if it does not exist. Raises OSError, also for a link."""
        try:
            return self.make(name)
        except FileExistsError:
            return self.sub(name)

    def create(self, name: str, mode: int = 0o644) -> int:
        """Create a file and open it for writing. Raises FileExistsError, OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with _named(self.path / name):
            return os.open(name, flags, mode, dir_fd=self.fd)

    def replace(self, name: str, content: str | bytes, mode: int = 0o644) -> None:
        """Write a file in one step; a link of this name is replaced, not followed. Raises OSError."""
        content = content.encode() if isinstance(content, str) else content
        temporary = f".{name}.tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=self.fd)
        try:
            with _named(self.path / name), open(self.create(temporary, mode), "wb") as file:
                file.write(content)
                file.flush()
                os.replace(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self.fd)
            raise

    def remove(self) -> None:
        """Remove the directory that this process created. Raises OSError."""
        for name in os.listdir(self.fd):
            if stat.S_ISDIR(os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=self.fd)
            else:
                os.unlink(name, dir_fd=self.fd)
        # by its path, which may name another directory by now: rmdir removes none with entries
        self.path.rmdir()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step. Raises OSError."""
    Directory.open(path.parent).replace(path.name, text, 0o600)


def write_output(path: Path, content: bytes) -> None:
    """Write a file that a user named; it may be a link of this user or of root, such as /dev/stdout.

    Raises OSError, also for a link of another user: the kernel refuses these in sticky directories
    only (fs.protected_symlinks).
    """
    with open(_output(path), "wb") as file:
        file.write(content)


def _output(path: Path) -> int:
    for _ in range(MAX_LINKS):
        # what such a link names cannot be opened by a path
        if own := re.fullmatch(r"/(?:proc/self|dev)/fd/([0-9]+)", str(path)):
            return os.dup(int(own[1]))
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        # the link whose owner is known is the one that is read, also if another takes its place
        link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(link).st_uid not in (0, os.geteuid()):
                raise Unsafe(path, "is a link of another user")
            path = path.parent / os.readlink("", dir_fd=link)
        finally:
            os.close(link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def require_trusted(
    path: Path, *, create: bool = False, owner: int | None = None, shared: bool = False
) -> None:
    """Check that only root, the caller and the user `owner` can change what a path names.

    Each component, also of links, has to belong to one of them, and no other user may write to it,
    except to a sticky directory such as /tmp, where they cannot rename or remove the next component.
    `create`: directories that do not exist are created. `shared`: the last one may be sticky, because
    what it will contain is created exclusively. Raises Unsafe with the first other component, and
    OSError if one does not exist.
    """
    users = {0, os.geteuid()} | (set() if owner is None else {owner})
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
        if reason := _distrust(step, state, users, sticky=shared or bool(names)):
            raise Unsafe(step, reason)
        if stat.S_ISLNK(state.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            names += reversed(Path(os.readlink(step)).parts)
        else:
            here = step


def _distrust(path: Path, state: os.stat_result, users: set[int], *, sticky: bool) -> str:
    """Return why other users can change a file, or an empty text."""
    if state.st_uid not in users:
        return f"belongs to the user {_name(state.st_uid)}, who can change it"
    mode = state.st_mode
    if stat.S_ISLNK(mode) or (sticky and stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return ""
    if mode & stat.S_IWOTH:
        return "can be changed by all users"
    if mode & stat.S_IWGRP and _has_list(path):  # the group's bits are the most that the list gives
        return "can be changed by users of its access control list"
    if mode & stat.S_IWGRP and not _is_private(state.st_gid, users):
        return f"can be changed by its group, {state.st_gid}"
    return ""


def _has_list(path: Path) -> bool:
    """Whether a file has an access control list, acl(5)."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access", follow_symlinks=False))
    except OSError:
        return False


def _is_private(gid: int, users: set[int]) -> bool:
    """Whether a group has the name of one of these users, and no other member (umask 002)."""
    names = {_name(uid) for uid in users}
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    # the members of a user's primary group are not listed in it
    of_others = any(user.pw_gid == gid and user.pw_uid not in users for user in pwd.getpwall())
    return f"`{group.gr_name}`" in names and {f"`{name}`" for name in group.gr_mem} <= names and not of_others


def _name(uid: int) -> str:
    try:
        return f"`{pwd.getpwuid(uid).pw_name}`"
    except KeyError:
        return str(uid)


def main(path: str, use: str, checkout: str | None = None) -> int:
    """Create a directory that other users cannot change, or refuse it in one line."""
    try:
        owner = os.stat(checkout).st_uid if checkout else None
        require_trusted(Path(path), create=True, owner=owner, shared=use == "shared")
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; name another directory", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
