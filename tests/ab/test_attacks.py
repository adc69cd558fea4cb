"""Another user attacks experiments of root, which runs none of the user's commands and follows no link."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from loadprint.commands.ab import start
from loadprint.errors import InputError

from .bench import NOBODY, Bench, revert

# Makes and removes a run directory of its own again and again: absent for as long as root checks it.
RACE = """
import sys, time
from pathlib import Path
run, kept = Path(sys.argv[1]), Path(sys.argv[1] + ".kept")
print("ready", flush=True)
while True:
    run.rename(kept)
    time.sleep(0.0005)
    kept.rename(run)
    time.sleep(0.0005)
"""


def plant(run: Path, marker: Path, owner: int) -> None:
    """Make a run directory whose commands write the user that runs them into a file."""
    (run / "load").mkdir(parents=True)
    names = ("apply", "revert", "verify_applied", "verify_reverted")
    treatment = dict.fromkeys(names, f"id -u >> {marker}") | {"timeout": 5}
    experiment = {"treatment": treatment, "initial": "baseline"}
    (run / "load" / "experiment.json").write_text(json.dumps(experiment), encoding="utf-8")
    (run / "run.json").write_text('{"status": "failed"}', encoding="utf-8")
    for name in ("switches.jsonl", "phases.jsonl"):
        (run / "load" / name).touch()
    for path in (run, *run.rglob("*")):
        os.chown(path, owner, owner)


@pytest.mark.parametrize("name", ["run", "deeper/run"])
def test_a_directory_of_another_user_is_refused(bench: Bench, place: Path, name: str) -> None:
    bench.out = place / name
    status, stderr = bench.run()
    assert (status, bench.called()) == (2, []), stderr
    what = f"{place}: belongs to the user `nobody`, who can change it; name another directory with --out"
    assert stderr.splitlines()[-1] == f"loadprint: {what}"
    assert list(place.iterdir()) == []


def test_a_run_directory_that_exists_is_refused(bench: Bench, shared: Path) -> None:
    marker = shared / "marker"
    bench.out = shared / "run"
    plant(bench.out, marker, NOBODY)
    status, stderr = bench.run()
    assert (status, bench.called(), marker.exists()) == (2, [], False), stderr
    assert (
        stderr.splitlines()[-1] == f"loadprint: {bench.out}: already exists; name a new directory with --out"
    )


def test_a_new_directory_in_a_shared_one_is_fine(bench: Bench, shared: Path) -> None:
    bench.out = shared / "run"
    assert bench.run()[0] == 0
    assert bench.called() == ["apply", "revert"]


def test_a_revert_does_not_run_the_commands_of_another_user(shared: Path) -> None:
    plant(shared / "run", shared / "marker", NOBODY)
    status, stderr = revert(shared / "run")
    assert (status, stderr.count("\n")) == (2, 1), stderr
    assert stderr.startswith(f"loadprint: {shared}/run: belongs to the user `nobody`, who can change it; ")
    assert not (shared / "marker").exists()


def test_a_revert_does_not_run_commands_that_appear_after_its_check(shared: Path) -> None:
    plant(shared / "run", shared / "marker", NOBODY)
    words = [sys.executable, "-I", "-c", RACE, str(shared / "run")]
    user = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[]
    )
    try:
        assert user.stdout is not None
        assert user.stdout.readline() == "ready\n"
        for _ in range(3000):
            with pytest.raises(InputError):
                start.revert(shared / "run")
        assert user.poll() is None
    finally:
        user.kill()
        user.communicate()
    assert not (shared / "marker").exists()


@pytest.mark.parametrize("text", ["{}", "[]", "7", '{"status": "running"', "[" * 100_000])
@pytest.mark.parametrize(
    "name", ["run.json", "load/experiment.json", "load/phases.jsonl", "load/switches.jsonl"]
)
def test_a_damaged_file_is_one_line(tmp_path: Path, name: str, text: str) -> None:
    run = tmp_path / "run"
    plant(run, tmp_path / "marker", 0)
    (run / name).write_text(text, encoding="utf-8")
    status, stderr = revert(run)
    assert "Traceback" not in stderr
    last = stderr.splitlines()[-1]
    if name == "load/experiment.json":
        assert (status, stderr.count("\n")) == (2, 1), stderr
        assert last.startswith(f"loadprint: {run}: its commands cannot be read")
    else:  # which a revert does not need
        assert status == 0, stderr
        assert (f"{run}/{name}: " in last) == (name == "run.json")


@pytest.mark.parametrize("writable", [".", "load", "load/experiment.json"])
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_revert_is_refused_if_others_can_write(tmp_path: Path, writable: str, mode: int) -> None:
    run = tmp_path / "run"
    plant(run, tmp_path / "marker", 0)
    path = run / writable
    before = path.stat().st_mode & 0o7777
    os.chown(path, -1, NOBODY)
    path.chmod(mode)
    status, stderr = revert(run)
    assert (status, stderr.count("\n")) == (2, 1), stderr
    assert f"{path}: can be changed by {'all users' if mode == 0o777 else 'its group'}" in stderr
    assert not (tmp_path / "marker").exists()
    path.chmod(before)
    assert revert(run)[0] == 0
    assert (tmp_path / "marker").read_text(encoding="ascii") == "0\n"
