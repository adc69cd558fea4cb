"""Measures what executions of the campaign `aa` say: of equal sides, a known difference, what carries over.

    .venv/bin/python tests/benches/equal_sides.py [--rounds 10] [--kinds alternate,...] [--rate 300] RUNS_DIR

A round is one execution of each kind in random order, about five minutes each (the kind faster-2: fifteen):

    alternate     three starts of sides that alternate
    sequential    the scale `sequential`: three runs of each side, one after the other
    faster-5, -2  three starts, or nine, of sides in open loops; the rate of b is that much higher, and all
                  that is counted per second with it; --rate, that of a, is a third of what a side can do
    writer        alternate; after each turn of side a, pages that another program made dirty are written
    cold          alternate, with tables in the page cache, which is emptied after each turn of side a

Printed are, for each kind and row, the standard deviation of the log ratio over the executions, the
half-width that they stated (median), how many of their intervals contained the truth and how many excluded 1;
for each kind, how many executions warned that something carries over, and how far the p values of all rows
are from uniform ones; of sides that alternate also the parts of the variance of client statements. The
executions stay in RUNS_DIR; a later call with the directory adds its rounds, or none (--rounds 0).
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from statistics import median, stdev
from typing import Any, NamedTuple

import numpy as np
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from loadprint.reading.sides import single
from numpy.typing import NDArray
from processes import described
from programs import ROOT, printed
from scipy.stats import kstest

ROWS = {
    "statements": "client statements",
    "server_cpu_per_operation": "server CPU per operation",
    "cpu_server_utilisation": "utilisation of the server's CPUs",
    "disk_*_write_kb": "written to the disk",
    "nic_veth_tx": "sent on the network",
    "switches_server": "context switches of the server",
}
DIRTY = 128 << 20  # bytes
CARRIED = ("statements/s in", "statements/s after", "left to the kernel")  # of warnings


class Kind(NamedTuple):
    """Settings of the campaign, the truth of rows per second, and what happens after each turn of side a.

    Sides of which the truth is not 1 are in open loops.
    """

    settings: dict[str, Any]
    truth: float = 1.0
    after: Callable[[Path], None] | None = None


def write_behind(execution: Path) -> None:
    """Leave dirty pages whose writing has begun."""
    with (execution / "dirty").open("wb") as file:
        file.write(bytes(DIRTY))
        file.flush()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # begins to write, and does not wait


def empty_page_cache(_: Path) -> None:
    """Drop clean pages of all files."""
    Path("/proc/sys/vm/drop_caches").write_text("1")


CACHED = ["server.options.innodb_flush_method=fsync", "server.buffer_pool_size=64M"]
KINDS = {
    "alternate": Kind({"starts": 3}),
    "sequential": Kind({"campaign_scale": "sequential"}),
    "faster-5": Kind({"starts": 3}, 1.05),
    "faster-2": Kind({"starts": 9}, 1.02),
    "writer": Kind({"starts": 3}, after=write_behind),
    "cold": Kind({"starts": 3, "campaign_set": CACHED}, after=empty_page_cache),
}


@contextmanager
def after_turns(runs: Path, act: Callable[[Path], None] | None) -> Iterator[None]:
    """Act at the end of each turn of side a of the newest execution."""
    done = threading.Event()

    def watch() -> None:
        seen = 0
        while not done.wait(0.005):
            files = list((runs / "aa/latest").glob("b*-a-r*/slices.jsonl"))
            turns = sum(file.read_text().count('"side": "a"') for file in files)
            if turns > seen and act:
                act(runs / "aa/latest")
            seen = turns

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def execute(name: str, runs: Path, rate: float) -> None:
    """Run the campaign once; its output is kept next to its runs."""
    runs.mkdir(parents=True, exist_ok=True)
    kind = KINDS[name]
    settings = {"campaign": "aa", "campaign_new": True, "campaign_runs_dir": str(runs)} | kind.settings
    if kind.truth != 1:
        settings["campaign_set"] = [f"sides.a.rate={rate:g}", f"sides.b.rate={rate * kind.truth:g}"]
    begin = time.monotonic()
    with (runs / "output").open("a") as output, after_turns(runs, kind.after):
        words = [str(ROOT / "characterize"), "-e", json.dumps(settings)]
        subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, check=True)
    print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


def read(execution: Path) -> tuple[dict[str, Any], list[str]]:
    """Read what side b is to side a in an execution: by row, and the warnings."""
    text = printed(ROOT / ".venv/bin/loadprint", "compare", execution, "--format", "json", "--all")
    table = json.loads(text)
    rows = (row for group in table["groups"] for row in group["rows"])
    return {row["key"]: row["versus"][1] for row in rows if row["versus"][1]}, table["warnings"]


def rounds(execution: Path, start: int) -> NDArray[np.float64]:
    """The log of side b's statements/s to side a's in each round of a start."""
    runs = (execution / f"b{start}-{side}-r{start}" for side in "ba")
    b, a = (gather(single(run).runs[0], Store()).quantities.by_segment["mysql.Questions"] for run in runs)
    return np.log(b) - np.log(a)


def print_parts(executions: list[Path]) -> None:
    """Print the standard deviations of a round, of a start and of an execution, without what they average.

    Nested analysis of variance with equal numbers: the variance of means of n is that of their level, and the
    nth part of that of the level below.
    """
    ratios = np.array([[rounds(execution, start) for start in (1, 2, 3)] for execution in executions])
    _, starts, per_start = ratios.shape
    of_round = ratios.var(axis=2, ddof=1).mean()
    of_start = ratios.mean(axis=2).var(axis=1, ddof=1).mean() - of_round / per_start
    of_execution = ratios.mean(axis=(1, 2)).var(ddof=1) - (of_start + of_round / per_start) / starts
    for level, variance in (("round", of_round), ("start", of_start), ("execution", of_execution)):
        print(f"  sd of a {level:9} {math.copysign(math.sqrt(abs(variance)), variance):6.2%}")


def report(name: str, executions: list[Path]) -> None:
    """Print the rows of a kind."""
    found, warned = zip(*map(read, executions), strict=True)
    print(f"{name}: {len(executions)} executions")
    for key, label in ROWS.items():
        pairs = [one[row] for one in found for row in one if fnmatch(row, key) and one[row]["low"]]
        if len(pairs) < 2:
            continue
        truth = KINDS[name].truth if key != "server_cpu_per_operation" else 1.0
        half_width = median(math.log(one["high"] / one["low"]) / 2 for one in pairs)
        deviation = stdev(math.log(one["centre"]) for one in pairs)
        print(
            f"  {label:31} sd {deviation:6.1%}  half-width {half_width:6.1%}"
            f"  {sum(one['low'] <= truth <= one['high'] for one in pairs)} of {len(pairs)} contain {truth:g},"
            f" {sum(not one['low'] <= 1 <= one['high'] for one in pairs)} exclude 1"
        )
    values = [one["p"] for rows in found for one in rows.values() if one["p"] is not None]
    carried = sum(any(part in text for part in CARRIED for text in texts) for texts in warned)
    distance = kstest(values, "uniform").statistic
    print(f"  p values: {distance:.3f} from uniform ({len(values)}); carried over: {carried}")


def main() -> None:
    """Run the rounds and print the table."""
    parser = described(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--kinds", default="alternate,sequential")
    parser.add_argument("--rate", type=float, default=300, metavar="TRANSACTIONS_PER_S")
    parser.add_argument("runs", type=Path, metavar="RUNS_DIR")
    arguments = parser.parse_args()
    runs = arguments.runs.absolute()
    kinds = arguments.kinds.split(",")
    for _ in range(arguments.rounds):
        for name in random.sample(kinds, len(kinds)):
            execute(name, runs / name, arguments.rate)
    for name in KINDS:
        if executions := sorted((runs / name / "aa").glob("2*")):
            report(name, executions)
            if name == "alternate" and len(executions) > 1:
                print_parts(executions)


if __name__ == "__main__":
    main()
