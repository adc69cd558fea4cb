"""Another user attacks experiments of root, which runs none of the user's commands and follows no link."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from loadprint.commands.ab.link import revert_by_hand
from loadprint.errors import InputError

from .attacker import MOVED
from .bench import LONG_S, ROOT, TIMEOUT_S, Bench, ab, alive, wait_for

NOBODY = 65534
ATTACKER = Path(__file__).with_name("attacker.py")


class Attack:
    """A directory that the user owns, a file and a process of root, and the user's running attack."""

    def __init__(self, directory: Path, victim: Path) -> None:
        self.directory, self.victim = directory, victim
        self.run, self.marker = directory / "run", directory / "marker"
        victim.write_text("content of root\n", encoding="utf-8")
        self.process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.user: subprocess.Popen[str] | None = None

    def start(self, attack: str) -> None:
        """Start an attack, and wait until the user is ready for root's command."""
        values = [attack, self.run, self.marker, self.victim, self.process.pid]
        words = [sys.executable, "-I", str(ATTACKER), *map(str, values)]
        self.user = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[]
        )
        assert self.user.stdout is not None
        assert self.user.stdout.readline() == "ready\n"

    def wait(self) -> None:
        """Wait until everything is planted."""
        assert self.user is not None
        assert self.user.stdout is not None
        assert self.user.stdout.readline() == "done\n"

    def check(self) -> None:
        """Require that root ran nothing of the user, and that file and process are unchanged."""
        assert not self.marker.exists(), f"ran as uid {self.marker.read_text(encoding='ascii')}"
        assert self.victim.read_text(encoding="utf-8") == "content of root\n"
        assert alive(self.process.pid)

    def end(self) -> None:
        """End both processes."""
        for each in (self.user, self.process):
            if each is not None:
                each.kill()
                each.wait()


@pytest.fixture
def attack(tmp_path: Path) -> Iterator[Attack]:
    # not below tmp_path, which only root can enter
    directory = Path(tempfile.mkdtemp(prefix="loadprint-test-"))
    directory.chmod(0o755)
    os.chown(directory, NOBODY, NOBODY)
    made = Attack(directory, tmp_path / "victim")
    yield made
    made.end()
    shutil.rmtree(directory)


