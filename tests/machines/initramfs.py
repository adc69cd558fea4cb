"""Writes an initramfs: the archive (cpio) of files that a kernel unpacks as its first root directory."""

from __future__ import annotations

import re
import stat
import subprocess
from pathlib import Path

CONSOLE = (5, 1)  # the device number of /dev/console


class Initramfs:
    """The archive, in memory; kernel: Documentation/driver-api/early-userspace/buffer-format.rst."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._directories: set[Path] = set()
        for name in ("dev", "proc", "sys", "run", "tmp"):
            self._directory(Path(name))
        self._entry(Path("dev/console"), stat.S_IFCHR | 0o600, b"", CONSOLE)

    def add(self, path: str, content: bytes) -> None:
        """Add an executable file at the absolute `path`."""
        place = Path(path.lstrip("/"))
        for parent in reversed(place.parents[:-1]):
            self._directory(parent)
        self._entry(place, stat.S_IFREG | 0o755, content)

    def add_program(self, path: str, program: Path) -> None:
        """Add a program of this machine with the shared libraries that it loads, at their own paths."""
        self.add(path, program.read_bytes())
        listed = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            self.add(library, Path(library).read_bytes())

    def add_program_of(self, root: Path, path: str, program: Path) -> None:
        """Add a program for another architecture with its libraries, all of them below `root`/lib."""
        self.add(path, program.read_bytes())
        dynamic: list[str | Path] = ["readelf", "--dynamic", program]
        listed = subprocess.run(dynamic, check=True, stdout=subprocess.PIPE, text=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", listed):
            (found,) = root.glob(f"lib/*-linux-gnu/{library}")
            self.add(str(found.relative_to(root)), found.read_bytes())
        (loader,) = root.glob("lib/ld-linux-*")
        self.add(str(loader.relative_to(root)), loader.read_bytes())

    def write(self, path: Path) -> Path:
        """Write the archive, without compression: the guest would need longer for that than to read it."""
        self._entry(Path("TRAILER!!!"), 0, b"")
        path.write_bytes(b"".join(self._parts))
        return path

    def _directory(self, place: Path) -> None:
        if place not in self._directories:
            self._directories.add(place)
            self._entry(place, stat.S_IFDIR | 0o755, b"")

    def _entry(self, place: Path, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        name = str(place).encode() + b"\0"
        number = len(self._parts)
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
        header = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name
        self._parts.append(_padded(header) + _padded(content))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
