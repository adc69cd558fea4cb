"""Does the recorder change what it watches: OLTP throughput with probes off, procfs only, and all of them.

    .venv/bin/python tests/benches/observer_cost.py [--blocks 12] [--seconds 10] [--threads 4] [--seed 1]

A private MySQL server (tests/with-server) on one CPU, `loadprint-load run oltp_read_write` over TCP and the
recorder on another. A block is one run of each treatment in random order; the tables stay warm. Throughput
relative to *off* is the geometric mean over the blocks of the ratio within the block, with its 95 % interval
(t on logarithms).
Needs root, two CPUs or more, and `cargo build --release`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from load_generator import Ratio, ratio
from probe_cost import targets
from processes import COLLECT, RELEASE, ROOT, running, start, wait_for

TREATMENTS: dict[str, list[str] | None] = {
    "off": None,
    "procfs": ["--without", "ebpf,mysql"],
    "default probes": [],
    "default probes and system calls": ["--with", "ebpf_syscalls"],
    "default probes and statements by uprobe": ["--with", "ebpf_statements"],
}
PORT = 33_408
TABLES = ["--tables=4", "--table-size=25000"]


def throughput(treatment: str, given: argparse.Namespace, directory: Path) -> float:
    """Events per second of one run with a recorder of this treatment."""
    options = TREATMENTS[treatment]
    processes: dict[str, subprocess.Popen[bytes]] = {}
    if options is not None:
        run = Path(tempfile.mkdtemp(dir=directory)) / "run"
        words = [COLLECT, "record", "--out", run, "--pid-file", run.with_suffix(".pid"), *targets(), *options]
        processes["recorder"] = start(words)
        wait_for(run.with_suffix(".pid"))
    with running(processes):
        return load("run", f"--threads={given.threads}", f"--time={given.seconds}")


def load(verb: str, *options: str) -> float:
    """Run a verb of the generator; events per second of `run`."""
    common = [verb, "oltp_read_write", f"--defaults-file={os.environ['LOADPRINT_TEST_DEFAULTS']}", *TABLES]
    common += ["--mysql-host=127.0.0.1", f"--mysql-port={PORT}"]
    words = [str(RELEASE / "loadprint-load"), *common, *options]
    if verb == "run":
        words += ["--report-interval=0", "--format=json"]
    output = subprocess.run(words, check=True, capture_output=True).stdout
    if verb != "run":
        return math.nan
    result = json.loads(output)
    return float(result["events"] / result["seconds"])


def relative(blocks: list[dict[str, float]], treatment: str) -> Ratio:
    """Throughput relative to `off`."""
    return ratio([block[treatment] for block in blocks], [block["off"] for block in blocks])


def main() -> None:
    """Run the blocks and print a line per treatment."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=12, help="at least 2")
    parser.add_argument("--seconds", type=int, default=10, help="of one run")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--other-cpu", type=int, default=1)
    given = parser.parse_args()
    if "LOADPRINT_TEST_SOCKET" not in os.environ:
        options = f"--skip-networking=0 --bind-address=127.0.0.1 --port={PORT}"
        os.environ["LOADPRINT_TEST_SERVER_OPTIONS"] = options
        os.execv(ROOT / "tests/with-server", ["with-server", sys.executable, *sys.argv])
    pid = int((Path(os.environ["LOADPRINT_TEST_SOCKET"]).parent / "mysqld.pid").read_text())
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {given.server_cpu})
    os.sched_setaffinity(0, {given.other_cpu})
    load("prepare")
    load("run", f"--threads={given.threads}", "--time=10")
    order = random.Random(given.seed)
    blocks: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        for number in range(given.blocks):
            block: dict[str, float] = {}
            for treatment in order.sample(list(TREATMENTS), len(TREATMENTS)):
                block[treatment] = throughput(treatment, given, Path(directory))
            blocks.append(block)
            minima = "  ".join(f"{name} {block[name]:.1f}" for name in TREATMENTS)
            print(f"block {number + 1}/{given.blocks}: {minima}", file=sys.stderr, flush=True)
    print("| probes | transactions a second (median) | relative to off (95 % interval) |")
    print("|---|---|---|")
    for treatment in TREATMENTS:
        median = statistics.median(block[treatment] for block in blocks)
        actual = relative(blocks, treatment) if treatment != "off" else None
        text = f"{actual.mean:.4f} ({actual.low:.4f}–{actual.high:.4f})" if actual else "1"
        print(f"| {treatment} | {median:.1f} | {text} |")


if __name__ == "__main__":
    main()
