"""Compares a server that is frozen between its slices with the same server running freely, row by row.

    .venv/bin/python tests/benches/turns.py [--workload NAME] [--rounds N] [--seconds S] [SLICE+GUARD ...]

A private MySQL server (tests/with-server, durable, 128 MiB of redo log) on one CPU, the load and a recorder
on another. In each round the server runs freely once and once in slices of each length and guard (seconds,
such as 1.7+0.25), in random order, frozen as long as thawed; the scheduler's own code thaws and freezes.
Printed are the ratios to the free part of the same round, with Student's t interval over the rounds: in the
measured parts alone, and from the end of one slice to the end of the next, with the guards. Nothing is
asserted.
Needs root, two CPUs or more, and `cargo build --release`.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

import duckdb
from load_generator import ratio
from processes import RELEASE, described, pin, targets, with_server
from programs import COLLECT, ROOT, printed, wait_for

sys.path.insert(0, str(ROOT / "ansible/roles/supervisor/files"))
import alternate

SERVER = (
    "--innodb-buffer-pool-size=512M --innodb-redo-log-capacity=128M --performance-schema=OFF "
    "--log-bin=binlog --sync-binlog=1 --innodb-flush-log-at-trx-commit=1 --innodb-flush-method=O_DIRECT "
    "--innodb-monitor-enable=buffer_flush_%,log_lsn_checkpoint_age"
)
STATEMENTS = "Questions"
COUNTERS = {
    "server CPU": "cpu",
    "written by the server": "written",
    "pages flushed": "Innodb_buffer_pool_pages_flushed",
    "redo": "Innodb_os_log_written",
    "data fsyncs": "Innodb_data_fsyncs",
    "log fsyncs": "Innodb_os_log_fsyncs",
}
LEVELS = {  # what there was at the ends of the slices
    "checkpoint age": "innodb_metrics.log_lsn_checkpoint_age",
    "dirty pages": "Innodb_buffer_pool_pages_dirty",
    "purge lag": "innodb_metrics.trx_rseg_history_len",
}
PARTS = ("measured", "all")
FREE = "free"
SETTLE_S = 5.0  # after a change of setting, not counted

Values = dict[str, float]


def run_slices(side: alternate.Side, setting: str, seconds: float) -> int:
    """Run a setting for some thawed seconds; how many slices it had, each with a tick at both ends."""
    if setting == FREE:
        length, guard, number = seconds, SETTLE_S, 1
    else:
        length, guard = map(float, setting.split("+"))
        number = math.ceil((seconds + SETTLE_S) / (length + guard))
    for _ in range(number):
        side.thaw()
        side.resume()
        time.sleep(guard)
        side.edge()
        time.sleep(length)
        side.edge()
        side.pause(None)
        side.freeze()
        time.sleep(0.1 if setting == FREE else length + guard)
    return number


def readings(run: Path) -> dict[int, Values]:
    """Every counter of the server by tick."""
    of_server = f"FROM '{run}/server/process.parquet' WHERE role = 'server'"
    read = f"""
        SELECT tick, metric, value::DOUBLE FROM '{run}/server/mysql.parquet' WHERE value IS NOT NULL
        UNION ALL SELECT tick, 'cpu', utime + stime {of_server}
        UNION ALL SELECT tick, 'written', write_bytes {of_server}
    """
    found: dict[int, Values] = {}
    for tick, metric, value in duckdb.execute(f"{read} ORDER BY tick").fetchall():
        # one that is the same as before may have no row
        found.setdefault(tick, dict(found.get(tick - 1, {})))[metric] = value
    return found


def summed(spans: list[tuple[Values, Values]]) -> Values:
    """Give each counter per statement and each level, over the spans from one reading to another."""
    total = {name: sum(end[name] - begin[name] for begin, end in spans) for name in COUNTERS.values()}
    statements = sum(end[STATEMENTS] - begin[STATEMENTS] for begin, end in spans)
    values = {row: total[name] / statements for row, name in COUNTERS.items()}
    ends = [reading for span in spans for reading in span]
    return values | {row: fmean(reading[name] for reading in ends) for row, name in LEVELS.items()}


def parts(slices: list[tuple[Values, Values]]) -> dict[str, Values]:
    """Both readings of a setting: of its measured parts, and with its guards and pauses."""
    first = math.ceil(len(slices) / 6) if len(slices) > 1 else 0
    begin = slices[first - 1][1] if first else slices[0][0]
    return {"measured": summed(slices[first:]), "all": summed([(begin, slices[-1][1])])}


def interval(pairs: list[tuple[float, float]]) -> str:
    """The geometric mean of ratios, and half the width of its interval in percent."""
    positive = [pair for pair in pairs if min(pair) > 0]
    if len(positive) < 2:
        return "–"
    estimate = ratio(*map(list, zip(*positive, strict=True)))
    return f"{estimate.mean:.2f} ±{100 * (estimate.high / estimate.mean - 1):.0f} %"


def report(given: argparse.Namespace, taken: list[dict[str, dict[str, Values]]]) -> None:
    """Print the ratios of the rounds so far."""
    columns = [(setting, part) for setting in given.settings for part in PARTS]
    print(f"{given.workload}, {len(taken)} rounds: slices ÷ free")
    print("| row |", " | ".join(f"{setting} {part}" for setting, part in columns), "|")
    print("|---" * (1 + len(columns)) + "|")
    for row in (*COUNTERS, *LEVELS):
        cells = []
        for setting, part in columns:
            pairs = [(start[setting][part][row], start[FREE][part][row]) for start in taken]
            cells.append(interval(pairs))
        print(f"| {row} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    """Run the rounds and print the table."""
    parser = described(__doc__)
    parser.add_argument("settings", nargs="*", default=["1+0.2", "1.7+0.25", "1.9+0", "2.9+0"])
    parser.add_argument("--workload", default="oltp_write_only")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=24)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with_server(SERVER)
    pin({0}, {1})
    state = Path(os.environ["LOADPRINT_TEST_SOCKET"]).parent.parent / "supervisor"
    sizes = [] if given.workload == "arm_insert" else ["--tables=4", "--table-size=100000"]
    common = [given.workload, f"--defaults-file={os.environ['LOADPRINT_TEST_DEFAULTS']}", *sizes]
    options = ["--scenario=ctx5"] if given.workload == "arm_insert" else ["--rand-type=uniform"]
    printed(RELEASE / "loadprint-load", "prepare", *common)
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        run = Path(scratch) / "run"
        run.mkdir()
        supervise = [RELEASE / "loadprint-supervise", "run", "--state", state]
        recorder = [COLLECT, "record", "--out", run, "--on-request", "--probes=process,mysql", *targets()]
        load = [
            RELEASE / "loadprint-load",
            "run",
            *common,
            *options,
            "--threads=4",
            "--time=0",
            "--paused=on",
        ]
        printed(*supervise, "recorder", "--", *recorder)
        printed(*supervise, "load", "--", *load, "--out", run)
        wait_for("the journal", (run / "server/journal").exists)
        wait_for("the load", (run / "load/turns.jsonl").exists)
        supervisor = alternate.Supervisor(str(state))
        plan = {"directory": scratch, "runs": [{"side": "a", "id": run.name}], "slots": [""]}
        side = alternate.Side(plan | {"roles": ["server", "load"]}, 0, supervisor)
        side.begin()
        side.freeze()
        order: list[tuple[int, str, int]] = []
        for number in range(given.rounds):
            for setting in draw.sample([FREE, *given.settings], 1 + len(given.settings)):
                print(f"round {number + 1} of {given.rounds}: {setting}", file=sys.stderr, flush=True)
                order.append((number, setting, run_slices(side, setting, given.seconds)))
        side.thaw()
        for name in ("load", "recorder"):
            printed(RELEASE / "loadprint-supervise", "stop", "--state", state, name)
            supervisor.ask("wait", name=name, slice={"secs": 60, "nanos": 0})
        ticks = readings(run)
    taken: list[dict[str, dict[str, Values]]] = [{} for _ in range(given.rounds)]
    tick = 1  # after the recorder's first
    for number, setting, count in order:
        begins = range(tick, tick + 2 * count, 2)
        taken[number][setting] = parts([(ticks[begin], ticks[begin + 1]) for begin in begins])
        tick = begins.stop
    report(given, taken)


if __name__ == "__main__":
    main()
