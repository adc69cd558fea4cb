"""A whole campaign over SSH into a virtual machine with two sockets, two memory nodes and an NVMe disk."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from . import ROOT, debian, machine
from .machine import Machine

TINY = Path(__file__).with_name("tiny.yml")
LOADPRINT = ROOT / ".venv/bin/loadprint"
DISK = "nvme0n1"
# Timeouts of the product for hosts that are twenty times slower than hardware, or more while this machine is busy.
SLOW = ("server_start_timeout=1800", "server_stop_timeout=600", "recorder_grace=900")


@dataclass(frozen=True)
class Finished:
    """A campaign that has ended: its output, its execution, and its table as JSON."""

    output: str
    execution: Path
    table: dict[str, Any]

    def runs(self) -> list[Path]:
        """List the run directories."""
        return sorted(self.execution.glob("b*"))

    def cells(self, row: str) -> list[float | None]:
        """Give the values of a row, by side."""
        found = [each for group in self.table["groups"] for each in group["rows"] if each["key"] == row]
        assert found, (
            f"no row {row} in {[each['key'] for group in self.table['groups'] for each in group['rows']]}"
        )
        return [cell["value"] for cell in found[0]["cells"]]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A server and load in one machine, with the data on an NVMe disk."""
    folder = tmp_path_factory.mktemp("machine")
    disk = machine.nvme(folder / "data.img", "4G")
    with machine.started(debian.root("trixie"), folder, *disk) as booted:
        yield booted


def characterize(host: Machine, runs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the campaign with the machine as server and load."""
    inventory = host.folder / "hosts.json"
    group = {"hosts": {"machine": host.inventory()}}
    inventory.write_text(json.dumps({"all": {"children": {"server": group, "load": group}}}))
    settings = (f"campaign_file={TINY}", f"campaign_runs_dir={runs}", *SLOW, *arguments)
    return subprocess.run(
        [ROOT / "characterize", "-i", inventory, *(word for each in settings for word in ("-e", each))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "100"},
    )


@pytest.fixture(scope="module")
def finished(host: Machine, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    runs = tmp_path_factory.mktemp("runs")
    done = characterize(host, runs)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    execution = next(runs.glob("machines/2*"))
    table = subprocess.run(
        [LOADPRINT, "compare", execution, "--all", "--format", "json"], capture_output=True, check=True
    )
    return Finished(done.stdout, execution, json.loads(table.stdout))


def test_every_run_is_complete(finished: Finished) -> None:
    statuses = {path.name: json.loads((path / "run.json").read_text())["status"] for path in finished.runs()}
    assert list(statuses.values()) == ["complete", "complete"], finished.output
    assert "machines is complete" in finished.output


def test_the_rows_of_the_nvme_disk(finished: Finished) -> None:
    assert f"Disk {DISK}" in finished.output
    for row in ("await", "w_await", "write_kb", "writes", "flushes"):
        cells = finished.cells(f"disk_{DISK}_{row}")
        assert all(cell is not None and cell > 0 for cell in cells), (row, cells)


def test_the_ebpf_rows(finished: Finished) -> None:
    for row in (f"disk_{DISK}_write_p50", f"disk_{DISK}_flush_p50", "interrupts_server"):
        cells = finished.cells(row)
        assert all(cell is not None and cell > 0 for cell in cells), (row, cells)
    for run in finished.runs():
        query = f"SELECT probe, status FROM '{run}/server/ticks.parquet' WHERE probe LIKE 'ebpf%'"
        statuses = set(duckdb.execute(query).fetchall())
        assert {"ebpf_block", "ebpf_irq", "ebpf_sched", "ebpf_switches"} <= {probe for probe, _ in statuses}
        assert {status for _, status in statuses} <= {"ok", "skipped"}, statuses


def test_the_smart_fields_of_the_controller(finished: Finished) -> None:
    for run in finished.runs():
        query = (
            "SELECT controller, temperature, percentage_used, available_spare, "
            f"max(host_writes) - min(host_writes) FROM '{run}/server/nvme.parquet' GROUP BY ALL"
        )
        ((controller, kelvin, used, spare, writes),) = duckdb.execute(query).fetchall()
        # the values that QEMU's controller reports (hw/nvme/ctrl.c)
        assert (controller, kelvin, used, spare) == ("nvme0", 323, 0, 100)
        assert writes > 0


def test_the_placement_is_by_socket(finished: Finished) -> None:
    assert (
        "placement: by socket; server on CPU 0-1 of machine, load and recorder on CPU 2-3" in finished.output
    )
    for path in finished.runs():
        run = json.loads((path / "run.json").read_text())
        assert {name: role["cpus"] for name, role in run["roles"].items()} == {"server": "0-1", "load": "2-3"}
        placement = run["placement"]
        assert (placement["how"], placement["verified"]) == ("by socket", True), placement


def test_nothing_is_left_on_the_host(host: Machine, finished: Finished) -> None:
    assert finished.execution.is_dir()
    left = host.run(
        "pgrep -af 'loadprint|mariadbd' || true; grep -E 'loadprint/|/media' /proc/mounts || true;"
        " ls -d /dev/shm/loadprint/* /var/lib/loadprint/executions/*/* 2>/dev/null || true;"
        " ip netns; ls /sys/class/net"
    )
    assert left.split() == ["eth0", "lo"], left
