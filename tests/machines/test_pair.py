"""A campaign on two virtual machines, joined by QEMU's own network: this machine is only the control node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from e2e import campaigns
from ports import free_port

from . import debian, remote, vm_campaign
from .remote import Host
from .vm_campaign import LEFT, Campaign

SERVER, LOAD = "198.18.100.1", "198.18.100.2"


@dataclass(frozen=True)
class Measured:
    """A complete campaign of two equal sides on hosts that are still up."""

    hosts: tuple[Host, Host]
    campaign: Campaign
    output: str
    cells: dict[str, list[float | None]]


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
        document = campaigns.known("machines")
        side, data = (document[key]["oltp"] for key in ("sides", "data"))
        file = campaigns.written(
            runs,
            "machines",
            sides={"one": side, "two": side},
            data={"oltp": data},
            reference="one",
            order="listed",
            phases={"warmup": "2s", "measure": "30s"},
        )
        campaign = Campaign(file, runs, inventory)
        with campaign.start() as process:
            process.wait()
        print(campaign.output())
        assert process.returncode == 0, campaign.output()
        yield Measured((server, load), campaign, campaign.output(), campaigns.table_rows(campaign.runs))


def test_server_and_load_are_on_separate_hosts(measured: Measured) -> None:
    assert "machines is complete" in measured.output
    for name in ("b1-one-r1", "b1-two-r1"):
        run = campaigns.document(measured.campaign.runs, name)
        assert {role: each["host"] for role, each in run["roles"].items()} == {
            "server": "machine",
            "load": "load",
        }
        assert (run["placement"]["how"], run["placement"]["verified"]) == ("by host", True), run
        assert (campaigns.newest(measured.campaign.runs) / name / "load/clock.jsonl").stat().st_size > 0


def test_the_rows_of_the_servers_nvme_disk(measured: Measured) -> None:
    for row in ("w_await", "f_await", "writes", "flushes", "write_p50", "flush_p50"):
        assert all(value and value > 0 for value in measured.cells[f"disk_nvme0n1_{row}"]), row


def test_nothing_is_left_on_the_hosts(measured: Measured) -> None:
    for host in measured.hosts:
        left = host.run(LEFT)
        assert left.split() == ["eth0", "eth1", "lo"], left
