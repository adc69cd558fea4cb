"""One server and three load hosts: they start together, share the threads, and one that dies is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import campaigns, hosts_campaign
from .hosts import Bench, bench

THREADS = 7
ROLES = ("load", "load-2", "load-3")
# 100 ms on a host with a free CPU; the tests' machine has fewer CPUs than hosts.
SPREAD_NS = 500_000_000
LONG_S = 600  # a measure phase that the test always ends before its time


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("three"), loads=3) as made:
        yield made


@pytest.fixture(scope="module")
def measured(three: Bench) -> tuple[Path, str]:
    """One run, and the output."""
    campaign = hosts_campaign.written(three, threads=THREADS)
    done = three.run(three.campaign(campaign))
    assert done.returncode == 0, done.stdout
    return hosts_campaign.newest(three) / "b1-near-r1", done.stdout


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_they_start_together(measured: tuple[Path, str]) -> None:
    run, _ = measured
    # the hosts of this test have one kernel, and thereby one monotonic clock
    begun = [lines(run / role / "phases.jsonl") for role in ROLES]
    starts = [
        next(line["monotonic_ns"] for line in each if (line["phase"], line["event"]) == ("warmup", "begin"))
        for each in begun
    ]
    print(f"start of the warm-up: spread {(max(starts) - min(starts)) / 1e6:.1f} ms")
    assert max(starts) - min(starts) < SPREAD_NS, starts


def test_they_share_the_threads_and_each_has_a_recording(measured: tuple[Path, str]) -> None:
    run, _ = measured
    results = [json.loads((run / role / "result.json").read_text()) for role in ROLES]
    assert [result["part"] for result in results] == [{"number": number, "of": 3} for number in (1, 2, 3)]
    assert sum(result["threads"] for result in results) == THREADS
    assert all(result["events"] > 0 for result in results)
    document = json.loads((run / "run.json").read_text())
    assert document["parameters"]["threads"] == THREADS
    assert {role: document["roles"][role]["host"] for role in ROLES} == {
        "load": "load1",
        "load-2": "load2",
        "load-3": "load3",
    }
    manifest = json.loads((run / "manifest.json").read_text())["files"]
    assert {f"{role}/cpu.parquet" for role in ROLES} <= manifest.keys()
    assert set(document["placement"]) >= {"server", *ROLES}
    assert document["placement"]["verified"]


def test_one_that_dies_fails_the_run_and_is_named(three: Bench, measured: tuple[Path, str]) -> None:
    assert measured
    campaign = hosts_campaign.written(three, threads=THREADS, repeats=2)
    campaign.write_text(campaign.read_text().replace("measure: 4s", f"measure: {LONG_S}s"))
    process = three.start(three.campaign(campaign))
    run = campaigns.wait_for("a measure phase", lambda: hosts_campaign.measuring(three, 2))
    three.loads[1].kill()
    three.link("load2", up=False)
    process.wait()
    document = hosts_campaign.document(three, run)
    assert document["status"] == "failed", three.output()
    assert document["reason"].startswith("load2 is unreachable"), document["reason"]
    # the run does not wait for the end of the first load
    phases = lines(hosts_campaign.newest(three) / run / "load/phases.jsonl")
    [begin] = [each for each in phases if (each["phase"], each["event"]) == ("measure", "begin")]
    assert document["ended_realtime_ns"] - begin["realtime_ns"] < LONG_S * 1e9
    # what the others recorded is kept
    for role in ("server", "load", "load-3"):
        assert (hosts_campaign.newest(three) / run / role / "cpu.parquet").exists(), role
    campaigns.wait_for("empty hosts", lambda: not any(hosts_campaign.left_on(three).values()), 180)
