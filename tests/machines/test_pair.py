"""A campaign on two virtual machines, joined by QEMU's own network: this machine is only the control node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from ports import free_port

from . import debian, remote, vm_campaign
from .remote import Host
from .vm_campaign import LEFT, TINY, Campaign, wait_for

DELAY_S = 0.05
THREADS = 2
SERVER, LOAD = "198.18.100.1", "198.18.100.2"


@dataclass(frozen=True)
class Measured:
    """A complete campaign on hosts that are still up; its second side has a delay of the network."""

    hosts: tuple[Host, Host]
    campaign: Campaign
    output: str
    cells: dict[str, list[float | None]]

    def near_far(self, row: str) -> tuple[float, float]:
        """Give the values of a row without and with the delay."""
        near, far = self.cells[row]
        assert near is not None
        assert far is not None
        return near, far


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    port = free_port()
    ends = (f"listen=127.0.0.1:{port}", f"connect=127.0.0.1:{port}")
    with ExitStack() as stack:
        hosts = []
        for number, (end, address) in enumerate(zip(ends, (SERVER, LOAD), strict=True), 1):
            folder = tmp_path_factory.mktemp("host")
            disk = remote.nvme(folder / "data.img", "4G")
            devices = (*disk, *remote.link(number, end))
            host = remote.install(debian.root("trixie"), folder, *devices, board=remote.SMALL)
            stack.enter_context(host.booted())
            host.run(f"ip address add {address}/30 dev eth1; ip link set eth1 up")
            hosts.append(host)
        server, load = hosts
        runs = tmp_path_factory.mktemp("runs")
        inventory = vm_campaign.inventory(
            runs / "hosts.json", server.inventory() | {"server_address": SERVER}, load.inventory()
        )
        campaign = Campaign(written(runs / "campaign.yml"), runs, inventory)
        with campaign.start() as process:
            wait_for("near", lambda: campaign.statuses().get("b1-near-r1") == "complete", process)
            load.run(f"tc qdisc add dev eth1 root netem delay {DELAY_S}s")
            process.wait()
        print(campaign.output())
        assert process.returncode == 0, campaign.output()
        yield Measured((server, load), campaign, campaign.output(), campaign.cells())


def written(path: Path) -> Path:
    """Write the short campaign with two equal sides and a shorter window."""
    campaign = yaml.safe_load(TINY.read_text())
    del campaign["placement"], campaign["data"]["insert"]
    side = campaign["sides"]["oltp"] | {"threads": THREADS}
    campaign |= {
        "sides": {"near": side, "far": side},
        "reference": "near",
        "order": "listed",
        "phases": {"warmup": "2s", "measure": "30s"},
    }
    path.write_text(yaml.safe_dump(campaign, sort_keys=False))
    return path


def test_server_and_load_are_on_separate_hosts(measured: Measured) -> None:
    assert "machines is complete" in measured.output
    for name in ("b1-near-r1", "b1-far-r1"):
        run = measured.campaign.run(name)
        assert {role: each["host"] for role, each in run["roles"].items()} == {
            "server": "machine",
            "load": "load",
        }
        assert (run["placement"]["how"], run["placement"]["verified"]) == ("by host", True), run
        assert (measured.campaign.execution() / name / "load" / "clock.jsonl").stat().st_size > 0


def test_the_rows_of_the_servers_nvme_disk(measured: Measured) -> None:
    for row in ("w_await", "f_await", "writes", "flushes", "write_p50", "flush_p50"):
        assert all(value > 0 for value in measured.near_far(f"disk_nvme0n1_{row}")), row


def test_the_delay_of_the_network_is_in_the_round_trips(measured: Measured) -> None:
    near, far = measured.near_far("rtt_p50")
    # buckets are 7 % wide; a busy machine is later, never earlier
    assert far > 0.93 * DELAY_S, (near, far)
    assert far - near > 0.5 * DELAY_S, (near, far)


def test_statements_fall_as_round_trips_predict(measured: Measured) -> None:
    """Each statement is one round trip: threads / (service time + round trip, as measured)."""
    near, far = measured.near_far("statements")
    near_rtt, far_rtt = measured.near_far("rtt_p50")
    predicted = THREADS / (THREADS / near + far_rtt - near_rtt)
    # wide: the service time of both runs depends on what else this machine does
    assert 0.4 * predicted < far < 2 * predicted, (near, far, predicted)
    assert far < 0.7 * near, (near, far)


def test_nothing_is_left_on_the_hosts(measured: Measured) -> None:
    for host in measured.hosts:
        left = host.run(LEFT)
        assert left.split() == ["eth0", "eth1", "lo"], left
