"""Breaks a campaign on two hosts as in practice: it continues or resumes, and no host keeps anything.

The tests share the hosts and one execution: each start resumes what the fault before it left.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest
from programs import FAILED, wait_for
from programs import printed as call

from . import campaigns
from .disks import disk, full, lose_power
from .hosts import SUBNET, Bench, Host, bench

REPEATS = 8
OUTAGE_S = 20.0
LEASE_S = 60.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("faults")
    with bench(place) as made, ExitStack() as disks:
        disks.enter_context(disk(made.runs, place / "control.img"))
        for host in made.hosts:
            host.kill()
            disks.enter_context(disk(host.data, place / f"{host.name}.img"))
            host.start()
        yield made
        for host in made.hosts:
            host.kill()


@pytest.fixture(scope="module")
def campaign(pair: Bench) -> Path:
    # A load whose server does not answer ends soon.
    options = {"tables": 1, "table-size": 5000, "rand-type": "uniform", "forced-shutdown": 10}
    return pair.written(repeats=REPEATS, options=options)


@pytest.fixture(autouse=True)
def alone(pair: Bench) -> Iterator[None]:
    """End the playbook of a test that failed."""
    yield
    if pair.process is not None and pair.process.poll() is None:
        stop(pair.process)


def started(pair: Bench, campaign: Path, *settings: str) -> tuple[Popen[str], str]:
    """Start the campaign, or resume it, and wait for a measure phase; give the run."""
    since_ns = time.time_ns()
    process = pair.start(pair.campaign(campaign, *settings))
    run = wait_for(
        "a measure phase",
        lambda: campaigns.measuring(pair.loads[0].data, since_ns) or (process.poll() is not None and "ended"),
    )
    assert run != "ended", pair.output()
    return process, str(run)


def ended(pair: Bench, process: Popen[str]) -> str:
    wait_for("the end of the playbook", lambda: process.poll() is not None)
    return pair.output()


def nothing_left(pair: Bench, within: float = 3 * LEASE_S) -> None:
    wait_for("empty hosts", lambda: not pair.has_left(), within)


def stop(process: Popen[str]) -> None:
    """End the playbook with a signal that it cannot handle, as when its machine fails."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_killed_playbook_leaves_nothing_and_the_next_start_takes_over_within_the_lease(
    pair: Bench, campaign: Path
) -> None:
    # longer than the second start may take on a busy machine
    process, broken = started(pair, campaign, "supervisor_lease_s=900")
    stop(process)
    assert pair.left()["db1"]
    process, again = started(pair, campaign)
    output = pair.output()
    assert again == broken
    assert "db1: ended the supervisor of an earlier start of this execution" in output, output
    assert f"{broken} is incomplete and runs again" in output
    stop(process)
    nothing_left(pair)


def test_a_second_playbook_does_not_end_the_first(pair: Bench, campaign: Path) -> None:
    process, _ = started(pair, campaign)
    second = pair.run(pair.campaign(campaign), statuses=FAILED)
    assert "runs this execution; wait until it has ended" in second, second
    assert process.poll() is None
    wait_for("a complete run", lambda: campaigns.complete(pair.runs))
    stop(process)


def test_an_outage_of_ssh_costs_one_run_at_most(pair: Bench, campaign: Path) -> None:
    before = campaigns.complete(pair.runs)
    process, _ = started(pair, campaign)
    pair.link("control", up=False)
    time.sleep(OUTAGE_S)
    pair.link("control", up=True)
    wait_for(
        "two more complete runs",
        lambda: len(campaigns.complete(pair.runs) - before) >= 2 or process.poll() is not None,
    )
    assert process.poll() is None, pair.output()
    failed = [run for run, status in campaigns.statuses(pair.runs).items() if status == "failed"]
    assert len(failed) <= 1, pair.output()
    stop(process)


@pytest.mark.parametrize("name", ["load1", "db1"])
def test_a_host_that_dies_fails_its_run_and_the_table_is_printed(
    pair: Bench, campaign: Path, name: str
) -> None:
    [host] = [host for host in pair.hosts if host.name == name]
    process, broken = started(pair, campaign)
    kept = campaigns.complete(pair.runs)
    host.kill()
    pair.link(name, up=False)
    output = ended(pair, process)
    pair.link(name, up=True)
    host.start()
    assert process.returncode != 0
    run = campaigns.document(pair.runs, broken)
    assert run["status"] == "failed", output
    assert f"{name} is unreachable: " in output, output
    assert kept <= campaigns.complete(pair.runs)
    if host is pair.server:
        # what the load's host recorded was fetched
        assert (campaigns.newest(pair.runs) / broken / "load/ticks.parquet").exists(), output
    else:
        assert run["reason"].startswith("load1 is unreachable: "), run["reason"]
        assert "the other runs are left to the next start" in output, output
        assert "the same command runs them again" in output
    nothing_left(pair)


