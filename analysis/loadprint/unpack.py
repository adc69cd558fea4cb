"""Unpacks the archive of another host: `python -P -m loadprint.unpack ARCHIVE DIRECTORY [NAME…]`.

The host made the archive, so nothing in it is trusted: it contains regular files with plain names, each of
them a NAME or in a directory NAME/ (any in DIRECTORY without names). A link, a device, a FIFO, another name,
or one that DIRECTORY has already is refused, and DIRECTORY stays as it was. The archive is removed once it
is unpacked. Exit status 2 with the reason.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

MAX_BYTES = 16 << 30  # of the archive, which is not compressed
MAX_ENTRIES = 10_000
MAX_MEMORY = 2 << 30  # a header of a tar file may have any length (pax(1))
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Refused(Exception):
    """What of the archive is not accepted."""


def unpack(archive: Path, directory: Path, names: Collection[str] = ()) -> None:
    """Unpack a tar file into a directory of the caller, which is created (0700) if it does not exist.

    Raises Refused, OSError, tarfile.TarError.
    """
    if archive.stat().st_size > MAX_BYTES:
        raise Refused(f"more than {MAX_BYTES >> 30} GiB")
    fresh = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        with tarfile.open(archive, "r:") as tar:
            for number, member in enumerate(tar):
                if number == MAX_ENTRIES:
                    raise Refused(f"more than {MAX_ENTRIES} entries")
                _extract(tar, member, fresh, names)
        if not os.path.lexists(directory):
            fresh.rename(directory)
            return
        entries = sorted(fresh.iterdir())
        for entry in entries:
            if os.path.lexists(directory / entry.name):
                raise Refused(f"`{entry.name}`, which is there already")
        for entry in entries:
            entry.rename(directory / entry.name)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, fresh: Path, names: Collection[str]) -> None:
    path = PurePosixPath(member.name)
    *parents, name = path.parts or ("",)
    if member.isdir() and (not name or (not parents and f"{name}/" in names)):
        return
    # isreg() is true of sparse files, too, which may be larger than the archive.
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.sparse is not None:
        raise Refused(f"`{path}`, which is not a regular file")
    of_run = [f"{parent}/" for parent in parents] or [name]
    if not _PLAIN.fullmatch(name) or (parents if not names else len(of_run) > 1 or of_run[0] not in names):
        raise Refused(f"`{path}`, which is not one of its files")
    target = fresh.joinpath(*parents, name)
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        raise Refused(f"`{path}` twice")
    content = tar.extractfile(member)
    assert content is not None  # of a regular file
    with content, target.open("xb") as file:
        shutil.copyfileobj(content, file)


def main(archive: str, directory: str, *names: str) -> int:
    """Unpack, and remove the archive. Gives the exit status."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    try:
        unpack(Path(archive), Path(directory), names)
        Path(archive).unlink()
    except Refused as error:
        reason = f"contains {error}; look for what changes the files of its host"
    except MemoryError:
        reason = (
            f"has headers of more than {MAX_MEMORY >> 30} GiB; look for what changes the files of its host"
        )
    except (OSError, tarfile.TarError, ValueError) as error:
        reason = f"cannot be unpacked: {error}"
    else:
        return 0
    print(f"the archive {archive} {reason}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
