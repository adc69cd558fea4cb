"""Executions: the order within blocks, the hash, what is resumed, and by one playbook at a time."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.campaign_model import Campaign
from loadprint.commands.campaign.control_node import identity_of, is_alive
from loadprint.commands.campaign.execution import Plan, close_execution, digest, open_execution, order
from loadprint.configuration.document import DocumentError
from reads import known

QUICK = Path(__file__).parents[2] / "ansible" / "campaigns" / "quick.yml"


@pytest.fixture
def campaign() -> Campaign:
    return load(QUICK)


def complete(plan: Plan, run: str, status: str = "complete") -> None:
    assert plan.directory is not None
    (plan.directory / run).mkdir()
    (plan.directory / run / "run.json").write_text(json.dumps({"status": status}), encoding="utf-8")


def test_every_block_holds_every_side_once_in_an_order_that_the_seed_repeats(
    campaign: Campaign,
) -> None:
    runs = order(campaign, 7)
    assert [run["id"] for run in runs] == [run["id"] for run in order(campaign, 7)]
    assert Counter((run["block"], run["side"]) for run in runs) == {
        (block, side): 1 for block in (1, 2, 3) for side in ("oltp", "insert")
    }
    assert [run["block"] for run in runs] == [1, 1, 2, 2, 3, 3]
    assert runs[0]["rand_seed"] == runs[1]["rand_seed"] != runs[2]["rand_seed"]


def test_seeds_reach_both_orders(campaign: Campaign) -> None:
    first = Counter(order(campaign, seed)[0]["side"] for seed in range(200))
    assert set(first) == {"oltp", "insert"}
    assert min(first.values()) > 60


def test_listed_order_is_kept(campaign: Campaign) -> None:
    listed = load(QUICK, ["order=listed"])
    assert [run["side"] for run in order(listed, 3)] == ["oltp", "insert"] * 3


def test_the_hash_covers_campaign_binaries_and_hosts(campaign: Campaign, tmp_path: Path) -> None:
    binary = tmp_path / "loadprint-load"
    binary.write_bytes(b"one")
    base = digest(campaign, [binary], ["server=a"])
    assert base == digest(load(QUICK), [binary], ["server=a"])
    assert base != digest(load(QUICK, ["repeats=4"]), [binary], ["server=a"])
    assert base != digest(campaign, [binary], ["server=b"])
    binary.write_bytes(b"two")
    assert base != digest(campaign, [binary], ["server=a"])
    with pytest.raises(DocumentError, match=r"build it: \./setup"):
        digest(campaign, [tmp_path / "absent"])


def test_the_hash_covers_the_programs_of_every_architecture(campaign: Campaign, tmp_path: Path) -> None:
    programs = [tmp_path / folder / "loadprint-load" for folder in ("release", "aarch64", "x86_64")]
    for program in programs:
        program.parent.mkdir()
        program.write_bytes(b"one")
    base = digest(campaign, programs)
    for program in programs:
        program.write_bytes(b"two")
        assert digest(campaign, programs) != base, program
        program.write_bytes(b"one")
    assert digest(campaign, programs[::-1]) == base


def test_an_unfinished_execution_goes_on_and_keeps_its_complete_runs(
    campaign: Campaign, tmp_path: Path
) -> None:
    first = open_execution(campaign, "a" * 64, tmp_path)
    assert first.directory is not None
    assert (tmp_path / "quick" / "latest").resolve() == first.directory
    done, failed, torn = first.todo[:3]
    complete(first, done)
    complete(first, failed, "failed")
    (first.directory / torn).mkdir()
    again = open_execution(campaign, "a" * 64, tmp_path)
    assert again.directory == first.directory
    assert again.document["seed"] == first.document["seed"]
    assert again.todo == first.todo[1:]
    assert not (first.directory / failed).exists()
    assert not (first.directory / torn).exists()
    assert (first.directory / done / "run.json").exists()
    assert sum(run in line for run in (failed, torn) for line in again.messages) == 2


def test_other_hashes_new_and_complete_ones_start_anew(campaign: Campaign, tmp_path: Path) -> None:
    first = open_execution(campaign, "a" * 64, tmp_path)
    other = open_execution(campaign, "b" * 64, tmp_path)
    assert first.directory is not None
    assert other.directory != first.directory
    for run in first.todo:
        complete(first, run)
    assert close_execution(first.directory).document["status"] == "complete"
    # a start within the same second would use the same name
    first.directory.rename(first.directory.with_name(f"20200101T000000Z-{'a' * 8}"))
    third = open_execution(campaign, "a" * 64, tmp_path)
    assert third.todo == [run["id"] for run in third.document["runs"]]


def test_closing_leaves_what_failed_for_the_next_start(campaign: Campaign, tmp_path: Path) -> None:
    plan = open_execution(campaign, "a" * 64, tmp_path)
    assert plan.directory is not None
    for run in plan.todo[:-1]:
        complete(plan, run)
    complete(plan, plan.todo[-1], "failed")
    assert close_execution(plan.directory).document["status"] == "unfinished"
    with pytest.raises(DocumentError, match="not an execution"):
        close_execution(tmp_path)


def test_a_torn_execution_file_is_passed_over(campaign: Campaign, tmp_path: Path) -> None:
    torn = tmp_path / "quick" / f"20200101T000000Z-{'a' * 8}"
    torn.mkdir(parents=True)
    (torn / "execution.json").write_text('{"format_version": 1, "hash', encoding="utf-8")
    plan = open_execution(campaign, "a" * 64, tmp_path)
    assert plan.directory != torn


def test_a_complete_execution_gets_more_repeats(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="no complete execution of this campaign"):
        open_execution(campaign, "a" * 64, tmp_path, more=2)
    first = open_execution(campaign, "a" * 64, tmp_path)
    assert first.directory is not None
    for run in first.todo:
        complete(first, run)
    assert close_execution(first.directory).document["status"] == "complete"
    again = open_execution(campaign, "a" * 64, tmp_path, more=2)
    assert again.directory == first.directory
    assert again.todo == [run["id"] for run in again.document["runs"][6:]]
    assert Counter(run["block"] for run in again.document["runs"]) == dict.fromkeys(range(1, 6), 2)
    assert len({run["rand_seed"] for run in again.document["runs"]}) == 5
    assert again.document["campaign"]["repeats"] == 5
    assert again.document["notes"][-1].startswith("extended from 3 to 5 repeats")
    # interrupted: the same command adds nothing before these are complete
    complete(again, again.todo[0])
    resumed = open_execution(campaign, "a" * 64, tmp_path, more=2)
    assert resumed.todo == again.todo[1:]
    assert len(resumed.document["runs"]) == 10
    for run in resumed.todo:
        complete(resumed, run)
    closed = close_execution(first.directory).document
    assert closed["status"] == "complete"
    assert closed["spent_s"] >= 0


def test_an_execution_of_a_running_playbook_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as playbook:
        open_execution(campaign, "c" * 64, tmp_path, controller=playbook.pid)
        with pytest.raises(DocumentError, match=f"process {playbook.pid} runs this execution"):
            open_execution(campaign, "c" * 64, tmp_path, controller=os.getpid())
        playbook.kill()
    resumed = open_execution(campaign, "c" * 64, tmp_path, controller=os.getpid())
    assert any("resumes" in line for line in resumed.messages)


def test_another_process_with_the_same_pid_is_not_the_playbook() -> None:
    identity = known(identity_of(os.getpid()))
    assert is_alive(identity)
    assert not is_alive(identity | {"start": identity["start"] - 1})
    assert not is_alive(identity | {"boot_id": "before the reboot"})
    assert not is_alive(None)