def revert(run: Path, *options: str) -> tuple[int, str]:
    """Return exit status and stderr of `loadprint ab revert`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "analysis")}
    words = ab("revert", run, *options)
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S / 5
    )
    return done.returncode, done.stderr


@pytest.fixture
def planted(attack: Attack) -> Attack:
    """A run directory of the user, with own commands."""
    attack.start("make a run directory")
    attack.wait()
    return attack


@pytest.fixture
def copied(planted: Attack, tmp_path: Path) -> Path:
    """The same as a run directory of root, in a directory that only root can enter."""
    run = tmp_path / "copied"
    shutil.copytree(
        planted.run / "load", run / "load", ignore=lambda *_: [".guards.json.new", ".guards.json.tmp"]
    )
    for path in (run, *run.rglob("*")):
        path.chmod(0o755)
    (run / "run.json").write_text('{"status": "failed"}', encoding="utf-8")
    return run


def test_a_run_directory_that_exists_is_refused(bench: Bench, attack: Attack) -> None:
    bench.out = attack.run
    attack.start("own the run directory")
    status, stderr = bench.run()
    attack.check()
    assert status == 2, stderr
    assert (
        stderr.splitlines()[-1] == f"loadprint: {attack.run}: already exists; name a new directory with --out"
    )
    assert bench.called() == []


@pytest.mark.parametrize("killed", [False, True], ids=["", "killed keeper"])
def test_a_run_directory_that_is_replaced_redirects_nothing(
    bench: Bench, attack: Attack, killed: bool
) -> None:
    bench.out = attack.run
    bench.document["schedule"]["window"] = LONG_S
    attack.start("own its parent")
    bench.start()
    attack.wait()
    bench.out = attack.directory / MOVED
    assert bench.process is not None
    wait_for("the treatment", bench.is_treated)
    if killed:
        os.kill(bench.keeper(), signal.SIGKILL)
    else:
        bench.process.terminate()
    status, stderr = bench.end()
    attack.check()
    assert (status, bench.called()) == (1, ["apply", "revert"]), stderr
    assert "reverted and verified" in bench.meta()["reason"]
    assert (bench.out / "load" / "guards.json").is_file()
    assert (
        f"{attack.directory} belongs to the user `nobody`, who can change it: `ab revert` would refuse"
        in stderr
    )
    # the tables and the manifest are in it
    assert bench.shown()["verdict"] == "aborted"
    assert (attack.run / "run.json").read_text(encoding="utf-8") == "{}"


def test_a_lock_that_another_user_waits_for_does_not_prevent_a_revert(bench: Bench, attack: Attack) -> None:
    bench.out = attack.run
    bench.document["schedule"]["window"] = LONG_S
    attack.start("hold the lock")
    bench.start()
    attack.wait()
    wait_for("the treatment", bench.is_treated)
    os.kill(bench.keeper(), signal.SIGKILL)
    status, stderr = bench.end()
    assert (status, bench.called()) == (1, ["apply", "revert"]), stderr
    assert not bench.applied.exists()


def test_a_revert_does_not_run_the_commands_of_another_user(planted: Attack) -> None:
    status, stderr = revert(planted.run)
    planted.check()
    assert status == 2, stderr
    *printed, last = stderr.splitlines()
    assert f'loadprint ab: revert: "id -u >> {planted.marker}"' in printed
    assert last.startswith(
        f"loadprint: {planted.directory}: belongs to the user `nobody`, who can change it; "
    )
    assert last.endswith("run it again with --yes")


def test_a_revert_does_not_run_commands_that_appear_after_its_check(attack: Attack) -> None:
    attack.directory.chmod(0o1777)  # as /tmp, where everyone can make a directory of any name
    os.chown(attack.directory, 0, 0)
    attack.start("make and remove a run directory")
    for _ in range(3000):
        with pytest.raises(InputError):
            revert_by_hand(attack.run)
    attack.check()


def test_yes_runs_commands_that_it_has_printed_but_follows_no_link(planted: Attack) -> None:
    link = planted.run / "load" / "phases.jsonl"
    link.symlink_to(planted.victim)
    status, stderr = revert(planted.run, "--yes")
    planted.check()
    assert status == 2, stderr
    assert stderr.splitlines()[-1].startswith(f"loadprint: {link}: is a symbolic link")
    link.unlink()
    status, stderr = revert(planted.run, "--yes")
    assert status == 0, stderr
    assert planted.marker.read_text(encoding="ascii") == "0\n"
    assert planted.victim.read_text(encoding="utf-8") == "content of root\n"
    lines = stderr.splitlines()
    assert lines[1] == f'loadprint ab: revert: "id -u >> {planted.marker}"'
    assert "run.json: no status (KeyError('status')); the recording was not completed" in lines[-1]


@pytest.mark.parametrize("name", ["keeper.json", "lock", "phases.jsonl", "switches.jsonl"])
def test_a_revert_does_not_wait_for_a_fifo(copied: Path, name: str) -> None:
    path = copied / "load" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    status, stderr = revert(copied)
    assert (status, stderr.count("\n")) == (2, 1), stderr
    assert f"{path}: " in stderr
    assert "is not a regular file" in stderr


@pytest.mark.parametrize("text", ["{}", "[]", "7", '{"status": "running"', "[" * 100_000])
@pytest.mark.parametrize("name", ["run.json", "load/keeper.json", "load/phases.jsonl"])
def test_a_damaged_file_is_one_line(copied: Path, name: str, text: str) -> None:
    (copied / name).write_text(text, encoding="utf-8")
    status, stderr = revert(copied)
    assert stderr.count("\n") == 1, stderr
    if name == "load/keeper.json":
        assert status == 2, stderr
        assert stderr.startswith(f"loadprint: {copied / name}: no commands to revert with: ")
    else:  # which a revert does not need
        assert status == 0, stderr
        assert (f"{copied / name}: " in stderr) == (name == "run.json")


@pytest.mark.parametrize(
    ("writable", "reason"),
    [(".", "can be changed by all users"), ("load", "by its group"), ("load/keeper.json", "by all users")],
)
def test_a_revert_is_refused_if_others_can_write(
    bench: Bench, tmp_path: Path, writable: str, reason: str
) -> None:
    bench.start_treated()
    assert bench.process is not None
    pids = (bench.keeper(), bench.process.pid, bench.recorder())
    bench.process.send_signal(signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    bench.process.communicate()
    wait_for("their end", lambda: not any(map(alive, pids)))
    path = bench.out / writable
    before = path.stat()
    os.chown(path, -1, NOBODY)
    path.chmod(0o775 if reason == "by its group" else 0o777)
    status, stderr = revert(bench.out)
    assert (status, bench.called()) == (2, ["apply"]), stderr
    assert f"{path}: can be changed " in stderr.splitlines()[-1]
    assert reason in stderr.splitlines()[-1]
    path.chmod(before.st_mode & 0o7777)
    assert revert(bench.out)[0] == 0
    assert bench.called() == ["apply", "revert"]
