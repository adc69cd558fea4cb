"""The check of what is left: it sees all that the tests cause, and nothing that a neighbour does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from . import ROOT
from .machine import PRIVATE

# Looks before and after a line on standard input; runs that line first, if it is one.
WATCHER = """
import json, subprocess
from e2e import machine
with machine.isolated() as outside:
    before = machine.look()
    while True:
        print(json.dumps([str(outside), machine.added(before, machine.look())]), flush=True)
        try:
            command = input()
        except EOFError:
            break
        if command:
            subprocess.run(["sh", "-c", command], check=True)
"""


class Watcher:
    """A program that is isolated as the end-to-end tests are; this test is its neighbour."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.outside = Path(self._answer()[0])

    def left(self, command: str = "") -> list[str]:
        """What it finds left, after it has run a shell command."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        result: list[str] = self._answer()[1]
        return result

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@contextmanager
def watcher() -> Iterator[Watcher]:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER],
        cwd=ROOT / "tests",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        made = Watcher(process)
        yield made
        process.communicate()
    shutil.rmtree(made.outside)


def command(*words: str | Path) -> None:
    subprocess.run(words, check=True)


def test_what_a_neighbour_does_does_not_count(tmp_path: Path) -> None:
    with ExitStack() as neighbour, watcher() as watched:
        for place in PRIVATE:
            file = Path(place, "loadprint-of-a-neighbour")
            file.touch()
            neighbour.callback(file.unlink)
        command("mount", "-t", "tmpfs", "tmpfs", tmp_path)
        neighbour.callback(command, "umount", tmp_path)
        server = tmp_path / "mysqld"
        shutil.copy("/bin/sleep", server)
        process = neighbour.enter_context(subprocess.Popen([server, "1000"]))
        neighbour.callback(process.kill)
        # the interface of a campaign whose supervisor runs
        interface = f"lp{process.pid}n0"
        command("ip", "link", "add", interface, "type", "veth")
        neighbour.callback(command, "ip", "link", "delete", interface)
        assert watched.left() == []


def test_what_the_tests_cause_counts() -> None:
    with watcher() as watched:
        assert watched.left("touch /tmp/odd") == ["file /tmp/odd"]
        assert watched.left("rm /tmp/odd; touch /dev/shm/odd") == ["file /dev/shm/odd"]
        assert watched.left("rm /dev/shm/odd") == []
        # in a separate session, its parent gone, under a name that no program of ours has
        (process,) = watched.left("setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
        os.kill(int(process.split()[1]), signal.SIGKILL)
        while watched.left():
            pass
        mounted, folder = watched.left("mkdir /tmp/odd && mount -t tmpfs odd /tmp/odd")
        assert mounted.startswith("mount odd /tmp/odd tmpfs ")
        assert folder == "file /tmp/odd"
        assert watched.left("umount /tmp/odd && rmdir /tmp/odd") == []
        # 4194304 is the kernel's bound of process numbers (PID_MAX_LIMIT): there is no such supervisor
        interface = "lp4194305n0"
        assert watched.left(f"ip link add {interface} type veth") == [f"file /sys/class/net/{interface}"]
        assert watched.left(f"ip link delete {interface}") == []
