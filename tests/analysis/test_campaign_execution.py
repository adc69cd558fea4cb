"""Executions: order within blocks, hash, server, what is resumed, and by one playbook at a time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from loadprint.commands.campaign import equal_load
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.campaign_model import Campaign
from loadprint.commands.campaign.control_node import identity_of, is_alive
from loadprint.commands.campaign.execution import (
    Plan,
    close_execution,
    digest,
    open_execution,
    order,
    plan,
    use_server,
)
from loadprint.commands.campaign.server_identity import MAIN, declared, of_sides
from loadprint.configuration.document import DocumentError
from reads import known

QUICK = Path(__file__).parents[2] / "ansible" / "campaigns" / "quick.yml"


def quick(*overrides: str) -> Campaign:
    """Two sides whose runs are one after the other."""
    return load(QUICK, overrides, scales=["sequential"])


@pytest.fixture
def campaign() -> Campaign:
    return quick()


def complete(plan: Plan, *runs: str, status: str = "complete") -> Path:
    """Complete some runs of an execution, all if none is named; returns its directory."""
    directory = known(plan.directory)
    for run in runs or plan.todo:
        (directory / run).mkdir()
        (directory / run / "run.json").write_text(json.dumps({"status": status}), encoding="utf-8")
    return directory


@pytest.mark.parametrize("name", ["{run}/run.json", "execution.json"])
def test_a_pipe_in_place_of_a_file_does_not_block(campaign: Campaign, tmp_path: Path, name: str) -> None:
    plan = open_execution(campaign, "a" * 64, tmp_path)
    directory, run = known(plan.directory), plan.todo[0]
    path = directory / name.format(run=run)
    (directory / run).mkdir()
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    if name == "execution.json":
        reason = r"not an execution \(no readable execution.json\)"
        with pytest.raises(DocumentError, match=reason):
            close_execution(directory)
        with pytest.raises(DocumentError, match=reason):
            equal_load.resolve(directory, run)
    else:
        assert run in close_execution(directory).todo


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
    listed = quick("order=listed")
    assert [run["side"] for run in order(listed, 3)] == ["oltp", "insert"] * 3


def test_a_rotated_order_has_each_side_early_and_late() -> None:
    rotated = load(QUICK.with_name("insert-scaling.yml"))
    runs, count = order(rotated, 3), len(rotated.columns)
    assert [run["side"] for run in runs] != [run["side"] for run in order(rotated, 4)]
    for side in rotated.columns:
        places = [place % count for place, run in enumerate(runs) if run["side"] == side]
        assert len(places) == 3
        assert max(places) - min(places) > 0.6 * count


def test_the_hash_covers_campaign_binaries_and_hosts(campaign: Campaign, tmp_path: Path) -> None:
    binary = tmp_path / "loadprint-load"
    binary.write_bytes(b"one")
    base = digest(campaign, [binary], ["server=a"])
    assert base == digest(quick(), [binary], ["server=a"])
    assert base != digest(quick("repeats=4"), [binary], ["server=a"])
    assert base != digest(campaign, [binary], ["server=b"])
    binary.write_bytes(b"two")
    assert base != digest(campaign, [binary], ["server=a"])
    with pytest.raises(DocumentError, match=r"build it: \./setup"):
        digest(campaign, [tmp_path / "absent"])
    # the programs of every architecture
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
    done, failed, torn = first.todo[:3]
    directory = complete(first, done)
    assert (tmp_path / "quick" / "latest").resolve() == directory
    complete(first, failed, status="failed")
    (directory / torn).mkdir()
    again = open_execution(campaign, "a" * 64, tmp_path)
    assert again.directory == directory
    assert again.document["seed"] == first.document["seed"]
    assert again.todo == first.todo[1:]
    assert not (directory / failed).exists()
    assert not (directory / torn).exists()
    assert (directory / done / "run.json").exists()
    assert sum(run in line for run in (failed, torn) for line in again.messages) == 2


def test_other_hashes_new_and_complete_ones_start_anew(campaign: Campaign, tmp_path: Path) -> None:
    first = open_execution(campaign, "a" * 64, tmp_path)
    other = open_execution(campaign, "b" * 64, tmp_path)
    assert other.directory != first.directory
    directory = complete(first)
    assert close_execution(directory).document["status"] == "complete"
    # a start within the same second would use the same name
    directory.rename(directory.with_name(f"20200101T000000Z-{'a' * 8}"))
    third = open_execution(campaign, "a" * 64, tmp_path)
    assert third.todo == [run["id"] for run in third.document["runs"]]


def test_closing_leaves_what_failed_for_the_next_start(campaign: Campaign, tmp_path: Path) -> None:
    plan = open_execution(campaign, "a" * 64, tmp_path)
    complete(plan, *plan.todo[:-1])
    directory = complete(plan, plan.todo[-1], status="failed")
    assert close_execution(directory).document["status"] == "unfinished"
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
    directory = complete(first)
    assert close_execution(directory).document["status"] == "complete"
    again = open_execution(campaign, "a" * 64, tmp_path, more=2)
    assert again.directory == directory
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
    closed = close_execution(complete(resumed)).document
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


OLD = {"flavour": "mysql", "version": "8.0.12", "program_sha256": "a" * 64}
NEW = {"flavour": "mysql", "version": "5.7.22", "program_sha256": "b" * 64}


def test_tarballs_of_the_same_name_are_told_apart_by_their_content(tmp_path: Path) -> None:
    result = []
    for folder, content in (("a", b"8.0.12"), ("b", b"5.7.22")):
        tarball = tmp_path / folder / "mysql-linux.tar.gz"
        tarball.parent.mkdir()
        tarball.write_bytes(content)
        result.append(declared("tarball", {"tarball": str(tarball)}))
        assert result[-1]["sha256"] == hashlib.sha256(content).hexdigest()
    campaign = quick()
    assert digest(campaign, servers={MAIN: result[0]}) != digest(campaign, servers={MAIN: result[1]})
    # replaced in place: the path is the same
    Path(result[0]["tarball"]).write_bytes(b"5.7.22")
    again = declared("tarball", {"tarball": result[0]["tarball"]})
    assert digest(campaign, servers={MAIN: result[0]}) != digest(campaign, servers={MAIN: again})


def test_a_relative_tarball_is_of_the_users_directory_then_of_the_checkout(tmp_path: Path) -> None:
    user, checkout = tmp_path / "user", tmp_path / "checkout"
    for folder in (user, checkout):
        folder.mkdir()
    settings = {"tarball": "m.tar.gz", "directories": [str(user), str(checkout)]}
    with pytest.raises(DocumentError) as missing:
        declared("tarball", settings)
    assert str(user / "m.tar.gz") in str(missing.value)
    assert str(checkout / "m.tar.gz") in str(missing.value)
    (checkout / "m.tar.gz").write_bytes(b"checkout")
    assert declared("tarball", settings)["tarball"] == str(checkout / "m.tar.gz")
    (user / "m.tar.gz").write_bytes(b"user")
    assert declared("tarball", settings)["tarball"] == str(user / "m.tar.gz")


def test_what_is_no_file_and_no_tarball_at_all_say_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=f"{tmp_path}: Is a directory"):
        declared("tarball", {"tarball": str(tmp_path)})
    with pytest.raises(DocumentError, match="server_tarball=PATH-OR-URL"):
        declared("tarball", {})


def test_only_the_settings_of_the_chosen_source_count() -> None:
    base = {"packages": ["mysql-server-core"], "rootfs_suite": "unstable", "tarball": "unused.tar.gz"}
    assert declared("package", base) == declared("package", base | {"rootfs_suite": "trixie"})
    assert declared("rootfs", base) != declared("rootfs", base | {"rootfs_suite": "trixie"})
    assert declared("existing", {"host": "a"}) != declared("existing", {"host": "b"})
    assert declared("rootfs", base) != declared("package", base)


def test_an_execution_resumes_with_the_server_it_began_with_only(tmp_path: Path) -> None:
    opened = open_execution(quick(), "a" * 64, tmp_path)
    directory = known(opened.directory)
    for _ in range(2):
        assert use_server(directory, dict(OLD)).document["servers"][MAIN]["obtained"] == OLD
        assert open_execution(quick(), "a" * 64, tmp_path).directory == directory
    with pytest.raises(DocumentError) as refused:
        use_server(directory, dict(NEW))
    assert all(word in str(refused.value) for word in ("mysql 8.0.12", "mysql 5.7.22", "campaign_new=true"))
    assert "\n" not in str(refused.value)


TWO = """
sides.insert.server.source=rootfs
sides.oltp.server={source: tarball, tarball: PATH}
"""


def test_each_side_can_have_its_own_server_and_its_own_prepared_data(tmp_path: Path) -> None:
    tarball = tmp_path / "old.tar.gz"
    tarball.write_bytes(b"8.0.12")
    campaign = quick(*TWO.replace("PATH", str(tarball)).split("\n")[1:3])
    servers = of_sides(campaign, {"packages": ["a"]}, {"source": "auto"})
    (key,) = (key for key in servers if key.startswith("tarball-"))
    assert set(servers) == {"rootfs", key}, "no side uses the server of the campaign"
    assert servers[key]["sha256"] == hashlib.sha256(b"8.0.12").hexdigest()
    document = plan(campaign, "a" * 64, servers=servers).document
    assert {prepared["name"] for prepared in document["prepared"]} == {"insert-rootfs", f"oltp-{key}"}
    assert document["sides"]["oltp"]["prepared"] == f"oltp-{key}"
    tarball.write_bytes(b"5.7.22")
    again = of_sides(campaign, {"packages": ["a"]}, {"source": "auto"})
    assert digest(campaign, servers=again) != digest(campaign, servers=servers)


def test_one_server_for_all_sides_is_the_campaigns() -> None:
    campaign = quick()
    assert of_sides(campaign, {}, None) == {MAIN: {"source": "auto"}}
    assert [prepared["name"] for prepared in plan(campaign, "a" * 64).document["prepared"]] == [
        "oltp",
        "insert",
    ]
