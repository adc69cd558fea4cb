"""Disks in files, mounted where a host has its data: full, or as a power failure leaves them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import printed as run

SIZE = 3 << 30  # sparse


@contextmanager
def disk(place: Path, image: Path) -> Iterator[None]:
    """Mount an empty ext4 at `place`, stored in the file `image`."""
    with image.open("wb") as file:
        file.truncate(SIZE)
    run("mkfs.ext4", "-q", "-m", "0", image)
    mode = place.stat().st_mode & 0o777
    run("mount", "-o", "loop", image, place)
    place.chmod(mode)
    try:
        yield
    finally:
        run("umount", "--lazy", place)


def lose_power(place: Path, image: Path) -> None:
    """Leave on the disk at `place` only what was written to it: not what is still in memory."""
    after = image.with_suffix(".after")
    run("cp", "--sparse=always", image, after)
    run("umount", place)
    run("mount", "-o", "loop", after, place)


@contextmanager
def full(place: Path) -> Iterator[None]:
    """Leave no block free on the disk of the directory `place`."""
    ballast = place / "ballast"
    with ballast.open("wb") as file:
        offset, size = 0, os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
        while size >= os.statvfs(place).f_frsize:
            try:
                os.posix_fallocate(file.fileno(), offset, size)
                offset += size
            except OSError:
                size //= 2
    try:
        yield
    finally:
        ballast.unlink()
