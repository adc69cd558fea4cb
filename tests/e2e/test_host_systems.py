"""Hosts with other systems than Debian 12: a campaign with the server's package, and ceilings' tools."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from programs import FAILED, ROOT
from programs import printed as run

from . import campaigns
from .hosts import DEBIAN_13, Bench, System, bench
from .mirror import packages
from .tarballs import MYSQL_80, tarball

CACHE = "/var/lib/loadprint/servers"  # that of the other tests is read-only
ARCHIVE = "http://archive.ubuntu.com/ubuntu"
KEYRING = "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
KEYS = ROOT / "var/hosts/ubuntu-keyring"
UBUNTU = System(
    "ubuntu-24.04",
    "noble",
    (f"--keyring={KEYS}/usr/share/keyrings/ubuntu-archive-keyring.gpg", "--components=main,universe"),
    # debootstrap of Debian 12 does not know the suite; all of Ubuntu's have this script
    (ARCHIVE, "/usr/share/debootstrap/scripts/gutsy"),
)


def fetch_keys(place: Path) -> None:
    """Unpack the keys of Ubuntu's archive, which Debian 12 does not have."""
    if not KEYS.exists():
        content = urllib.request.urlopen(f"{ARCHIVE}/{KEYRING}").read()
        assert hashlib.sha256(content).hexdigest() == SHA256
        (place / "keys.deb").write_bytes(content)
        run("dpkg-deb", "-x", place / "keys.deb", KEYS)


@pytest.fixture(scope="module")
def ubuntu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server with Ubuntu 24.04, a load with Debian 13."""
    place = tmp_path_factory.mktemp("ubuntu")
    fetch_keys(place)
    with bench(place, systems=(UBUNTU, DEBIAN_13)) as made:
        yield made


def packages_of_ubuntu(ubuntu: Bench) -> AbstractContextManager[None]:
    return packages(ubuntu.server, real=ARCHIVE, suite="noble main universe")


@pytest.mark.parametrize(
    ("source", "version"), [("package", "server: mysql 8.0."), ("rootfs", "server: mysql 9.")]
)
def test_a_campaign_ends_with_its_table(ubuntu: Bench, source: str, version: str) -> None:
    with packages_of_ubuntu(ubuntu):
        output = ubuntu.run(ubuntu.campaign(ubuntu.written(), "campaign_new=true", f"mysql_source={source}"))
    assert version in output, output
    document = campaigns.document(ubuntu.runs, "b1-near-r1")
    assert document["status"] == "complete", document
    assert document["placement"]["verified"], document
    assert set(document["roles"]) == {"server", "load"}
    names = [host.shell(". /etc/os-release; echo $PRETTY_NAME") for host in ubuntu.hosts]
    assert [name.split(".")[0] for name in names] == [
        "Ubuntu 24",
        "Debian GNU/Linux 13 (trixie)\n",
    ]
    assert not any(ubuntu.left().values())


def test_a_tarball_runs_when_the_library_that_it_needs_is_there(ubuntu: Bench) -> None:
    """Ubuntu 24.04 has libaio under another name; the message names the package and the link."""
    settings = ["mysql_source=tarball", f"server_tarball={tarball(MYSQL_80)}", f"server_cache_dir={CACHE}"]
    words = ubuntu.campaign(ubuntu.written(), "campaign_new=true", *settings)
    refused = ubuntu.run(words, statuses=FAILED)
    [line] = [line for line in refused.splitlines() if "libaio.so.1 of package" in line]
    assert "libaio1t64, and a link libaio.so.1 to libaio.so.1t64" in line, line
    with packages_of_ubuntu(ubuntu):
        ubuntu.server.shell(
            "apt-get -qq update && apt-get -qq install -y libaio1t64 libnuma1 >/dev/null;"
            "cd /usr/lib/x86_64-linux-gnu && ln -s libaio.so.1t64 libaio.so.1"
        )
    output = ubuntu.run(words)
    assert "server: mysql 8.0.12" in output, output
    assert not any(ubuntu.left().values())
