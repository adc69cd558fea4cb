"""A whole campaign over SSH into a virtual machine with two sockets, two memory nodes and an NVMe disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from . import ROOT, debian, remote
from .machine import PATIENCE_S
from .remote import Host

TINY = Path(__file__).with_name("tiny.yml")
LOADPRINT = ROOT / ".venv/bin/loadprint"
DISK = "nvme0n1"
RUNS = ("b1-oltp-r1", "b1-insert-r1")  # in the order of the sides
# For hosts that are twenty times slower than hardware, and slower still if this machine is busy.
SLOW = (
    "server_start_timeout=1800",
    "server_stop_timeout=600",
    "recorder_grace=900",
    "supervisor_lease_s=900",
)
STEP_S = 60
OUTPUT = "output"
# Prints "measure begin" last while a load measures.
LOOK = "tail -qn 1 /var/lib/loadprint/executions/*/b*/load/phases.jsonl 2>/dev/null || true"


@dataclass(frozen=True)
class Finished:
    """A campaign that was interrupted and resumed, on a host that is still up."""

    host: Host
    execution: Path
    interrupted: str
    statuses_then: list[str]
    output: str
    table: dict[str, Any]

    def runs(self) -> list[Path]:
        """List the run directories, in the order of the sides."""
        return [self.execution / name for name in RUNS]

    def cells(self, row: str) -> list[float]:
        """Give the values of a row, by side."""
        rows = {each["key"]: each for group in self.table["groups"] for each in group["rows"]}
        assert row in rows, sorted(rows)
        values = [cell["value"] for cell in rows[row]["cells"]]
        assert None not in values, (row, values)
        return values


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Step the host's clock in the first run, reset the host in the second, and run the campaign again."""
    folder = tmp_path_factory.mktemp("host")
    host = remote.install(debian.root("trixie"), folder, *remote.nvme(folder / "data.img", "4G"))
    runs = tmp_path_factory.mktemp("runs")
    with host.booted(), characterizing(host, runs) as campaign:
        wait_until_measuring(host, campaign)
        host.run(f"date -s '+{STEP_S} seconds'")
        wait_for("the end of the first run", lambda: "complete" in statuses(runs).values(), campaign)
        wait_until_measuring(host, campaign)
        host.reset()
        campaign.wait()
    interrupted = (runs / OUTPUT).read_text()
    print(interrupted)
    then = sorted(statuses(runs).values())
    assert campaign.returncode != 0
    with host.booted():
        with characterizing(host, runs) as campaign:
            campaign.wait()
        output = (runs / OUTPUT).read_text()
        print(output)
        assert campaign.returncode == 0
        (execution,) = runs.glob("machines/2*")
        yield Finished(host, execution, interrupted, then, output, compared(execution))


def test_a_reset_of_the_host_fails_its_run_and_the_campaign_resumes(finished: Finished) -> None:
    assert finished.statuses_then == ["complete", "failed"], finished.interrupted
    assert set(statuses(finished.execution.parents[1]).values()) == {"complete"}
    assert "machines is complete" in finished.output


def test_a_step_of_the_clock_changes_no_rate_and_is_reported(finished: Finished) -> None:
    for run, rate in zip(finished.runs(), finished.cells("operations"), strict=True):
        # counted by the generator on a clock that cannot be set
        result = json.loads((run / "load/result.json").read_text())
        assert rate == pytest.approx(result["events"] / result["seconds"], rel=0.05)
    assert all(0 < value <= 100 for value in finished.cells("cpu_server_utilisation"))
    assert re.search(rf"machine's clock was set by \+{STEP_S}(\.\d)? s during b1-", finished.output)


def test_the_rows_of_the_nvme_disk(finished: Finished) -> None:
    assert f"Disk {DISK}" in finished.output
    for row in ("await", "w_await", "write_kb", "writes", "flushes"):
        values = finished.cells(f"disk_{DISK}_{row}")
        assert all(value > 0 for value in values), (row, values)


