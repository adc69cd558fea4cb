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
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from load_generator import ratio
from processes import described, oltp, pin, recorder, running, targets, with_server
from programs import ROOT, printed

TREATMENTS: dict[str, list[str] | None] = {
    "off": None,
    "procfs": ["--without", "ebpf,mysql"],
    "default probes": [],
    "default probes and system calls": ["--with", "ebpf_syscalls"],
    "default probes and statements by uprobe": ["--with", "ebpf_statements"],
}
PORT = 33_408


def throughput(treatment: str, given: argparse.Namespace, directory: Path) -> float:
    """Events per second of one run with a recorder of this treatment."""
    options = TREATMENTS[treatment]
    processes: dict[str, subprocess.Popen[bytes]] = {}
    if options is not None:
        run = Path(tempfile.mkdtemp(dir=directory)) / "run"
        processes["recorder"] = recorder(run, *targets(), *options)
    with running(processes):
        return load("run", f"--threads={given.threads}", f"--time={given.seconds}")


def load(verb: str, *options: str) -> float:
    """Run a verb of the generator; events per second of `run`."""
    words = oltp(verb, "--mysql-host=127.0.0.1", f"--mysql-port={PORT}", *options)
    if verb == "run":
        words += ["--report-interval=0", "--format=json"]
    output = printed(*words)
    if verb != "run":
        return math.nan
    result = json.loads(output)
    return float(result["events"] / result["seconds"])


def main() -> None:
    """Run the blocks and print a line per treatment."""
    parser = described(__doc__)
    parser.add_argument("--blocks", type=int, default=12, help="at least 2")
    parser.add_argument("--seconds", type=int, default=10, help="of one run")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--other-cpu", type=int, default=1)
    given = parser.parse_args()
    with_server(f"--skip-networking=0 --bind-address=127.0.0.1 --port={PORT}")
    pin({given.server_cpu}, {given.other_cpu})
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
        actual = ratio([block[treatment] for block in blocks], [block["off"] for block in blocks])
        text = "1" if treatment == "off" else f"{actual.mean:.4f} ({actual.low:.4f}–{actual.high:.4f})"
        print(f"| {treatment} | {median:.1f} | {text} |")


if __name__ == "__main__":
    main()
