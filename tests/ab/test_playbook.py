"""ansible/ab.yml: from an experiment's file to its figures, and what a killed playbook leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from .bench import LONG_S, ROOT, Bench, wait_for

PLAYBOOK = ROOT / "ansible" / "ab.yml"


def command(bench: Bench, **settings: object) -> list[str]:
    """The command line of the playbook for the bench's experiment."""
    file = bench.directory / "experiment.yml"
    file.write_text(yaml.safe_dump(bench.document), encoding="utf-8")
    given = {"ab_experiment": str(file), "ab_out": str(bench.out), **settings}
    ansible = Path(sys.executable).with_name("ansible-playbook")
    return [str(ansible), str(PLAYBOOK), "-e", json.dumps(given)]


def environment(bench: Bench) -> dict[str, str]:
    """This checkout's package, and a directory of temporary files that can be looked into."""
    temporary = bench.directory / "temporary"
    temporary.mkdir(exist_ok=True)
    return {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible" / "ansible.cfg"),
        "PYTHONPATH": str(ROOT / "analysis"),
        "TMPDIR": str(temporary),
    }


def run(bench: Bench, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the playbook to its end."""
    return subprocess.run(
        command(bench, **settings),
        env=environment(bench),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


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
    assert bench.shown()["verdict"] in ("too few", "inconclusive")
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
    with (bench.directory / "output").open("w") as output:
        words = command(bench, ab_lease_s=45)
        playbook = subprocess.Popen(
            words, env=environment(bench), stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_for("the treatment window", lambda: "treatment" in bench.phases())
    finally:
        os.killpg(playbook.pid, signal.SIGKILL)
        playbook.wait()
    wait_for("the end", lambda: bench.meta()["status"] == "failed")
    assert bench.called() == ["apply", "revert"]
    assert not bench.applied.exists()
    assert bench.meta()["reason"].startswith("the caller is gone")
    assert bench.meta()["reason"].endswith("reverted and verified")
    left = bench.directory / "temporary"
    wait_for("nothing of it left", lambda: not list(left.glob("*loadprint-ab")))
