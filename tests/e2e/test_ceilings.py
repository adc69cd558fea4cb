"""The playbook that measures what a host can do at most: every figure, nothing left."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.ceilings.outputs import MEASURES
from programs import FAILED, LOADPRINT, ROOT, SUCCEEDED, ended, playbook, printed, read

from .machine import Machine, look, settled

CLAIMED = {"read_iops": 3000, "send_bandwidth": "10 Gbit/s"}
# the others take a host with more than one thread for the server
EVERY = MEASURES.keys() - {"memory_read_all", "memory_write_all", "cpu_events_all"}


def play(runs: Path, statuses: Container[int] = SUCCEEDED, **variables: Any) -> str:
    """Run the playbook as a user does; `variables` are those of the role. Gives its output."""
    local = ROOT / "ansible/inventory/local.yml"
    return ended(playbook("ceilings", "-i", local, ceilings_runs_dir=str(runs), **variables), statuses)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Machine]:
    runs = tmp_path_factory.mktemp("ceilings")
    before = look()
    output = play(
        runs,
        ceilings_seconds=1,
        ceilings_repeats=2,
        ceilings_depths=[8],
        ceilings_file_size="64M",
        ceilings_claimed=CLAIMED,
    )
    return runs / "latest", output, before


def test_nothing_is_left(measured: tuple[Path, str, Machine]) -> None:
    place, _, before = measured
    assert settled(before) == []
    assert {path.name for path in place.iterdir()} == {"ceilings.json", "ceilings.outputs"}
    assert place.resolve().stat().st_mode & 0o777 == 0o700
    files = [path for path in place.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_every_figure_is_there_with_its_spread(measured: tuple[Path, str, Machine]) -> None:
    place, output, _ = measured
    document = read(place / "ceilings.json")
    result, missing = {entry["id"]: entry for entry in document["ceilings"]}, document["missing"]
    # not every distribution has perf
    assert all(ceiling["id"] == "switches" and "no perf" in ceiling["reason"] for ceiling in missing), output
    assert set(result) | {ceiling["id"] for ceiling in missing} >= EVERY
    for name, entry in result.items():
        # a host that stands still for a second may keep a tool from doing anything in one
        assert len(entry["values"]) + len(entry.get("failed", [])) == 2, name
        assert all(value > 0 for value in entry["values"]), name
        assert entry["value"] == max(entry["values"])
        assert entry["unit"] == ("B/s" if "bandwidth" in name or "memory" in name else "1/s")
        # tool and version
        assert entry["tool"].split()[0] in {"fio", "iperf3", "sockperf", "sysbench", "perf"}
        assert entry["tool"].split()[1][0].isdigit()
    assert result["read_iops"]["claimed"] == 3000
    assert result["send_bandwidth"]["claimed"] == 1.25e9
    assert result["read_iops"]["depth"] == 8
    assert result["flushes"]["latency_s"]["mean"] > 0
    assert result["send_bandwidth"]["quantity"] == "nic.veth.tx_bytes"


def test_it_says_what_it_does_and_ends_with_a_table(measured: tuple[Path, str, Machine]) -> None:
    place, output, _ = measured
    assert "ceilings: 1 of " in output
    assert "removed afterwards" in output
    table = output[output.index("unit ") :].splitlines()
    assert max(map(len, table)) <= 100, output
    shown = printed(LOADPRINT, "ceilings", place)
    assert "random reads, 16 KiB, depth 8" in shown
    assert "3,000" in shown


def test_a_disk_that_is_too_full_is_refused(tmp_path: Path) -> None:
    before = look()
    output = play(tmp_path, ceilings_parts=["storage"], ceilings_file_size="900T", statuses=FAILED)
    assert "needs twice its size" in output, output
    assert settled(before) == []
    assert not list(tmp_path.glob("*/ceilings.json"))


def test_a_claim_without_a_unit_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    output = play(tmp_path, ceilings_parts=["cpu"], ceilings_claimed={"send_bandwidth": 10}, statuses=FAILED)
    assert "ceilings_claimed.send_bandwidth" in output, output
    assert "ceilings: 1 of" not in output
