"""Downloads single Debian packages of any suite and architecture, verified by apt, into `var/machines`.

A package that is there is not downloaded again; remove the directory to get newer versions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from programs import printed

from . import CACHE

MIRROR = "http://deb.debian.org/debian"


@dataclass(frozen=True)
class Suite:
    """A Debian suite and one architecture, by Debian's names."""

    name: str
    architecture: str

    @property
    def directory(self) -> Path:
        return CACHE / f"{self.name}-{self.architecture}"

    def unpacked(self, package: str) -> Path:
        """Return the directory with the files of a package.

        A kernel's metapackage gives the package that contains the kernel. Raises AssertionError if apt
        cannot download it.
        """
        place = self.directory / package
        if not place.exists():
            self._update()
            building = place.with_suffix(".building")
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            self._apt("apt-get", "download", self._content_of(package), directory=building)
            (archive,) = building.glob("*.deb")
            subprocess.run(["dpkg-deb", "--extract", archive, building], check=True)
            archive.unlink()
            building.rename(place)
        return place

    def _content_of(self, package: str) -> str:
        """Follow a kernel's metapackage to image-VERSION, and in newer suites to binary-VERSION."""
        while package.startswith("linux-image"):
            depends = self._apt("apt-cache", "depends", "--important", package).splitlines()
            names = [line.split()[1] for line in depends if line.strip().startswith("Depends:")]
            next_ones = [name for name in names if name.startswith(("linux-image-", "linux-binary-"))]
            if not next_ones:
                break
            package = next_ones[0]
        return package

    def _update(self) -> None:
        for part in ("lists/partial", "archives/partial"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        (self.directory / "status").touch()
        (self.directory / "sources.list").write_text(f"deb {MIRROR} {self.name} main\n")
        if not any(self.directory.glob("lists/*Packages*")):
            self._apt("apt-get", "-qq", "update")

    def _apt(self, program: str, *arguments: str, directory: Path | None = None) -> str:
        """Run apt on lists of this suite, with the machine's keys and proxy."""
        options = {
            "APT::Architecture": self.architecture,
            "APT::Architectures::": self.architecture,
            "APT::Sandbox::User": "root",  # its own account may not enter this directory
            "Acquire::Languages": "none",
            "Acquire::Retries": "5",
            "Dir::State": self.directory,
            "Dir::State::lists": self.directory / "lists",
            "Dir::State::status": self.directory / "status",
            "Dir::Cache": self.directory,
            "Dir::Etc::sourcelist": self.directory / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return printed(program, *words, *arguments, cwd=directory, env=os.environ | {"LC_ALL": "C"})
