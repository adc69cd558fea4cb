"""Runs a light load on a real server under the recorder, with a dose, and reads both ledgers of the run.

One connection updates rows of a small table, one statement after the other. The server is on one CPU; the
generator, the relay between the two, and the recorder are on another one.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ab.sql import Connection
from loadprint.metrics.gather import gather
from loadprint.metrics.ledger import IN_SERVER
from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from programs import LOAD, TIMEOUT_S, commanded, in_measure_phase, printed, recording, wait_for

PROBES = "cpu,process,threads,mysql,ebpf_states,ebpf_exchanges,profile"
HERE = Path(__file__).parent
GROUPS = Path("/sys/fs/cgroup")
TABLE = ("--tables=1", "--table-size=100")
# The doses are in time, so another program of the machine that takes the CPU would be one: these processes
# have the largest weight, and the shortest slice, with which the kernel lets them preempt others.
NICE, SLICE_NS, SHARES = -20, 100_000, str(1 << 18)
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
WARM_UP_S, MEASURE_S = 2, 10
US = 1e6

TIMERS = {
    "log file": ("waits", "wait/io/file/innodb/innodb_log_file"),
    "binary log": ("waits", "wait/io/file/sql/binlog"),
    "statements": ("statements", "statement/sql/update"),
}
TIMER = (
    "SELECT SUM_TIMER_WAIT FROM performance_schema.events_{}_summary_global_by_event_name"
    " WHERE EVENT_NAME = '{}'"
)


@dataclass(frozen=True)
class Ledgers:
    """Both ledgers of a run, in µs per statement, and what the instruments counted in it, per statement."""

    time: dict[str, float]
    cpu: dict[str, float]
    meters: dict[str, float]
    quantities: Quantities
    path: Path


class Bench:
    """The server, the relay and the control groups of the doses."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.defaults = Path(os.environ["LOADPRINT_TEST_DEFAULTS"])
        self.socket = os.environ["LOADPRINT_TEST_SOCKET"]
        self.pid = int(Path(self.socket).with_name("mysqld.pid").read_text(encoding="ascii"))
        self.server_cpu, self.load_cpu = sorted(os.sched_getaffinity(0))[:2]
        name = f"loadprint-doses-{os.getpid()}"
        self.groups = {kind: GROUPS / kind / name for kind in ("cpu", "blkio")}
        self.own_group = GROUPS / "cpu" / f"{name}-load"
        self.neighbour: subprocess.Popen[str] | None = None
        self.count = itertools.count()

    @contextlib.contextmanager
    def open(self) -> Iterator[Bench]:
        """Pin the server, put it into its own control groups, and start the relay."""
        socket = self.directory / "relay.sock"
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            prefer(int(thread.name), self.server_cpu)
        # what this process starts is with it
        prefer(0, self.load_cpu)
        for group, process in ((self.groups["cpu"], self.pid), (self.own_group, os.getpid())):
            group.mkdir()
            (group / "cpu.shares").write_text(SHARES)
            (group / "cgroup.procs").write_text(str(process))
        self.groups["blkio"].mkdir()
        (self.groups["blkio"] / "cgroup.procs").write_text(str(self.pid))
        try:
            with commanded(sys.executable, HERE / "relay.py", socket, self.socket) as self.send:
                self.account = [f"--defaults-file={self.defaults}", f"--mysql-socket={socket}", *TABLE]
                direct = [f"--defaults-file={self.defaults}", *TABLE]
                printed(LOAD, "prepare", "oltp_update_non_index", *direct)
                self.sql("CREATE TABLE sbtest.holder (goes INT, held BIGINT) ENGINE = MEMORY")
                self.sql("INSERT INTO sbtest.holder VALUES (0, 0)")
                yield self
        finally:
            for group in (*self.groups.values(), self.own_group):
                for pid in (group / "cgroup.procs").read_text().split():
                    (group.parent / "cgroup.procs").write_text(pid)
                group.rmdir()

    def sql(self, statement: str) -> str:
        """Run a statement; its first value."""
        return Connection(self.defaults).query(statement)

    def command(self, text: str) -> float:
        """Send a command to the relay; the seconds that it has kept data so far."""
        return float(json.loads(self.send(text)))

    def meters(self) -> dict[str, float]:
        """What the instruments have counted so far: seconds, and operations of the block device."""
        found = {"now": time.monotonic()}
        found["relay"] = self.command("report")
        found["held"] = float(self.sql("SELECT held FROM sbtest.holder")) / US
        for name, of in TIMERS.items():
            found[name] = float(self.sql(TIMER.format(*of))) / 1e12
        found["throttled"] = _field(self.groups["cpu"] / "cpu.stat", "throttled_time") / 1e9
        found["operations"] = _field(self.groups["blkio"] / "blkio.throttle.io_serviced", "Write")
        if self.neighbour:
            found["neighbour"] = float(schedstat(self.neighbour.pid)[0]) / 1e9
        return found

    def threads(self) -> dict[int, list[int]]:
        """What the kernel has counted of each thread that serves a connection."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        named = [thread for thread in threads if (thread / "comm").read_text().startswith("connection")]
        return {int(thread.name): schedstat(int(thread.name)) for thread in named}

    def run(self, name: str, beside: Sequence[str] = ("true",)) -> Ledgers:
        """Run the load under the recorder; another program runs during the measurement."""
        out = self.directory / f"{next(self.count)}-{name}"
        out.mkdir()
        watched = ("--process", f"server={self.pid}", "--process", "load=loadprint-load")
        account = ("--mysql-defaults-file", self.defaults, "--mysql-user", "loadprint")
        with recording(out, "--interval", "500ms", "--probes", PROBES, *watched, *account):
            words = [str(LOAD), "run", "oltp_update_non_index", *self.account, "--out", str(out)]
            words += ["--protocol=text", "--threads=1", f"--warmup-time={WARM_UP_S}", f"--time={MEASURE_S}"]
            words += ["--rand-type=uniform", "--rand-seed=1", "--report-interval=0"]
            with subprocess.Popen(words, stdout=(out / "load.log").open("w")) as load:
                wait_for("the measurement", lambda: in_measure_phase(out) or load.poll() is not None)
                first, begun = self.meters(), self.threads()
                with subprocess.Popen(beside) as other:
                    time.sleep(max(0.0, first["now"] + MEASURE_S - 0.5 - time.monotonic()))
                    other.send_signal(signal.SIGINT)
                ended, last = self.threads(), self.meters()
                last |= on_cpu_and_waiting(begun, ended)
                assert load.wait(TIMEOUT_S) == 0, (out / "load.log").read_text(encoding="utf-8")
        return self._read(out, first, last)

    def _read(self, out: Path, first: dict[str, float], last: dict[str, float]) -> Ledgers:
        quantities = gather(open_run(out), Store()).quantities
        per_second = quantities.values["load.queries"].rate
        rows = [*IN_SERVER, "client_cpu", "client_queue", "client_other", "client_unexplained"]
        cpu = {
            name.removeprefix("profile.server."): value.rate / per_second * US
            for name, value in quantities.values.items()
            if name.startswith("profile.server.")
        }
        scale = US / per_second
        found = {row: quantities.get(f"ledger.{row}") for row in (*rows, "latency", "waiting", "server")}
        # a row that the kernel does not account is missing
        waits = {row: quantity.rate * scale for row, quantity in found.items() if quantity}
        # the relay is a proxy: the ledger has no row of the network
        waits["between"] = waits.pop("waiting") - waits["server"]
        seconds = last.pop("now") - first["now"]
        meters = {name: (last[name] - first.get(name, 0.0)) / seconds * scale for name in last}
        return Ledgers(waits, cpu, meters, quantities, out)


def schedstat(tid: int) -> list[int]:
    """A task's time on a CPU, and in the run queue (ns), and its periods on a CPU."""
    return [int(word) for word in Path(f"/proc/{tid}/schedstat").read_text().split()]


def prefer(thread: int, cpu: int) -> None:
    """Pin a thread to a CPU, where it runs before the threads of others; what it starts inherits that."""
    os.sched_setaffinity(thread, {cpu})
    # struct sched_attr: size, policy, flags, nice, priority, slice, deadline, period
    attributes = struct.pack("<IIQiIQQQ", 48, os.SCHED_OTHER, 0, NICE, 0, SLICE_NS, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SCHED_SETATTR[platform.machine()], thread, attributes, 0):
        raise OSError(ctypes.get_errno(), "sched_setattr")


def on_cpu_and_waiting(begun: dict[int, list[int]], ended: dict[int, list[int]]) -> dict[str, float]:
    """Seconds of the load's thread: the one that was on a CPU most often."""
    risen = [[last - first for first, last in zip(begun[tid], ended[tid], strict=True)] for tid in begun]
    on_cpu, waited, _ = max(risen, key=lambda counts: counts[2])
    return {"on CPU": on_cpu / 1e9, "waited": waited / 1e9}


def _field(file: Path, name: str) -> float:
    """The sum of the values of this name in a file of a control group."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return sum(float(words[-1]) for words in lines if name in words[:-1])
