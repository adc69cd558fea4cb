"""Compares the load generator with sysbench, in turns on one private server.

    .venv/bin/python tests/benches/load_generator.py [--quick] [--threads 1,8,64] [--rounds 5] [--seconds 1]

For each cell (threads x workload x protocol x transport): throughput, and queries per second of the
client's CPU time, as ratios to sysbench: geometric means over the rounds with 95 % intervals (t on
logarithms). Throughput is what each tool prints; CPU time is that of the child (wait4) less that of a run of
one event: start-up, connecting and preparing. Server and clients run on separate CPUs. Needs sysbench, and
root for `tests/with-server`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from processes import RELEASE, described, pin, timed, with_server
from scipy.stats import t as student

DATABASE = "sbtest"
SERVER = (
    "--skip-networking=0 --bind-address=127.0.0.1 --port={port} --performance-schema=OFF "
    "--max-connections=400 --innodb-buffer-pool-size=512M --innodb-redo-log-capacity=1G "
    "--max-prepared-stmt-count=100000"
)
TOOLS = ("ours", "sysbench")
COLUMNS = (
    "workload | protocol | transport | threads | sysbench kq/s | sysbench kq/CPU-s "
    "| ours: throughput | ours: per CPU-s"
)
HEAD = f"| {COLUMNS} |\n|{'---|' * (COLUMNS.count('|') + 1)}"


@dataclass(frozen=True)
class Cell:
    """What is the same for all tools of a comparison."""

    threads: int
    workload: str
    protocol: str
    transport: str


@dataclass(frozen=True)
class Sample:
    """One run of one tool."""

    queries: int
    seconds: float
    cpu_s: float


@dataclass(frozen=True)
class Ratio:
    """Geometric mean over rounds, and its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f}–{self.high:.2f})"


