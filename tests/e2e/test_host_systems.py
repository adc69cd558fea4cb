"""Hosts with other systems than Debian 12: a campaign with the server's package, and ceilings' tools."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import ROOT, hosts_campaign
from .hosts import DEBIAN_13, NETWORKS, SUBNET, Bench, System, bench, run
from .mirror import mirror

pytestmark = pytest.mark.on_request

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
    """A server and a load with Ubuntu 24.04, a second load with Debian 13."""
    place = tmp_path_factory.mktemp("ubuntu")
    fetch_keys(place)
    with bench(place, loads=2, systems=(UBUNTU, UBUNTU, DEBIAN_13)) as made:
        yield made


@pytest.mark.parametrize(
    ("source", "version"), [("package", "server: mysql 8.0."), ("rootfs", "server: mysql 9.")]
)
def test_a_campaign_ends_with_its_table(ubuntu: Bench, source: str, version: str) -> None:
    with mirror(NETWORKS / "control", f"{SUBNET}1", ARCHIVE) as url:
        ubuntu.server.shell(
            "rm -rf /var/lib/apt/lists/* /etc/apt/sources.list.d/*;"
            f"echo 'deb {url} noble main universe' >/etc/apt/sources.list"
        )
        done = ubuntu.run(
            ubuntu.campaign(hosts_campaign.written(ubuntu), "campaign_new=true", f"mysql_source={source}")
        )
    assert done.returncode == 0, done.stdout
    assert version in done.stdout, done.stdout
    document = hosts_campaign.document(ubuntu, "b1-near-r1")
    assert document["status"] == "complete", document
    assert document["placement"]["verified"], document
    assert set(document["roles"]) == {"server", "load", "load-2"}
    names = [host.shell(". /etc/os-release; echo $PRETTY_NAME") for host in ubuntu.hosts]
    assert [name.split(".")[0] for name in names] == [
        "Ubuntu 24",
        "Ubuntu 24",
        "Debian GNU/Linux 13 (trixie)\n",
    ]
    assert not any(hosts_campaign.left_on(ubuntu).values())