def test_the_ebpf_rows(finished: Finished) -> None:
    for row in (f"disk_{DISK}_write_p50", f"disk_{DISK}_flush_p50"):
        values = finished.cells(row)
        assert all(value > 0 for value in values), (row, values)
    for run in finished.runs():
        query = f"SELECT DISTINCT probe, status FROM '{run}/server/ticks.parquet' WHERE probe LIKE 'ebpf%'"
        seen = duckdb.execute(query).fetchall()
        assert {"ebpf_block", "ebpf_irq", "ebpf_sched", "ebpf_switches"} <= {probe for probe, _ in seen}
        assert {status for _, status in seen} <= {"ok", "skipped"}, seen


def test_the_smart_fields_of_the_controller(finished: Finished) -> None:
    for run in finished.runs():
        query = (
            "SELECT controller, max(temperature), max(percentage_used), min(host_writes), max(host_writes)"
            f" FROM '{run}/server/nvme.parquet' GROUP BY controller"
        )
        ((controller, kelvin, used, first, last),) = duckdb.execute(query).fetchall()
        # QEMU's controller reports 323 K and counts the commands
        assert (controller, kelvin, used) == ("nvme0", 323, 0)
        assert last > first > 0


def test_the_placement_is_by_socket(finished: Finished) -> None:
    assert (
        "placement: by socket; server on CPU 0-1 of machine, load and recorder on CPU 2-3" in finished.output
    )
    for path in finished.runs():
        run = json.loads((path / "run.json").read_text())
        assert {name: role["cpus"] for name, role in run["roles"].items()} == {"server": "0-1", "load": "2-3"}
        placement = run["placement"]
        assert (placement["how"], placement["verified"]) == ("by socket", True), placement
        assert placement["server"]["memory"]["bound"] == "0"
        assert placement["load"]["memory"]["bound"] == "1"
        nodes = placement["server"]["memory"]["nodes"]
        # pages of files that another process read first may be on its node
        assert nodes["0"] > 0.9 * sum(nodes.values()), nodes
    assert re.search(r"server [\d.]+ % on node 0", finished.output)


def test_nothing_is_left_on_the_host(finished: Finished) -> None:
    left = finished.host.run(
        "pgrep -a 'loadprint|mariadbd' || true; grep -E 'loadprint/|/media' /proc/mounts || true;"
        " ls -d /dev/shm/loadprint/* /var/lib/loadprint/executions/*/* 2>/dev/null || true;"
        " ip netns; ls /sys/class/net"
    )
    assert left.split() == ["eth0", "lo"], left


def characterizing(host: Host, runs: Path) -> subprocess.Popen[bytes]:
    """Start the campaign with the machine as server and load, its output in `runs`/`OUTPUT`."""
    inventory = host.folder / "hosts.json"
    group = {"hosts": {"machine": host.inventory()}}
    inventory.write_text(json.dumps({"all": {"children": {"server": group, "load": group}}}))
    settings = (f"campaign_file={TINY}", f"campaign_runs_dir={runs}", *SLOW)
    with (runs / OUTPUT).open("wb") as output:
        return subprocess.Popen(
            [ROOT / "characterize", "-i", inventory, *(word for each in settings for word in ("-e", each))],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"COLUMNS": "100"},
        )


def wait_until_measuring(host: Host, campaign: subprocess.Popen[bytes]) -> None:
    """Wait for the window of a run."""

    def measuring() -> bool:
        lines = [json.loads(line) for line in host.run(LOOK).splitlines()]
        return any((line["phase"], line["event"]) == ("measure", "begin") for line in lines)

    wait_for("the window of a run", measuring, campaign)


def wait_for(what: str, condition: Callable[[], bool], campaign: subprocess.Popen[bytes]) -> None:
    """Poll until the condition is true; the campaign must not end before."""
    deadline = time.monotonic() + 4 * PATIENCE_S
    while not condition():
        assert campaign.poll() is None, f"{what}: the campaign ended before"
        assert time.monotonic() < deadline, f"{what}: not in time"
        time.sleep(3)


def statuses(runs: Path) -> dict[str, str]:
    """Give {run: status} of the only execution."""
    files = runs.glob("machines/2*/b*/run.json")
    return {path.parent.name: json.loads(path.read_text())["status"] for path in files}


def compared(execution: Path) -> dict[str, Any]:
    """Give the table of an execution with all its rows."""
    done = subprocess.run(
        [LOADPRINT, "compare", execution, "--all", "--format", "json"], stdout=subprocess.PIPE, check=True
    )
    table: dict[str, Any] = json.loads(done.stdout)
    return table
