"""Runs experiments as processes on a real server, for tests that disturb them and check the outcome."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from programs import COLLECT, LOAD, ROOT, TIMEOUT_S, printed, read, running, wait_for

# This checkout's package, whichever is installed.
ANALYSIS = {**os.environ, "PYTHONPATH": str(ROOT / "analysis")}
NOBODY = 65534
LONG_S = 600.0  # a window that a test always ends before its time


def ab(*words: object) -> list[str]:
    """Return the command line of `loadprint ab`."""
    return [sys.executable, "-m", "loadprint", "ab", *map(str, words)]


class Server:
    """A private server, as tests/with-server exports it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.defaults = Path(environment["LOADPRINT_TEST_DEFAULTS"])
        self.pid_file = Path(environment["LOADPRINT_TEST_SOCKET"]).with_name("mysqld.pid")

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text(encoding="ascii"))

    def sql(self, statement: str) -> str:
        """Return the command that runs a statement."""
        return f"{sys.executable} {Path(__file__).with_name('sql.py')} {self.defaults} '{statement}'"


@contextlib.contextmanager
def production(server: Server, rate: int) -> Iterator[None]:
    """Generate the load of a production server: index lookups at a fixed rate, until the block ends."""
    account = [f"--defaults-file={server.defaults}", "--tables=1", "--table-size=4000"]
    for verb in ("cleanup", "prepare"):
        printed(LOAD, verb, "select_random_points", *account)
    words = [LOAD, "run", "select_random_points", *account, "--threads=2", "--time=0", f"--rate={rate}"]
    with running(words):
        yield


class Bench:
    """An experiment whose treatment is a file; all commands are logged, and any of them can fail."""

    def __init__(self, directory: Path, server: Server) -> None:
        self.directory, self.out = directory, directory / "run"
        self.applied, self.calls = directory / "applied", directory / "calls"
        self._process: subprocess.Popen[str] | None = None
        self.document: dict[str, Any] = {
            "name": "fault",
            "treatment": {
                "apply": f"echo apply >> {self.calls}; touch {self.applied}",
                "revert": f"echo revert >> {self.calls}; rm -f {self.applied}",
                "verify_applied": f"test -e {self.applied}",
                "verify_reverted": f"test ! -e {self.applied}",
            },
            # the first window is a treatment window, long enough for a fault
            "schedule": {"order": "TB", "blocks": 1, "window": 1.0, "settle": 0.1},
            "server": {"process": f"@{server.pid_file}", "defaults_file": str(server.defaults)},
            "recorder": {"interval": "200ms"},
        }

    def start(self, **popen: Any) -> None:
        """Start the experiment."""
        file = self.directory / "experiment.yml"
        file.write_text(yaml.safe_dump(self.document), encoding="utf-8")
        words = ab("run", file, "--out", self.out, "--collector", COLLECT)
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **popen}
        self._process = subprocess.Popen(words, env=ANALYSIS, **given)

    @property
    def process(self) -> subprocess.Popen[str]:
        """The command, once it was started."""
        assert self._process is not None
        return self._process

    def start_treated(self, **popen: Any) -> None:
        """Start it, and wait for its treatment window."""
        self.document["schedule"]["window"] = LONG_S
        self.start(**popen)
        wait_for("the treatment window", self.is_treated)

    def is_treated(self) -> bool:
        """Whether the treatment window has started; fails if the experiment has ended."""
        if "treatment" in self.phases():
            return True
        assert self.process.poll() is None, self.end()
        return False

    def phases(self) -> list[str]:
        """Return the phases that have started."""
        path = self.out / "load" / "phases.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [stamp["phase"] for stamp in map(json.loads, lines) if stamp["event"] == "begin"]

    def end(self) -> tuple[int, str]:
        """Wait for its end, and return its exit status and stderr."""
        _, stderr = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, stderr or ""

    def run(self) -> tuple[int, str]:
        """Run the experiment to its end."""
        self.start()
        return self.end()

    def conductor(self) -> int:
        """Return the process that switches."""
        return next(pid for pid, words in children(self.process.pid) if "ab.conduct" in words)

    def recorder(self) -> int:
        """Return the process of the recorder."""
        return next(pid for pid, words in children(self.conductor()) if "loadprint-collect" in words)

    def kill_all(self) -> None:
        """Kill every process at once, so that nothing is reverted."""
        pids = (self.conductor(), self.process.pid, self.recorder())
        self.process.send_signal(signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.process.communicate()
        wait_for("their end", lambda: not any(map(alive, pids)))

    def called(self) -> list[str]:
        """Return the switches, in order."""
        return self.calls.read_text(encoding="utf-8").split() if self.calls.exists() else []

    def meta(self) -> dict[str, Any]:
        """Return the content of run.json."""
        return read(self.out / "run.json")

    def shown(self) -> dict[str, Any]:
        """Return the output of `loadprint ab show`, which refuses an incomplete run directory."""
        return dict(json.loads(printed(*ab("show", self.out, "--format", "json"), env=ANALYSIS)))

    def clean_up(self) -> None:
        """End the process that a failed test left."""
        if self._process is not None and self._process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.communicate(timeout=TIMEOUT_S)


def revert(run: Path) -> tuple[int, str]:
    """Return exit status and stderr of `loadprint ab revert`."""
    done = subprocess.run(
        ab("revert", run), env=ANALYSIS, capture_output=True, text=True, check=False, timeout=TIMEOUT_S / 5
    )
    return done.returncode, done.stderr


def children(pid: int) -> list[tuple[int, str]]:
    """Return the running children of a process with their command lines."""
    running = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):
            running.append((int(child), Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8")))
    return running


def alive(pid: int) -> bool:
    """Whether a thread of a process has not exited: the main thread may be a zombie before the others."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return False
    return stat[0] not in "ZX" or stat[17] != "1"
