"""Processes that a benchmark starts side by side, and what each of them has cost."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "target/release"
COLLECT = RELEASE / "loadprint-collect"
SADC = Path("/usr/lib/sysstat/sadc")
QUIET = subprocess.DEVNULL


def start(command: str | Iterable[object], **options: object) -> subprocess.Popen[bytes]:
    """Start a command and discard its output."""
    words = command.split() if isinstance(command, str) else [str(word) for word in command]
    environment = {**os.environ, "S_TIME_FORMAT": "ISO", **{k: str(v) for k, v in options.items()}}
    return subprocess.Popen(words, stdin=QUIET, stdout=QUIET, stderr=QUIET, env=environment)


@contextmanager
def running(processes: dict[str, subprocess.Popen[bytes]]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """End every process at the end; one may be added meanwhile."""
    try:
        yield processes
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait()


def cpu_ns(pid: int) -> int:
    """Nanoseconds on a CPU of all threads (Documentation/scheduler/sched-stats.rst)."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files)


def resident_mb(pid: int) -> float:
    """Peak resident memory (VmHWM, proc_pid_status(5))."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def open_files(pid: int, under: str = "/proc/") -> list[str]:
    """List the files under a root that a process has open."""
    links = [str(descriptor.readlink()) for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    links = [link for link in links if not Path(link).is_dir()]
    # What belonged to a process's namespace is opened again now and then; the one before shows as deleted.
    return sorted(link for link in links if link.startswith(under) and not link.endswith(" (deleted)"))


def wait_for(path: Path, seconds: float = 60) -> None:
    """Wait until a file is there."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} did not appear in {seconds:g} s")
        time.sleep(0.01)


def wait_for_port(port: int, seconds: float = 60) -> None:
    """Wait until a port of loopback accepts connections."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


class Scraper(threading.Thread):
    """Reads an HTTP endpoint once an interval, as Prometheus would; its own cost is not counted."""

    def __init__(self, url: str, interval_s: float = 1) -> None:
        super().__init__(daemon=True)
        self.url, self.interval_s = url, interval_s
        self.bytes = 0
        self.scrapes = 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Scrape until stopped."""
        while not self._ended.wait(self.interval_s):
            try:
                with urllib.request.urlopen(self.url, timeout=10) as answer:
                    self.bytes = len(answer.read())
                self.scrapes += 1
            except OSError:
                continue

    def end(self) -> None:
        """Scrape no more."""
        self._ended.set()
        self.join()
