"""ansible/ab.yml: from an experiment's file to its figures, and what a killed playbook leaves."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import programs
import pytest
import yaml
from programs import ROOT, finished, playbook, started, wait_for

from .bench import LONG_S, NOBODY, Bench


def command(bench: Bench, **settings: object) -> list[str]:
    """The command line of the playbook for the bench's experiment."""
    file = bench.directory / "experiment.yml"
    file.write_text(yaml.safe_dump(bench.document), encoding="utf-8")
    given = {"ab_experiment": str(file), "ab_out": str(bench.out), **settings}
    return playbook("ab", **given)


def environment(bench: Bench) -> dict[str, str]:
    """This checkout's package, and a directory of temporary files that can be looked into."""
    temporary = bench.directory / "temporary"
    temporary.mkdir(exist_ok=True)
    return programs.environment() | {"PYTHONPATH": str(ROOT / "analysis"), "TMPDIR": str(temporary)}


def run(bench: Bench, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the playbook to its end."""
    return finished(command(bench, **settings), env=environment(bench))


def test_it_is_run_brought_here_and_shown(bench: Bench) -> None:
    """What is done on a remote host, over a local connection: the run directory is fetched."""
    there = bench.directory / "there"
    bench.out.parent.chmod(0o750)
    done = run(bench, _ab_local=False, ab_host_dir=str(there), ab_wait_s=60)
    assert done.returncode == 0, done.stdout
    assert bench.called() == ["apply", "revert"]
    assert f"the run directory: {bench.out}" in done.stdout
    assert "queries per CPU-second" in done.stdout
    assert bench.meta()["status"] == "complete"
    # where the machine stalled a window may hold too few readings
    assert bench.shown()["verdict"] in ("undecided", "not measured")
    assert list(there.iterdir()) == []
    assert bench.out.parent.stat().st_mode & 0o777 == 0o750, "it was there before"
    assert list((bench.directory / "temporary").glob("*loadprint-ab")) == []


def test_an_experiment_that_ends_early_fails_and_says_why(bench: Bench) -> None:
    bench.document["treatment"]["verify_applied"] = "echo it is not there; false"
    done = run(bench)
    assert done.returncode == 2, done.stdout
    assert "verify_applied: exit 1: it is not there" in done.stdout.strip().splitlines()[-1]
    assert bench.called() == ["apply", "revert"]


def test_a_killed_playbook_leaves_a_reverted_server(bench: Bench) -> None:
    bench.document["schedule"]["window"] = LONG_S
    words = command(bench, ab_lease_s=45)
    process = started(words, bench.directory / "output", env=environment(bench))
    try:
        wait_for("the treatment window", lambda: "treatment" in bench.phases())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    wait_for("the end", lambda: bench.meta()["status"] == "failed")
    assert bench.called() == ["apply", "revert"]
    assert not bench.applied.exists()
    assert bench.meta()["reason"].startswith("the caller is gone")
    assert bench.meta()["reason"].endswith("reverted and verified")
    left = bench.directory / "temporary"
    wait_for("nothing of it left", lambda: not list(left.glob("*loadprint-ab")))


def plant(directory: Path, marker: Path) -> None:
    """As another user, make a directory with a module that root would import."""
    words = f'mkdir {directory} && echo \'open("{marker}", "w")\' >{directory}/json.py'
    subprocess.run(["sh", "-c", words], check=True, user=NOBODY, group=NOBODY, extra_groups=[])


def test_a_package_of_another_user_is_not_run(bench: Bench, shared: Path) -> None:
    marker = bench.directory / "marker"
    for name in ("run.program", "program"):
        plant(shared / name, marker)
    done = run(bench, _ab_local=False, ab_host_dir=str(shared), ab_wait_s=60)
    assert not marker.exists(), done.stdout
    assert (done.returncode, bench.called()) == (0, ["apply", "revert"]), done.stdout
    # the user has the name before root
    plant(shared / "run", marker)
    bench.out.rename(bench.directory / "first")
    done = run(bench, _ab_local=False, ab_host_dir=str(shared), ab_wait_s=60)
    assert not marker.exists(), done.stdout
    assert (done.returncode, bench.called()) == (2, ["apply", "revert"]), done.stdout
    assert "File exists" in done.stdout


@pytest.mark.parametrize("local", [True, False], ids=["this machine", "host"])
def test_a_directory_of_another_user_is_refused(bench: Bench, shared: Path, local: bool) -> None:
    plant(shared / "there", shared / "marker")
    place = (
        {"ab_out": str(shared / "there" / "run")} if local else {"ab_host_dir": str(shared / "there" / "ab")}
    )
    done = run(bench, _ab_local=local, **place)
    assert (done.returncode, bench.called()) == (2, []), done.stdout
    assert f"{shared}/there: belongs to the user `nobody`, who can change it; name another" in done.stdout
    assert list((shared / "there").iterdir()) == [shared / "there" / "json.py"]
