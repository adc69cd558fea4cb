"""Processes that a benchmark starts side by side, and what each of them has cost."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from programs import COLLECT, ROOT, printed, wait_for

RELEASE = ROOT / "target/release"
SADC = Path("/usr/lib/sysstat/sadc")
QUIET = subprocess.DEVNULL


def start(command: str | Iterable[object], **options: object) -> subprocess.Popen[bytes]:
    """Start a command and discard its output."""
    words = command.split() if isinstance(command, str) else [str(word) for word in command]
    environment = {**os.environ, "S_TIME_FORMAT": "ISO", **{k: str(v) for k, v in options.items()}}
    return subprocess.Popen(words, stdin=QUIET, stdout=QUIET, stderr=QUIET, env=environment)


def recorder(run: Path, *options: object, program: Path = COLLECT) -> subprocess.Popen[bytes]:
    """Start a recorder that writes into the directory `run`, and wait until it has begun."""
    pid_file = run.with_suffix(".pid")
    process = start([program, "record", "--out", run, "--pid-file", pid_file, *options])
    wait_for("the recorder", pid_file.exists)
    return process


def described(text: str | None) -> argparse.ArgumentParser:
    """Make a parser of options whose help is the description of the program."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def with_server(options: str = "") -> None:
    """Start this program again under tests/with-server, unless it runs there already."""
    if "LOADPRINT_TEST_SOCKET" not in os.environ:
        if options:
            os.environ["LOADPRINT_TEST_SERVER_OPTIONS"] = options
        os.execv(ROOT / "tests/with-server", ["with-server", sys.executable, *sys.argv])


def pin(server_cpus: Iterable[int], other_cpus: Iterable[int]) -> None:
    """Keep the server of tests/with-server and the children of this process on their CPUs."""
    pid = int((Path(os.environ["LOADPRINT_TEST_SOCKET"]).parent / "mysqld.pid").read_text())
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), server_cpus)
    os.sched_setaffinity(0, other_cpus)


def targets() -> list[str]:
    """Options that name the server and the load for a recorder."""
    socket = Path(os.environ["LOADPRINT_TEST_SOCKET"])
    options = [f"--process=server=@{socket.parent / 'mysqld.pid'}", "--process=load=loadprint-load"]
    return [*options, f"--mysql-defaults-file={os.environ['LOADPRINT_TEST_DEFAULTS']}"]


def oltp(verb: str, *options: str) -> list[str]:
    """Give the command of a verb of the generator on the tables of oltp_read_write."""
    account = f"--defaults-file={os.environ['LOADPRINT_TEST_DEFAULTS']}"
    words = [verb, "oltp_read_write", account, "--tables=4", "--table-size=25000", *options]
    return [str(RELEASE / "loadprint-load"), *words]


@contextmanager
def saturated(threads: int) -> Iterator[None]:
    """OLTP read-write at saturation, for as long as it lasts."""
    printed(*oltp("prepare"))
    with running({"load": start(oltp("run", f"--threads={threads}", "--time=0", "--events=0"))}):
        time.sleep(3)
        yield


class Used(NamedTuple):
    """What a command printed and used, with the processes for which it waited."""

    output: str
    wall_s: float
    cpu_s: float
    peak_mb: float


# Run by a small process: a child's reported peak is never below its parent's (getrusage(2)).
TIMER = """
import json, os, sys, time
began = time.monotonic()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
wall = time.monotonic() - began
print()
print(json.dumps([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, status]))
"""


def timed(command: Iterable[object]) -> Used:
    """Run a command and measure what it uses; it must succeed."""
    words = [str(word) for word in command]
    # modules are compiled once and kept, as on a host without this option
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    timer = [sys.executable, "-I", "-S", "-c", TIMER, *words]
    done = subprocess.run(timer, capture_output=True, env=environment, text=True, check=True)
    output, _, figures = done.stdout.rstrip("\n").rpartition("\n")
    wall, cpu, memory, status = json.loads(figures)
    if status:
        sys.exit(f"{' '.join(words)} ended with status {status}: {done.stderr}{output}")
    return Used(output, wall, cpu, memory)


def cost_per_sample(
    processes: dict[str, subprocess.Popen[bytes]], samples: int, interval_s: float = 1
) -> dict[str, tuple[float, float]]:
    """Measure microseconds of CPU per sample of each for some samples, and its peak memory in MB."""
    before = {name: cpu_ns(process.pid) for name, process in processes.items()}
    time.sleep(samples * interval_s)
    return {
        name: ((cpu_ns(process.pid) - before[name]) / samples / 1000, resident_mb(process.pid))
        for name, process in processes.items()
        if process.poll() is None
    }


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


def accepts(port: int) -> bool:
    """Whether a port of loopback accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Scraper(threading.Thread):
    """Reads an HTTP endpoint once an interval, as Prometheus would; its own cost is not counted."""

    def __init__(self, url: str, interval_s: float = 1) -> None:
        super().__init__(daemon=True)
        self.url, self.interval_s = url, interval_s
        self._ended = threading.Event()

    def run(self) -> None:
        """Scrape until stopped."""
        while not self._ended.wait(self.interval_s):
            try:
                with urllib.request.urlopen(self.url, timeout=10) as answer:
                    answer.read()
            except OSError:
                continue

    def end(self) -> None:
        """Scrape no more."""
        self._ended.set()
        self.join()
