"""A whole campaign over SSH into a virtual machine with two sockets, two memory nodes and an NVMe disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e import campaigns
from programs import read

from . import debian, remote, vm_campaign
from .remote import Host
from .vm_campaign import LEFT, Campaign, wait_until_measuring, wait_while_running

DISK = "nvme0n1"
RUNS = ("b1-oltp-r1", "b1-insert-r1")  # in the order of the sides
STEP_S = 60


@dataclass(frozen=True)
class Finished:
    """A campaign that was interrupted and resumed, on a host that is still up."""

    host: Host
    campaign: Campaign
    interrupted: str
    statuses_then: list[str]
    output: str
    cells: dict[str, list[float | None]]

    def runs(self) -> list[Path]:
        """List the run directories, in the order of the sides."""
        return [campaigns.newest(self.campaign.runs) / name for name in RUNS]

    def values(self, row: str) -> list[float]:
        """Give the values of a row, by side."""
        assert row in self.cells, sorted(self.cells)
        values = [value for value in self.cells[row] if value is not None]
        assert len(values) == len(RUNS), (row, self.cells[row])
        return values


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Step the host's clock in the first run, reset the host in the second, and run the campaign again."""
    folder = tmp_path_factory.mktemp("host")
    host = remote.install(debian.root("trixie"), folder, *remote.nvme(folder / "data.img", "4G"))
    machine = vm_campaign.inventory(folder / "hosts.json", host.inventory())
    campaign = Campaign(campaigns.written(folder, "machines"), tmp_path_factory.mktemp("runs"), machine)
    with host.booted(), campaign.start() as process:
        wait_until_measuring(host, process)
        host.run(f"date -s '+{STEP_S} seconds'")
        wait_while_running(
            "the end of the first run", lambda: bool(campaigns.complete(campaign.runs)), process
        )
        wait_until_measuring(host, process)
        host.reset()
        process.wait()
    interrupted = campaign.output()
    print(interrupted)
    then = sorted(campaigns.statuses(campaign.runs).values())
    assert process.returncode != 0
    with host.booted():
        with campaign.start() as process:
            process.wait()
        print(campaign.output())
        assert process.returncode == 0
        rows = campaigns.table_rows(campaign.runs)
        yield Finished(host, campaign, interrupted, then, campaign.output(), rows)


def test_a_reset_of_the_host_fails_its_run_and_the_campaign_resumes(finished: Finished) -> None:
    assert finished.statuses_then == ["complete", "failed"], finished.interrupted
    assert set(campaigns.statuses(finished.campaign.runs).values()) == {"complete"}
    assert "machines is complete" in finished.output


def test_a_step_of_the_clock_changes_no_rate_and_is_reported(finished: Finished) -> None:
    for run, rate in zip(finished.runs(), finished.values("operations"), strict=True):
        # counted by the generator on a clock that cannot be set
        result = read(run / "load/result.json")
        assert rate == pytest.approx(result["events"] / result["seconds"], rel=0.05)
    assert all(0 < value <= 100 for value in finished.values("cpu_server_utilisation"))
    reasons = campaigns.reasons(finished.campaign.runs)
    assert re.search(rf"machine's clock was set by \+{STEP_S}(\.\d)? s during b1-", reasons)


def test_the_rows_of_the_nvme_disk(finished: Finished) -> None:
    assert f"Disk {DISK}" in finished.output
    for row in ("await", "w_await", "write_kb", "writes", "flushes"):
        values = finished.values(f"disk_{DISK}_{row}")
        assert all(value > 0 for value in values), (row, values)


def test_the_ebpf_rows(finished: Finished) -> None:
    for row in (f"disk_{DISK}_write_p50", f"disk_{DISK}_flush_p50"):
        values = finished.values(row)
        assert all(value > 0 for value in values), (row, values)
    for run in finished.runs():
        query = f"SELECT DISTINCT probe, status FROM '{run}/server/ticks.parquet' WHERE probe LIKE 'ebpf%'"
        seen = campaigns.rows(query)
        assert {"ebpf_block", "ebpf_irq", "ebpf_sched", "ebpf_switches"} <= {probe for probe, _ in seen}
        assert {status for _, status in seen} <= {"ok", "skipped"}, seen


def test_the_placement_is_by_socket(finished: Finished) -> None:
    assert (
        "placement: by socket; server on CPU 0-1 of machine, load and recorder on CPU 2-3" in finished.output
    )
    for path in finished.runs():
        run = read(path / "run.json")
        assert {name: role["cpus"] for name, role in run["roles"].items()} == {"server": "0-1", "load": "2-3"}
        placement = run["placement"]
        assert (placement["how"], placement["verified"]) == ("by socket", True), placement
        assert placement["server"]["memory"]["bound"] == "0"
        assert placement["load"]["memory"]["bound"] == "1"
        nodes = placement["server"]["memory"]["nodes"]
        # pages of files that another process read first may be on its node
        assert nodes["0"] > 0.9 * sum(nodes.values()), nodes
    assert re.search(r"server [\d.]+ % on node 0", campaigns.reasons(finished.campaign.runs))


def test_nothing_is_left_on_the_host(finished: Finished) -> None:
    left = finished.host.run(LEFT)
    assert left.split() == ["eth0", "lo"], left