def test_a_full_disk_of_the_load_fails_its_run_and_is_named(pair: Bench, campaign: Path) -> None:
    folder = pair.loads[0].data / "executions"
    process, broken = started(pair, campaign)
    stop(process)
    nothing_left(pair)
    small = "mount -t tmpfs -o size=64k tmpfs"
    pair.loads[0].shell(
        f"{small} /var/lib/loadprint/executions/$(ls {Path('/var/lib/loadprint/executions')} | tail -1)"
    )
    assert folder.exists()
    process = pair.start(pair.campaign(campaign))
    output = ended(pair, process)
    pair.loads[0].shell("umount /var/lib/loadprint/executions/*")
    assert process.returncode != 0
    assert "No space left on device" in output, output
    assert "load1" in output
    statuses = campaigns.statuses(pair.runs)
    assert statuses[broken] == "failed", statuses
    assert set(statuses.values()) <= {"complete", "failed"}, statuses
    assert len(statuses) == REPEATS, "every run was tried"
    nothing_left(pair)


def test_a_full_disk_of_the_server_fails_its_run_and_is_named(pair: Bench, campaign: Path) -> None:
    """The server waits for space; the load ends, and the archive of the recording is made in memory."""
    process, broken = started(pair, campaign)
    with full(pair.server.data):
        wait_for(
            "the end of the run",
            lambda: campaigns.statuses(pair.runs)[broken] != "running" or process.poll() is not None,
        )
    stop(process)
    run = campaigns.document(pair.runs, broken)
    assert run["status"] == "failed", pair.output()
    assert "first error of the server on db1: " in run["reason"], run["reason"]
    assert "No space left on device" in run["reason"], run["reason"]
    assert "; free some space there; error log: " in run["reason"], run["reason"]
    # The recorder of the server's host had no space for its tables.
    for file in ("server/error.log", "server/journal", "load/ticks.parquet"):
        assert (campaigns.newest(pair.runs) / broken / file).is_file(), pair.output()
    nothing_left(pair)


def test_a_full_disk_of_the_control_node_leaves_the_other_runs(pair: Bench, campaign: Path) -> None:
    process, broken = started(pair, campaign)
    kept = campaigns.complete(pair.runs)
    with full(pair.runs):
        output = ended(pair, process)
    assert process.returncode == 2, output
    assert f"{broken} failed: " in output, output
    assert "localhost: Write run.json: " in output, output
    assert "No space left on device; free some space there; the same command resumes" in output, output
    assert kept == campaigns.complete(pair.runs)
    assert f"{REPEATS - len(kept)} of {REPEATS} runs are not complete" in output, output
    assert "Traceback" not in output, output
    nothing_left(pair)


def test_an_outage_of_ssh_for_good_leaves_nothing_on_a_host_that_lives(pair: Bench, campaign: Path) -> None:
    """The host answers its server, and not the control node: its lease ends everything."""
    process, broken = started(pair, campaign)
    kept = campaigns.complete(pair.runs)
    route = ("blackhole", f"{SUBNET}1/32")
    call("ip", "-n", "load1", "route", "add", *route)
    try:
        output = ended(pair, process)
        assert pair.loads[0].sshd is not None
        assert pair.loads[0].sshd.poll() is None
        nothing_left(pair)
    finally:
        call("ip", "-n", "load1", "route", "delete", *route)
    assert process.returncode == 2, output
    reason = campaigns.document(pair.runs, broken)["reason"]
    assert reason.startswith("load1 is unreachable: "), reason
    assert "the same command runs them again" in output
    assert kept == campaigns.complete(pair.runs)
    assert (campaigns.newest(pair.runs) / broken / "server" / "ticks.parquet").exists(), output


def test_a_rebooted_control_node_resumes_with_what_is_on_its_disk(pair: Bench, campaign: Path) -> None:
    process, _ = started(pair, campaign)
    kept = campaigns.complete(pair.runs)
    wait_for("another run", lambda: campaigns.complete(pair.runs) - kept or process.poll() is not None)
    kept = campaigns.complete(pair.runs)
    Host("control", f"{SUBNET}1", pair.place).kill()
    process.wait()
    lose_power(pair.runs, pair.place / "control.img")
    for name in ("ansible", "cp"):  # temporary files, and the masters of the connections
        shutil.rmtree(pair.place / name)
    assert campaigns.complete(pair.runs) == kept
    for run in kept:
        files = [path for path in (campaigns.newest(pair.runs) / run).rglob("*.*") if path.is_file()]
        assert not [path for path in files if not path.stat().st_size]
    nothing_left(pair)
    process, _ = started(pair, campaign)
    assert f"{len(kept)} of {REPEATS} runs are complete" in pair.output(), pair.output()
    stop(process)
    nothing_left(pair)


def test_the_next_start_completes_the_execution(pair: Bench, campaign: Path) -> None:
    pair.run(pair.campaign(campaign))
    assert len(campaigns.complete(pair.runs)) == REPEATS
    assert len(list(pair.runs.glob("*/2*"))) == 1, "it started a new execution"
    nothing_left(pair, 10)
    for host in pair.hosts:
        assert host.shell("ls /var/lib/loadprint/executions") == ""