def main() -> None:
    """Start a server where there is none, then measure."""
    given = arguments()
    with_server(SERVER.format(port=given.port))
    pin(given.server_cpus, given.client_cpus)
    bench = Bench(given)
    bench.prepare()
    print(HEAD)
    for cell in cells(given):
        print(row(cell, bench.measure(cell)), flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = described(__doc__)
    parser.add_argument("--threads", default="1,2,4,8,16,32,64", type=numbers)
    parser.add_argument("--workloads", default="oltp_point_select,oltp_read_write", type=words)
    parser.add_argument("--protocols", default="text,prepared", type=words)
    parser.add_argument("--transports", default="socket,tcp", type=words)
    parser.add_argument("--rounds", type=int, default=6, help="at least 2")
    parser.add_argument("--seconds", type=int, default=1, help="of one run")
    parser.add_argument("--quick", action="store_true", help="1 and 8 threads, unix socket, 3 rounds")
    parser.add_argument("--table-size", type=int, default=100_000)
    parser.add_argument("--port", type=int, default=33407)
    parser.add_argument("--server-cpus", default="0", type=numbers)
    parser.add_argument("--client-cpus", default="1", type=numbers)
    given = parser.parse_args()
    if given.quick:
        given.threads, given.transports, given.rounds = [1, 8], ["socket"], 3
    given.rounds = max(given.rounds, 2)
    return given


def words(text: str) -> list[str]:
    """Split a list."""
    return text.split(",")


def numbers(text: str) -> list[int]:
    """Split a list of numbers."""
    return [int(word) for word in words(text)]


def cells(given: argparse.Namespace) -> Iterator[Cell]:
    """All that was asked for."""
    for workload, protocol, transport, threads in product(
        given.workloads, given.protocols, given.transports, given.threads
    ):
        yield Cell(threads, workload, protocol, transport)


class Bench:
    """The server of `tests/with-server`, and the tools on it."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.socket = os.environ["LOADPRINT_TEST_SOCKET"]
        self.defaults = os.environ["LOADPRINT_TEST_DEFAULTS"]

    def prepare(self) -> None:
        """Tables by the real sysbench, and all of it read once."""
        cell = Cell(1, "oltp_read_write", "prepared", "socket")
        for verb in ("prepare", "prewarm"):
            with self.sysbench(cell, verb, "--time=0") as command:
                subprocess.run(command, check=verb == "prepare", stdout=subprocess.DEVNULL)

    def measure(self, cell: Cell) -> dict[str, list[Sample]]:
        """Rounds of all tools, each round in the opposite order of the one before."""
        start_up = {tool: min(self.run(tool, cell, None).cpu_s for _ in range(2)) for tool in TOOLS}
        samples: dict[str, list[Sample]] = {tool: [] for tool in TOOLS}
        for number in range(self.given.rounds):
            for tool in TOOLS if number % 2 == 0 else reversed(TOOLS):
                sample = self.run(tool, cell, self.given.seconds)
                cpu_s = sample.cpu_s - start_up[tool]
                samples[tool].append(Sample(sample.queries, sample.seconds, cpu_s))
        return samples

    def run(self, tool: str, cell: Cell, seconds: int | None) -> Sample:
        """One run; without seconds of one event, for what comes before it."""
        length = "--events=1 --time=0" if seconds is None else f"--events=0 --time={seconds}"
        if tool == "sysbench":
            with self.sysbench(cell, "run", *length.split()) as command:
                used = timed(command)
            queries, _ = figures(r"total: +(\d+)()", used.output)
            return Sample(queries, figures(r"()total time: +([\d.]+)s", used.output)[1], used.cpu_s)
        command = [f"{RELEASE}/loadprint-load", "run", *self.common(cell), *length.split()]
        command += [f"--defaults-file={self.defaults}", "--report-interval=0", "--format=json"]
        used = timed(command)
        result = json.loads(used.output)
        return Sample(result["queries"], result["seconds"], used.cpu_s)

    def common(self, cell: Cell) -> list[str]:
        """Options that both generators know."""
        where = [f"--mysql-socket={self.socket}"]
        if cell.transport == "tcp":
            where = ["--mysql-host=127.0.0.1", f"--mysql-port={self.given.port}"]
        mode = "disable" if cell.protocol == "text" else "auto"
        size = f"--tables=1 --table-size={self.given.table_size}"
        options = (
            f"{size} --threads={cell.threads} --rand-type=uniform --db-ps-mode={mode} --mysql-db={DATABASE}"
        )
        return [cell.workload, *where, *options.split()]

    @contextmanager
    def sysbench(self, cell: Cell, verb: str, *further: str) -> Iterator[list[str]]:
        """Its command, with the account in a private file while it runs."""
        pairs = (line.partition("=") for line in Path(self.defaults).read_text().splitlines())
        with tempfile.NamedTemporaryFile("w", suffix=".cnf") as file:
            file.writelines(
                f"mysql-{name}={value}\n" for name, _, value in pairs if name in ("user", "password")
            )
            file.flush()
            yield ["sysbench", f"--config-file={file.name}", *self.common(cell), *further, verb]


def figures(pattern: str, output: str) -> tuple[int, float]:
    """Queries and seconds of a tool's output."""
    actual = re.search(pattern, output)
    if not actual:
        sys.exit(f"{pattern} is not in:\n{output}")
    return int(actual[1] or 0), float(actual[2] or 0)


def ratio(ours: list[float], theirs: list[float]) -> Ratio:
    """Geometric mean of the rounds' ratios; t interval of their logarithms."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    centre = statistics.fmean(logs)
    half = student.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def row(cell: Cell, samples: dict[str, list[Sample]]) -> str:
    """A row of the table: what sysbench did, and our ratios to it."""
    rate = {tool: [one.queries / one.seconds for one in of] for tool, of in samples.items()}
    cheap = {tool: [one.queries / one.cpu_s for one in of] for tool, of in samples.items()}
    cells: list[object] = [cell.workload, cell.protocol, cell.transport, cell.threads]
    cells += [f"{statistics.geometric_mean(of['sysbench']) / 1000:.1f}" for of in (rate, cheap)]
    cells += [ratio(of["ours"], of["sysbench"]) for of in (rate, cheap)]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
